// Records and dead letters as rows: the SQL of migrations/sqlite, in one place.
#pragma once

#include <optional>
#include <semel/store.hpp>
#include <string>
#include <vector>

#include "stores/sqlite/connection.hpp"

namespace semel::sqlite {

/// Milliseconds since 1970 by SQLite's clock, as SQL; the same within one statement.
inline constexpr std::string_view now_sql = "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)";

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
Result<void> delete_row(Connection& connection, std::int64_t rowid);

Result<void> put_dead_letter(Connection& connection, const DeadLetter& letter);
Result<std::vector<DeadLetter>> list_dead_letters(Connection& connection, const DeadLetterQuery& query);
Result<std::optional<DeadLetter>> find_dead_letter(Connection& connection, const std::string& id);
Result<bool> resolve_dead_letter(Connection& connection, const std::string& id, std::string_view resolution);

}  // namespace semel::sqlite
