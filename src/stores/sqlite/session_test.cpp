// What only SQLite does in a session: its SQL, its values, its locks, its file.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <array>
#include <cmath>
#include <fstream>
#include <limits>

#include "stores/sqlite/test_database.hpp"

namespace semel::sqlite {
namespace {

namespace fs = std::filesystem;

Value text(std::string value) { return Value{std::in_place_type<std::string>, std::move(value)}; }
Value integer(std::int64_t value) { return Value{std::in_place_type<std::int64_t>, value}; }

/// Another program's connection to the file.
class Stranger {
 public:
  explicit Stranger(const std::string& path) { sqlite3_open(path.c_str(), &handle_); }
  ~Stranger() { sqlite3_close(handle_); }
  int run(const char* sql) { return sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr); }

 private:
  sqlite3* handle_ = nullptr;
};

class SqliteSession : public ::testing::Test {
 protected:
  SqliteSession() : store_(file_.open()) {
    store_->migrate().value();
    session_ = open_session();
    session_->begin().value();
    session_->execute("CREATE TABLE effects (name TEXT, amount)", {}).value();
    session_->execute("CREATE TABLE once (name TEXT PRIMARY KEY)", {}).value();
    session_->commit().value();
  }

  std::unique_ptr<SqlSession> open_session() {
    auto session = store_->open_session().value();
    return std::unique_ptr<SqlSession>(dynamic_cast<SqlSession*>(session.release()));
  }

  std::int64_t count(const std::string& table) {
    const auto session = open_session();
    session->begin().value();
    const auto rows = session->query("SELECT count(*) FROM " + table, {}).value();
    return std::get<std::int64_t>(rows.rows[0][0]);
  }

  /// The error of one statement in a transaction that wrote an effect before; nothing of it is left.
  Error error_of(std::string_view sql, std::span<const Value> values = {}) {
    session_->begin().value();
    session_->execute("INSERT INTO effects VALUES ('before', 1)", {}).value();
    const auto failed = session_->query(sql, values);
    EXPECT_FALSE(failed.has_value()) << sql;
    EXPECT_FALSE(session_->commit().has_value()) << sql;
    session_->rollback();
    EXPECT_EQ(count("effects"), 0) << sql;
    return failed ? fix_call(ErrorCode::no_key, "none") : failed.error();
  }

  Record record_of(const std::string& key) {
    Record record{.scope = {"h", ""}, .key = Key::from_bytes(key).value()};
    record.retention = std::chrono::hours(1);
    return record;
  }

  TestFile file_;
  std::unique_ptr<semel::Store> store_;
  std::unique_ptr<SqlSession> session_;
};

TEST_F(SqliteSession, KeepsAHandlersSqlAwayFromTheTransaction) {
  for (const char* sql :
       {"BEGIN", "BEGIN IMMEDIATE", "COMMIT", "END", "ROLLBACK", "SAVEPOINT s", "RELEASE s", "ROLLBACK TO s",
        "/* quietly */ COMMIT", "ATTACH ':memory:' AS other", "DETACH main", "PRAGMA synchronous = OFF",
        "PRAGMA main.synchronous = 0", "PRAGMA Journal_Mode(DELETE)", "PRAGMA writable_schema = ON",
        "PRAGMA locking_mode = EXCLUSIVE", "PRAGMA query_only = 1", "PRAGMA wal_checkpoint(TRUNCATE)"})
    EXPECT_EQ(error_of(sql).code, ErrorCode::handler_misused) << sql;
}

TEST_F(SqliteSession, KeepsNothingWhereSqlEndsTheTransactionFromInside) {
  session_->begin().value();
  session_->execute("INSERT INTO once VALUES ('there')", {}).value();
  session_
      ->execute(
          "CREATE TRIGGER ends BEFORE INSERT ON once WHEN NEW.name = 'end' BEGIN SELECT RAISE(ROLLBACK, 'no'); "
          "END",
          {})
      .value();
  session_->commit().value();
  EXPECT_EQ(error_of("INSERT OR ROLLBACK INTO once VALUES ('there')").code, ErrorCode::constraint_violated);
  EXPECT_EQ(error_of("INSERT INTO once VALUES ('end')").code, ErrorCode::constraint_violated);
}

TEST_F(SqliteSession, RunsNothingByItselfAfterTheTransactionHasEnded) {
  session_->begin().value();
  session_->execute("INSERT INTO once VALUES ('there')", {}).value();
  EXPECT_FALSE(session_->execute("INSERT OR ROLLBACK INTO once VALUES ('there')", {}).has_value());
  EXPECT_FALSE(session_->execute("INSERT INTO effects VALUES ('alone', 1)", {}).has_value());
  EXPECT_EQ(count("effects"), 0);
  session_->rollback();
  EXPECT_EQ(session_->execute("INSERT INTO effects VALUES ('alone', 1)", {}).error().code, ErrorCode::handler_misused);
  EXPECT_EQ(count("effects"), 0);
}

TEST_F(SqliteSession, TakesOneStatementACall) {
  for (const char* sql :
       {"INSERT INTO effects VALUES ('a', 1); INSERT INTO effects VALUES ('b', 1)", "SELECT 1; COMMIT",
        "SELECT 1; nonsense", "CREATE TABLE t (a); INSERT INTO t VALUES (1)", "", " ", "-- nothing"})
    EXPECT_EQ(error_of(sql).code, ErrorCode::bad_statement) << sql;
  EXPECT_EQ(error_of(std::string_view("SELECT 1\0, 2", 12)).code, ErrorCode::bad_statement);
  session_->begin().value();
  for (const char* sql : {"SELECT 1;", "SELECT 1 ; ; ", "SELECT 1; -- note", "SELECT 1 /* note */;/* note */\n"})
    EXPECT_TRUE(session_->query(sql, {}).has_value()) << sql;
}

TEST_F(SqliteSession, WantsExactlyTheParametersOfTheStatement) {
  const std::array two{integer(1), integer(2)};
  for (const char* sql : {"SELECT $1", "SELECT $2", "SELECT $1, $2, $3", "SELECT $1, $3", "SELECT 1"})
    EXPECT_EQ(error_of(sql, two).code, ErrorCode::bad_statement) << sql;
  for (const char* sql : {"SELECT ?, ?", "SELECT ?1, ?2", "SELECT :a, :b", "SELECT @a, $1", "SELECT $1::text, $2",
                          "SELECT $a, $1", "SELECT $0, $1"})
    EXPECT_EQ(error_of(sql, two).code, ErrorCode::bad_statement) << sql;
  session_->begin().value();
  const auto rows = session_->query("SELECT $2, $1, $1, $2 + $1", two).value();
  EXPECT_EQ(rows.rows[0], (std::vector{integer(2), integer(1), integer(1), integer(3)}));
}

TEST_F(SqliteSession, ReadsValuesBackWithTheirTypes) {
  using namespace std::string_literals;
  const std::vector<Value> values{nullptr,
                                  integer(std::numeric_limits<std::int64_t>::min()),
                                  integer(std::numeric_limits<std::int64_t>::max()),
                                  Value(0.1),
                                  text(""),
                                  text("na\u00efve 'quoted' \U0001F600"),
                                  Value(Blob{"\0\xff"s}),
                                  Value(Blob{""})};
  session_->begin().value();
  const auto rows = session_->query("SELECT $1, $2, $3, $4, $5, $6, $7, $8", values).value();
  EXPECT_EQ(rows.rows[0], values);
  const std::array others{Value{std::in_place_type<bool>, true}, Value(Decimal{"12345678901234567890.50"})};
  EXPECT_EQ(session_->query("SELECT $1, $2", others).value().rows[0],
            (std::vector{integer(1), text("12345678901234567890.50")}));
}

TEST_F(SqliteSession, RefusesValuesThatSqliteWouldChange) {
  using namespace std::string_literals;
  for (const Value& value : {Value(std::nan("")), text("a\0b"s), text("\xff"), Value(Decimal{"1\0"s})})
    EXPECT_EQ(error_of("SELECT $1", {&value, 1}).code, ErrorCode::bad_value);
}

TEST_F(SqliteSession, WritesASetRowByRow) {
  const std::vector<std::vector<Value>> columns{
      {text("a"), text("b\n\"\\\x01"), text("\u00e9"), nullptr},
      {integer(std::numeric_limits<std::int64_t>::max()), Value(0.5), Value(Decimal{"1234567890123456789012"}),
       Value{std::in_place_type<bool>, true}}};
  session_->begin().value();
  const auto written = session_->execute_set("INSERT INTO effects VALUES ($1, $2)", columns);
  EXPECT_EQ(written.value(), 4);
  const auto rows = session_->query("SELECT name, amount FROM effects ORDER BY rowid", {}).value();
  EXPECT_EQ(rows.rows[0], (std::vector{columns[0][0], columns[1][0]}));
  EXPECT_EQ(rows.rows[1], (std::vector{columns[0][1], columns[1][1]}));
  EXPECT_EQ(rows.rows[2], (std::vector{columns[0][2], text("1234567890123456789012")}));
  EXPECT_EQ(rows.rows[3], (std::vector{Value(nullptr), integer(1)}));
  session_->commit().value();
}

TEST_F(SqliteSession, CountsTheRowsOfASetThatWereNotThere) {
  session_->begin().value();
  session_->execute("INSERT INTO once VALUES ('b')", {}).value();
  const std::vector<std::vector<Value>> names{{text("a"), text("b"), text("c"), text("c")}};
  const auto written = session_->execute_set("INSERT INTO once VALUES ($1) ON CONFLICT DO NOTHING", names);
  EXPECT_EQ(written.value(), 2);
  session_->commit().value();
  EXPECT_EQ(count("once"), 3) << "a row that was there already must not stop the rows after it";
}

TEST_F(SqliteSession, RefusesASetWithABadValueOrUnequalColumns) {
  const std::vector<std::vector<Value>> bad[] = {{{text("a"), text("\xff")}}, {{text("a"), text("b")}, {text("a")}}};
  for (const auto& columns : bad) {
    session_->begin().value();
    EXPECT_EQ(session_->execute_set("SELECT $1", columns).error().code, ErrorCode::bad_value);
    EXPECT_FALSE(session_->commit().has_value());
    session_->rollback();
  }
}

TEST_F(SqliteSession, CountsNoRowsForAStatementThatChangesNone) {
  session_->begin().value();
  EXPECT_EQ(session_->execute_counted("INSERT INTO effects VALUES ('a', 1), ('b', 1)", {}).value(), 2);
  EXPECT_EQ(session_->execute_counted("CREATE TABLE other (a)", {}).value(), 0);
  EXPECT_EQ(session_->execute_counted("UPDATE effects SET amount = 2 WHERE name = 'c'", {}).value(), 0);
  EXPECT_EQ(session_->execute_counted("SELECT * FROM effects", {}).value(), 0);
}

TEST_F(SqliteSession, KeepsManyDifferentStatementsInBounds) {
  session_->begin().value();
  for (int number = 0; number < 1000; ++number)
    EXPECT_EQ(session_->query("SELECT " + std::to_string(number), {}).value().rows[0][0], integer(number));
}

TEST_F(SqliteSession, HoldsTheWriteLockFromItsBeginning) {
  // A transaction that reads, and writes after another one has committed, fails at once in SQLite, whatever the
  // timeout. So the lock is taken, and waited for, before the first read.
  session_->begin().value();
  session_->query("SELECT * FROM effects", {}).value();
  Stranger stranger(file_.path());
  EXPECT_EQ(stranger.run("INSERT INTO effects VALUES ('stranger', 1)"), SQLITE_BUSY);
  EXPECT_TRUE(session_->execute("INSERT INTO effects VALUES ('a', 1)", {}).has_value());
  EXPECT_TRUE(session_->commit().has_value());
  EXPECT_EQ(stranger.run("INSERT INTO effects VALUES ('stranger', 1)"), SQLITE_OK);
}

TEST_F(SqliteSession, SaysThatTheFileIsLockedAndGoesOnLater) {
  Stranger stranger(file_.path());
  ASSERT_EQ(stranger.run("BEGIN IMMEDIATE"), SQLITE_OK);
  const auto locked = session_->begin();
  ASSERT_FALSE(locked.has_value());
  EXPECT_EQ(locked.error().code, ErrorCode::lock_timeout);
  EXPECT_EQ(locked.error().remedy, Remedy::retry_later);
  EXPECT_NE(locked.error().message.find(file_.path()), std::string::npos);
  ASSERT_EQ(stranger.run("COMMIT"), SQLITE_OK);
  EXPECT_TRUE(session_->begin().has_value());
}

TEST_F(SqliteSession, WaitsForTheDiskAtEveryCommit) {
  session_->begin().value();
  EXPECT_EQ(session_->query("PRAGMA synchronous", {}).value().rows[0][0], integer(2));
  EXPECT_EQ(session_->query("PRAGMA journal_mode", {}).value().rows[0][0], text("wal"));
}

TEST_F(SqliteSession, LosesNothingOnAFullDisk) {
  session_->begin().value();
  session_->execute("INSERT INTO effects VALUES ('before', 1)", {}).value();
  session_->execute("PRAGMA max_page_count = 30", {}).value();
  const auto full = session_->execute("INSERT INTO effects VALUES ('big', zeroblob(1000000))", {});
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, ErrorCode::disk_full);
  EXPECT_EQ(full.error().remedy, Remedy::ask_operator);
  EXPECT_EQ(full.error().certainty, Certainty::not_applied);
  EXPECT_FALSE(session_->execute("INSERT INTO effects VALUES ('alone', 1)", {}).has_value());
  EXPECT_FALSE(session_->commit().has_value());
  session_->rollback();
  EXPECT_EQ(count("effects"), 0);
  session_->begin().value();
  session_->execute("PRAGMA max_page_count = 1000000", {}).value();
  session_->execute("INSERT INTO effects VALUES ('after', zeroblob(1000000))", {}).value();
  session_->commit().value();
  EXPECT_EQ(count("effects"), 1);
}

TEST_F(SqliteSession, KeepsNoEffectWhoseAnswerFindsNoRoom) {
  auto record = record_of("a");
  record.answer = Answer{.body = std::string(Answer::body_size_max, 'x')};
  session_->begin().value();
  session_->execute("PRAGMA max_page_count = 30", {}).value();
  session_->execute("INSERT INTO effects VALUES ('a', 1)", {}).value();
  EXPECT_EQ(session_->record({&record, 1}).error().code, ErrorCode::disk_full);
  session_->rollback();
  EXPECT_EQ(count("effects"), 0);
  EXPECT_EQ(count("semel_records"), 0);
  record.answer.reset();
  session_->begin().value();
  session_->execute("INSERT INTO effects VALUES ('a', 1)", {}).value();
  session_->record({&record, 1}).value();
  session_->commit().value();
  EXPECT_EQ(count("effects"), 1);
}

TEST_F(SqliteSession, NeverMergesTwoKeysOfOneDigest) {
  auto record = record_of("a");
  const RecordId id{record.scope, record.key};
  session_->begin().value();
  session_->record({&record, 1}).value();
  session_->execute("UPDATE semel_records SET key = X'0162'", {}).value();
  session_->commit().value();
  session_->begin().value();
  const auto claimed = session_->claim({&id, 1});
  ASSERT_FALSE(claimed.has_value());
  EXPECT_EQ(claimed.error().code, ErrorCode::store_damaged);
  EXPECT_EQ(claimed.error().remedy, Remedy::ask_operator);
}

TEST_F(SqliteSession, WritesNothingIntoAFileThatHasGone) {
  const auto away = file_.folder() / "away";
  fs::create_directory(away);
  for (const char* suffix : {"", "-wal", "-shm"})
    if (fs::exists(file_.path() + suffix)) fs::rename(file_.path() + suffix, away / ("test.db" + std::string(suffix)));
  const auto gone = session_->begin();
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().code, ErrorCode::store_unreachable);
  EXPECT_EQ(gone.error().remedy, Remedy::retry_later);
  EXPECT_FALSE(fs::exists(file_.path())) << "a new, empty file would look like a store that has seen nothing";
  EXPECT_FALSE(store_->find_record({{"h", ""}, Key::from_bytes("a").value()}).has_value());
  for (const char* suffix : {"", "-wal", "-shm"})
    if (const auto from = away / ("test.db" + std::string(suffix)); fs::exists(from))
      fs::rename(from, file_.path() + suffix);
  EXPECT_TRUE(session_->begin().has_value());
  EXPECT_TRUE(session_->execute("INSERT INTO effects VALUES ('a', 1)", {}).has_value());
}

TEST_F(SqliteSession, SaysThatTheSchemaIsMissing) {
  session_->begin().value();
  session_->execute("DROP TABLE semel_records", {}).value();
  session_->commit().value();
  const auto record = record_of("a");
  session_->begin().value();
  EXPECT_EQ(session_->record({&record, 1}).error().code, ErrorCode::schema_missing);
}

}  // namespace
}  // namespace semel::sqlite
