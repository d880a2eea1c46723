// Records and dead letters as rows: the parameters of the statements that write them, and what reads them back.
#pragma once

#include <functional>
#include <optional>
#include <semel/store.hpp>
#include <span>

#include "stores/postgres/wire.hpp"
#include "values/stored_form.hpp"

namespace semel::postgres {

/// At most 200 years either way, so that no sum with the time now is too great.
std::int64_t bounded_ms(std::chrono::milliseconds span);
/// From nothing to 200 years.
std::int64_t seconds_kept(std::chrono::seconds retention);

/// Of the column `state`.
RecordState record_state(std::int64_t state);

/// Parameters that are arrays with one element an item: each call adds one, of `field(item)`.
class Columns {
 public:
  template <class Items, class Field>
  void bytes(const Items& items, Field field) {
    add(Type::bytes, Type::bytes_array, items, field);
  }
  template <class Items, class Field>
  void texts(const Items& items, Field field) {
    add(Type::text, Type::text_array, items, field);
  }
  template <class Items, class Field>
  void uuids(const Items& items, Field field) {
    add(Type::uuid, Type::uuid_array, items, field);
  }
  template <class Items, class Field>
  void int4s(const Items& items, Field field) {
    add(Type::int4, Type::int4_array, items, [&](const auto& item) { return binary_int4(field(item)); });
  }
  template <class Items, class Field>
  void int8s(const Items& items, Field field) {
    add(Type::int8, Type::int8_array, items, [&](const auto& item) { return binary_int8(field(item)); });
  }
  template <class Items, class Field>
  void booleans(const Items& items, Field field) {
    add(Type::boolean, Type::boolean_array, items, [&](const auto& item) { return binary_boolean(field(item)); });
  }
  /// The same where `field(item)` may be nothing: null.
  template <class Items, class Field>
  void optional_bytes(const Items& items, Field field) {
    add(Type::bytes, Type::bytes_array, items, field);
  }
  template <class Items, class Field>
  void optional_uuids(const Items& items, Field field) {
    add(Type::uuid, Type::uuid_array, items, field);
  }
  template <class Items, class Field>
  void optional_int8s(const Items& items, Field field) {
    add(Type::int8, Type::int8_array, items, [&](const auto& item) {
      const std::optional<std::int64_t> value = field(item);
      return value ? std::optional(binary_int8(*value)) : std::nullopt;
    });
  }

  Parameters parameters() && { return std::move(parameters_); }

 private:
  template <class Items, class Field>
  void add(Type element, Type array, const Items& items, const Field& field) {
    ArrayWriter column(element, array);
    for (const auto& item : items) put(column, field(item));
    std::move(column).add_to(parameters_);
  }
  static void put(ArrayWriter& column, const std::string& bytes) { column.add(bytes); }
  static void put(ArrayWriter& column, const RecordDigest& digest) { column.add(digest.view()); }
  static void put(ArrayWriter& column, const std::optional<std::string>& bytes) {
    bytes ? column.add(*bytes) : column.add_null();
  }

  Parameters parameters_;
};

/// Every row, as `read(const BinaryRow&)` reads it.
template <class T, class Read>
Result<std::vector<T>> read_all(const PGresult* result, Read read) {
  std::vector<T> all;
  for (int row = 0; row < PQntuples(result); ++row) {
    auto one = read(BinaryRow(result, row));
    if (!one) return one.error();
    all.push_back(*std::move(one));
  }
  return all;
}

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
