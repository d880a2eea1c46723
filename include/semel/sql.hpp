// SQL inside the claim's transaction: the words that SQLite and PostgreSQL sessions share.
#pragma once

#include <cstdint>
#include <semel/result.hpp>
#include <semel/store.hpp>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace semel {

/// Bytes, as opposed to text.
struct Blob {
  std::string bytes;
  bool operator==(const Blob&) const = default;
};

/// A number beyond the others' range or precision, as it was written ("12345678901234567890.50").
struct Decimal {
  std::string digits;
  bool operator==(const Decimal&) const = default;
};

/// One parameter or one column's value. Parameters are bound, never pasted into SQL.
using Value = std::variant<std::nullptr_t, bool, std::int64_t, double, Decimal, std::string, Blob>;

struct Rows {
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
};

/// A lane's session on an SQL store. Placeholders are `$1`, `$2`, … on both stores.
/// All calls belong inside the transaction that the engine opened, on its thread.
class SqlSession : public Session {
 public:
  /// Runs a write. It may be sent without waiting; its error is then reported by a later call, with the
  /// number that `mark` last gave.
  virtual Result<void> execute(std::string_view sql, std::span<const Value> parameters) = 0;

  /// Runs a write, waits for it, and says how many rows it changed.
  virtual Result<std::int64_t> execute_counted(std::string_view sql, std::span<const Value> parameters) = 0;

  /// Runs a read and waits for all its rows.
  virtual Result<Rows> query(std::string_view sql, std::span<const Value> parameters) = 0;

  /// Runs one set-based write: each parameter stands for a column with one value a message. On PostgreSQL it is
  /// bound as an array (`unnest($1::text[])`); on SQLite the statement is run for each message. Waits; counts rows.
  virtual Result<std::int64_t> execute_set(std::string_view sql, std::span<const std::vector<Value>> columns) = 0;
};

}  // namespace semel
