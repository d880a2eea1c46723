// The durable row that a committed claim leaves behind.
#pragma once

#include <chrono>
#include <compare>
#include <optional>
#include <semel/answer.hpp>
#include <semel/fingerprint.hpp>
#include <semel/key.hpp>
#include <string>

namespace semel {

/// What a committed record says of its message.
enum class RecordState {
  completed,
  rejected,
  in_progress,  ///< an intent of it has no outcome yet, or is not settled
  ambiguous,    ///< an intent of it waits for an operator
};

/// Whether the record still waits for something: then it does not expire.
bool is_open(RecordState state);

/// The durable row that a committed claim leaves behind.
struct Record {
  Scope scope;
  Key key;
  Fingerprint fingerprint;
  RecordState state = RecordState::completed;
  /// Absent where it is not kept: a replay then says so. Of an open record: what it will be unless a settle step says
  /// otherwise.
  std::optional<Answer> answer;
  std::string source;
  std::string transport_id;
  /// Counted by the store's clock from `record`, or from the moment when an open one is closed. Zero or less has
  /// expired at once; over 200 years counts as 200.
  std::chrono::seconds retention{};
  bool replaces_rejection =
      false;  ///< an operator sent a rejected message again: its old record goes in this transaction

  std::chrono::system_clock::time_point recorded_at;  ///< set by the store; read-only
  std::chrono::system_clock::time_point expires_at;   ///< set by the store; read-only
};

/// Names one record.
struct RecordId {
  Scope scope;
  Key key;
  auto operator<=>(const RecordId&) const = default;
};

}  // namespace semel
