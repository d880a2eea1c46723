// Records and dead letters as rows: the parameters of the statements that write them, and what reads them back.
#pragma once

#include <optional>
#include <semel/store.hpp>
#include <span>

#include "stores/postgres/wire.hpp"
#include "values/stored_form.hpp"

namespace semel::postgres {

/// For Statements::claim, in any order.
Parameters digest_parameters(std::span<const RecordDigest> digests);

/// For Statements::make_room.
Parameters room_parameters(std::span<const RecordDigest> expired, std::span<const RecordDigest> rejected);

/// For Statements::record. In the order of the digests, so that two transactions take the index entries that they share
/// in one order and cannot wait for each other.
Parameters record_parameters(std::span<const Record> records);

/// For Statements::set_aside; letters of one id become one, in the order of ids, for the same reason.
Parameters letter_parameters(std::span<const DeadLetter> letters);

struct ReadRecord {
  Record record;
  RecordDigest digest;
  bool expired = false;
};

/// Errors: store_damaged for bytes that this release never wrote.
Result<ReadRecord> read_record(const BinaryRow& row);
/// Two ids with one digest: nothing is merged, nothing can be recorded for `id`.
Error digest_collision(const RecordId& id);

Result<DeadLetter> read_letter(const BinaryRow& row);

}  // namespace semel::postgres
