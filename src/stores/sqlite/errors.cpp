#include "stores/sqlite/errors.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>

namespace semel::sqlite {
namespace {

struct Row {
  int result;
  Remedy remedy;
  ErrorCode code;
  Certainty at_commit;
};

constexpr auto fix = Remedy::fix_call;
constexpr auto later = Remedy::retry_later;
constexpr auto reread = Remedy::reread;
constexpr auto ask = Remedy::ask_operator;
constexpr auto not_applied = Certainty::not_applied;
constexpr auto unknown = Certainty::unknown;

// A statement that fails has changed nothing that lasts. A COMMIT that fails while it writes (full disk, I/O error)
// may have put its commit frame into the write-ahead log, where a recovery after a crash would find it: unknown.
constexpr std::array rows{
    Row{SQLITE_BUSY_SNAPSHOT, reread, ErrorCode::serialization_failure, not_applied},
    Row{SQLITE_BUSY, later, ErrorCode::lock_timeout, not_applied},
    Row{SQLITE_LOCKED, later, ErrorCode::lock_timeout, not_applied},
    Row{SQLITE_PROTOCOL, later, ErrorCode::lock_timeout, not_applied},
    Row{SQLITE_SCHEMA, reread, ErrorCode::serialization_failure, not_applied},
    Row{SQLITE_INTERRUPT, later, ErrorCode::lock_timeout, not_applied},

    Row{SQLITE_FULL, ask, ErrorCode::disk_full, unknown},
    Row{SQLITE_NOLFS, ask, ErrorCode::disk_full, unknown},
    Row{SQLITE_IOERR, later, ErrorCode::store_unreachable, unknown},
    Row{SQLITE_NOMEM, later, ErrorCode::store_unreachable, unknown},
    Row{SQLITE_READONLY_DBMOVED, later, ErrorCode::store_unreachable, unknown},
    Row{SQLITE_READONLY, ask, ErrorCode::store_read_only, not_applied},
    Row{SQLITE_CANTOPEN_ISDIR, fix, ErrorCode::store_unreachable, not_applied},
    Row{SQLITE_CANTOPEN, later, ErrorCode::store_unreachable, unknown},
    Row{SQLITE_PERM, ask, ErrorCode::permission_denied, not_applied},
    Row{SQLITE_CORRUPT, ask, ErrorCode::store_damaged, unknown},
    Row{SQLITE_NOTADB, ask, ErrorCode::store_damaged, unknown},

    Row{SQLITE_CONSTRAINT_DATATYPE, fix, ErrorCode::bad_value, not_applied},
    Row{SQLITE_CONSTRAINT, fix, ErrorCode::constraint_violated, not_applied},
    Row{SQLITE_MISMATCH, fix, ErrorCode::bad_value, not_applied},
    Row{SQLITE_TOOBIG, fix, ErrorCode::bad_value, not_applied},
    Row{SQLITE_AUTH, fix, ErrorCode::handler_misused, not_applied},
    Row{SQLITE_RANGE, fix, ErrorCode::bad_statement, not_applied},
    Row{SQLITE_ERROR, fix, ErrorCode::bad_statement, not_applied},
    Row{SQLITE_ABORT, fix, ErrorCode::bad_statement, not_applied},
    Row{SQLITE_MISUSE, fix, ErrorCode::bad_statement, not_applied},
};

constexpr Row unnamed{0, fix, ErrorCode::bad_statement, unknown};
constexpr int primary(int extended) { return extended & 0xff; }

const Row& row_of(int extended) {
  const auto named = [](int result) { return std::ranges::find(rows, result, &Row::result); };
  if (const auto exact = named(extended); exact != rows.end()) return *exact;
  if (const auto family = named(primary(extended)); family != rows.end()) return *family;
  return unnamed;
}

bool is_missing_schema(int extended, std::string_view said) {
  return primary(extended) == SQLITE_ERROR && said.find("no such table: semel_") != said.npos;
}

}  // namespace

Error translate(int extended_code, Phase phase, std::string_view doing, std::string_view said) {
  auto message = std::string(doing) + ": " + std::string(said);
  if (const std::string_view kind = sqlite3_errstr(extended_code); kind != said)
    message += " (" + std::string(kind) + ")";
  if (is_missing_schema(extended_code, said))
    return {ask, not_applied, ErrorCode::schema_missing, message + "; run `semel migrate`"};
  const Row& row = row_of(extended_code);
  const auto certainty = phase == Phase::commit ? row.at_commit : not_applied;
  const bool lost = certainty == unknown && row.code == ErrorCode::store_unreachable;
  return {row.remedy, certainty, lost ? ErrorCode::commit_unknown : row.code, std::move(message)};
}

}  // namespace semel::sqlite
