// Records and dead letters as rows: the SQL of migrations/sqlite, in one place.
#pragma once

#include <chrono>
#include <optional>
#include <semel/store.hpp>
#include <string>
#include <vector>

#include "stores/sqlite/connection.hpp"

namespace semel::sqlite {

/// Milliseconds since 1970 by SQLite's clock, as SQL; the same within one statement.
inline constexpr std::string_view now_sql = "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)";

/// `sql` with `now_sql` for each `{now}`.
std::string with_now(std::string_view sql);
/// "?3, ?4, ?5" for 3 and a count of 3.
std::string placeholders(int first, std::size_t count);

/// A time as it is stored; the greatest one for what never comes.
std::chrono::system_clock::time_point time_of(std::int64_t since_epoch_ms);
/// At most 200 years, so that no sum with the time now is too great.
std::int64_t bounded_ms(std::chrono::milliseconds span);

/// Of the columns `state` and `open`.
RecordState record_state(std::int64_t state, std::int64_t open);

/// Binds one parameter after the other, from the first.
class Binder {
 public:
  explicit Binder(Statement& statement) : statement_(statement) {}
  Binder& number(std::int64_t value) { return statement_.bind(++last_, value), *this; }
  Binder& text(std::string_view text) { return statement_.bind_text(++last_, text), *this; }
  Binder& bytes(std::string_view bytes) { return statement_.bind_bytes(++last_, bytes), *this; }
  Binder& optional_number(std::optional<std::int64_t> value) { return value ? number(*value) : null(); }
  Binder& optional_text(const std::optional<std::string>& value) { return value ? text(*value) : null(); }
  Binder& optional_bytes(const std::optional<std::string>& value) { return value ? bytes(*value) : null(); }

 private:
  Binder& null() { return statement_.bind_null(++last_), *this; }
  Statement& statement_;
  int last_ = 0;
};

/// Every row, as `read(const Statement&)` reads it.
template <class T, class Read>
Result<std::vector<T>> read_all(Statement& row, Read read) {
  std::vector<T> all;
  for (;;) {
    const auto more = row.step();
    if (!more) return more.error();
    if (!*more) return all;
    auto one = read(row);
    if (!one) return std::move(one).error();
    all.push_back(std::move(*one));
  }
}

/// `inserted`, where a taken id, which is the only constraint that the statement can violate, is a lost race.
Result<void> lost_race_if_taken(Result<void> inserted, std::string_view message);

/// A record's row, and whether its time is over.
struct FoundRecord {
  Record record;
  std::int64_t rowid;
  bool expired;
};

/// The row of `id`, expired or not. Errors: store_damaged where another id has the same digest, or the row does not
/// read.
Result<std::optional<FoundRecord>> find_row(Connection& connection, const RecordId& id);
/// Errors: lost_race where the id is taken.
Result<void> insert_record(Connection& connection, const Record& record);
Result<void> delete_rejected(Connection& connection, const RecordId& id);
/// With its intents.
Result<void> delete_row(Connection& connection, const FoundRecord& row);
/// The row of this number, with its intents, where it has expired; false where it has not, or is not there.
Result<bool> delete_if_expired(Connection& connection, std::int64_t rowid);
/// SQL: whether a row of semel_records has expired.
std::string expired_sql();

Result<void> put_dead_letter(Connection& connection, const DeadLetter& letter);
Result<std::vector<DeadLetter>> list_dead_letters(Connection& connection, const DeadLetterQuery& query);
Result<std::optional<DeadLetter>> find_dead_letter(Connection& connection, const std::string& id);
Result<bool> resolve_dead_letter(Connection& connection, const std::string& id, std::string_view resolution);

}  // namespace semel::sqlite
