#include "stores/sqlite/errors.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace semel::sqlite {
namespace {

constexpr auto fix = Remedy::fix_call;
constexpr auto later = Remedy::retry_later;
constexpr auto reread = Remedy::reread;
constexpr auto ask = Remedy::ask_operator;
constexpr auto not_applied = Certainty::not_applied;
constexpr auto unknown = Certainty::unknown;

struct Case {
  int result;
  Phase phase;
  Remedy remedy;
  Certainty certainty;
  ErrorCode code;
};

TEST(SqliteErrors, EveryResultHasItsRemedyCertaintyAndCode) {
  const Case cases[] = {
      {SQLITE_BUSY, Phase::statement, later, not_applied, ErrorCode::lock_timeout},
      {SQLITE_BUSY, Phase::commit, later, not_applied, ErrorCode::lock_timeout},
      {SQLITE_BUSY_TIMEOUT, Phase::statement, later, not_applied, ErrorCode::lock_timeout},
      {SQLITE_BUSY_RECOVERY, Phase::statement, later, not_applied, ErrorCode::lock_timeout},
      {SQLITE_BUSY_SNAPSHOT, Phase::statement, reread, not_applied, ErrorCode::serialization_failure},
      {SQLITE_BUSY_SNAPSHOT, Phase::commit, reread, not_applied, ErrorCode::serialization_failure},
      {SQLITE_LOCKED, Phase::statement, later, not_applied, ErrorCode::lock_timeout},
      {SQLITE_LOCKED_SHAREDCACHE, Phase::statement, later, not_applied, ErrorCode::lock_timeout},
      {SQLITE_PROTOCOL, Phase::statement, later, not_applied, ErrorCode::lock_timeout},
      {SQLITE_INTERRUPT, Phase::statement, later, not_applied, ErrorCode::lock_timeout},
      {SQLITE_SCHEMA, Phase::statement, reread, not_applied, ErrorCode::serialization_failure},
      {SQLITE_FULL, Phase::statement, ask, not_applied, ErrorCode::disk_full},
      {SQLITE_FULL, Phase::commit, ask, unknown, ErrorCode::disk_full},
      {SQLITE_NOLFS, Phase::statement, ask, not_applied, ErrorCode::disk_full},
      {SQLITE_IOERR, Phase::statement, later, not_applied, ErrorCode::store_unreachable},
      {SQLITE_IOERR_WRITE, Phase::statement, later, not_applied, ErrorCode::store_unreachable},
      {SQLITE_IOERR_FSYNC, Phase::commit, later, unknown, ErrorCode::commit_unknown},
      {SQLITE_IOERR, Phase::commit, later, unknown, ErrorCode::commit_unknown},
      {SQLITE_NOMEM, Phase::statement, later, not_applied, ErrorCode::store_unreachable},
      {SQLITE_NOMEM, Phase::commit, later, unknown, ErrorCode::commit_unknown},
      {SQLITE_READONLY, Phase::statement, ask, not_applied, ErrorCode::store_read_only},
      {SQLITE_READONLY, Phase::commit, ask, not_applied, ErrorCode::store_read_only},
      {SQLITE_READONLY_DIRECTORY, Phase::statement, ask, not_applied, ErrorCode::store_read_only},
      {SQLITE_READONLY_DBMOVED, Phase::statement, later, not_applied, ErrorCode::store_unreachable},
      {SQLITE_CORRUPT, Phase::statement, ask, not_applied, ErrorCode::store_damaged},
      {SQLITE_CORRUPT_INDEX, Phase::statement, ask, not_applied, ErrorCode::store_damaged},
      {SQLITE_CORRUPT, Phase::commit, ask, unknown, ErrorCode::store_damaged},
      {SQLITE_NOTADB, Phase::statement, ask, not_applied, ErrorCode::store_damaged},
      {SQLITE_CANTOPEN, Phase::statement, later, not_applied, ErrorCode::store_unreachable},
      {SQLITE_CANTOPEN_ISDIR, Phase::statement, fix, not_applied, ErrorCode::store_unreachable},
      {SQLITE_PERM, Phase::statement, ask, not_applied, ErrorCode::permission_denied},
      {SQLITE_AUTH, Phase::statement, fix, not_applied, ErrorCode::handler_misused},
      {SQLITE_CONSTRAINT, Phase::statement, fix, not_applied, ErrorCode::constraint_violated},
      {SQLITE_CONSTRAINT_UNIQUE, Phase::statement, fix, not_applied, ErrorCode::constraint_violated},
      {SQLITE_CONSTRAINT_PRIMARYKEY, Phase::statement, fix, not_applied, ErrorCode::constraint_violated},
      {SQLITE_CONSTRAINT_NOTNULL, Phase::statement, fix, not_applied, ErrorCode::constraint_violated},
      {SQLITE_CONSTRAINT_CHECK, Phase::statement, fix, not_applied, ErrorCode::constraint_violated},
      {SQLITE_CONSTRAINT_TRIGGER, Phase::statement, fix, not_applied, ErrorCode::constraint_violated},
      {SQLITE_CONSTRAINT_FOREIGNKEY, Phase::commit, fix, not_applied, ErrorCode::constraint_violated},
      {SQLITE_CONSTRAINT_DATATYPE, Phase::statement, fix, not_applied, ErrorCode::bad_value},
      {SQLITE_MISMATCH, Phase::statement, fix, not_applied, ErrorCode::bad_value},
      {SQLITE_TOOBIG, Phase::statement, fix, not_applied, ErrorCode::bad_value},
      {SQLITE_RANGE, Phase::statement, fix, not_applied, ErrorCode::bad_statement},
      {SQLITE_ERROR, Phase::statement, fix, not_applied, ErrorCode::bad_statement},
      {SQLITE_ABORT, Phase::statement, fix, not_applied, ErrorCode::bad_statement},
      {SQLITE_MISUSE, Phase::statement, fix, not_applied, ErrorCode::bad_statement},
      {SQLITE_NOTFOUND, Phase::statement, fix, not_applied, ErrorCode::bad_statement},
      {SQLITE_NOTFOUND, Phase::commit, fix, unknown, ErrorCode::bad_statement},
  };
  for (const Case& c : cases) {
    const auto error = translate(c.result, c.phase, "doing", "said");
    SCOPED_TRACE(std::string(sqlite3_errstr(c.result)) + ", " + std::to_string(c.result) +
                 (c.phase == Phase::commit ? " at commit" : ""));
    EXPECT_EQ(error.remedy, c.remedy);
    EXPECT_EQ(error.certainty, c.certainty);
    EXPECT_EQ(error.code, c.code);
  }
}

TEST(SqliteErrors, ATableOfSemelThatIsNotThereIsAMissingSchema) {
  const auto error = translate(SQLITE_ERROR, Phase::statement, "cannot read the SQL", "no such table: semel_records");
  EXPECT_EQ(error.code, ErrorCode::schema_missing);
  EXPECT_EQ(error.remedy, ask);
  EXPECT_EQ(error.message, "cannot read the SQL: no such table: semel_records (SQL logic error); run `semel migrate`");
}

TEST(SqliteErrors, SaysWhatFailedAndWithWhat) {
  EXPECT_EQ(translate(SQLITE_BUSY, Phase::statement, "cannot begin", "database is locked").message,
            "cannot begin: database is locked");
}

}  // namespace
}  // namespace semel::sqlite
