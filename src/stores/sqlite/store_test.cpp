// What only SQLite does in a store: opening files, and walking over them.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <span>

#include "base/embedded.hpp"
#include "base/encoding.hpp"
#include "stores/sqlite/connection.hpp"
#include "stores/sqlite/rows.hpp"
#include "stores/sqlite/test_database.hpp"
#include "testing/lease_units_gtest.hpp"
#include "values/stored_form.hpp"

namespace semel::sqlite {

namespace migrations {
std::span<const EmbeddedFile> embedded_files();
}

namespace {

namespace fs = std::filesystem;

/// Gives up root's right to ignore permissions, while it lives.
class Unprivileged {
 public:
  explicit Unprivileged(const fs::path& folder) {
    if (was_root_ && ::chown(folder.c_str(), nobody, nobody) == 0 && ::seteuid(nobody) != 0)
      throw std::runtime_error("cannot give up root");
  }
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  static constexpr ::uid_t nobody = 65534;
  const bool was_root_ = ::geteuid() == 0;
};

Error error_of(const std::string& path) {
  auto opened = open({.path = path, .lock_timeout = std::chrono::milliseconds(200)});
  EXPECT_FALSE(opened.has_value()) << path;
  return opened ? fix_call(ErrorCode::no_key, "none") : std::move(opened).error();
}

TEST(SqliteStore, OpensAFileThatIsNotThereYet) {
  TestFile file;
  EXPECT_TRUE(open(file.options()).has_value());
  EXPECT_TRUE(fs::exists(file.path()));
}

TEST(SqliteStore, SaysThatThereIsNoDirectory) {
  TestFile file;
  const auto error = error_of((file.folder() / "missing" / "shop.db").string());
  EXPECT_EQ(error.code, ErrorCode::store_unreachable);
  EXPECT_NE(error.message.find("there is no directory " + (file.folder() / "missing").string()), std::string::npos);
}

TEST(SqliteStore, SaysThatThePathIsADirectory) {
  TestFile file;
  const auto error = error_of(file.folder().string());
  EXPECT_EQ(error.code, ErrorCode::store_unreachable);
  EXPECT_EQ(error.remedy, Remedy::fix_call);
  EXPECT_NE(error.message.find("is a directory"), std::string::npos);
}

TEST(SqliteStore, SaysThatTheFileIsNoDatabase) {
  TestFile file;
  std::ofstream(file.path()) << std::string(5000, 'x');
  const auto error = error_of(file.path());
  EXPECT_EQ(error.code, ErrorCode::store_damaged);
  EXPECT_EQ(error.remedy, Remedy::ask_operator);
  EXPECT_NE(error.message.find(file.path()), std::string::npos);
  EXPECT_EQ(fs::file_size(file.path()), 5000U);
}

TEST(SqliteStore, WantsAFile) {
  for (const std::string path : {"", ":memory:"}) EXPECT_EQ(error_of(path).code, ErrorCode::config_bad_value);
}

TEST(SqliteStore, SaysThatTheFileIsReadOnly) {
  TestFile file;
  open(file.options()).value()->migrate().value();
  ::chmod(file.path().c_str(), 0444);
  const Unprivileged unprivileged(file.folder());
  const auto error = error_of(file.path());
  EXPECT_EQ(error.code, ErrorCode::store_read_only);
  EXPECT_EQ(error.remedy, Remedy::ask_operator);
  EXPECT_NE(error.message.find(file.path()), std::string::npos);
}

TEST(SqliteStore, SaysThatTheFileMayNotBeRead) {
  TestFile file;
  open(file.options()).value()->migrate().value();
  ::chmod(file.path().c_str(), 0);
  const Unprivileged unprivileged(file.folder());
  EXPECT_EQ(error_of(file.path()).code, ErrorCode::permission_denied);
}

TEST(SqliteStore, SaysThatTheDirectoryIsReadOnly) {
  TestFile file;
  const Unprivileged unprivileged(file.folder());
  ::chmod(file.folder().c_str(), 0555);
  const auto error = error_of(file.path());
  ::chmod(file.folder().c_str(), 0755);
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_NE(error.message.find(file.folder().string()), std::string::npos);
}

TEST(SqliteStore, SaysThatAnotherProgramHoldsTheNewFile) {
  TestFile file;
  const auto holder = file.open();
  const auto session = holder->open_session().value();
  session->begin().value();
  const auto migrated = file.open()->migrate();
  ASSERT_FALSE(migrated.has_value());
  EXPECT_EQ(migrated.error().code, ErrorCode::lock_timeout);
  session->rollback();
  EXPECT_EQ(file.open()->migrate().value(), (std::vector{1, 2}));
}

TEST(SqliteStore, LeavesTheUsersTablesAlone) {
  TestFile file;
  const auto store = file.open();
  auto session = store->open_session().value();
  auto& sql = dynamic_cast<SqlSession&>(*session);
  session->begin().value();
  sql.execute("CREATE TABLE invoices (id TEXT)", {}).value();
  session->commit().value();
  store->migrate().value();
  session->begin().value();
  const auto rows = sql.query(
                           "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'semel\\_%' "
                           "ESCAPE '\\' AND name NOT LIKE 'sqlite%'",
                           {})
                        .value();
  EXPECT_EQ(rows.rows.size(), 1U);
}

TEST(SqliteStore, KeepsALeaseAsLongAsItWasAsked) {
  TestFile file;
  const auto store = file.open();
  store->migrate().value();
  auto session = store->open_session().value();
  testing::LeaseUnits(*store, dynamic_cast<SqlSession&>(*session),
                      {.now = std::string(now_sql) + " * 1000",
                       .due_at = "due_at * 1000",
                       .intents = "semel_intents",
                       .outbox = "semel_outbox",
                       .queue = "semel_queue"})
      .expect_kept();
}

TEST(SqliteStore, PurgesBehindLongLivedRecordsInBoundedStretches) {
  TestFile file;
  const auto store = file.open();
  store->migrate().value();
  auto session = store->open_session().value();
  auto& sql = dynamic_cast<SqlSession&>(*session);
  const std::string insert =
      "INSERT INTO semel_records (id, expires_at, recorded_at, state, handler, principal, key, fingerprint, source,"
      " transport_id) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ";
  session->begin().value();
  sql.execute(insert + "150000) SELECT randomblob(16), 9000000000000, 0, 1, 'h', X'', X'01', X'', '', X'' FROM n", {})
      .value();
  sql.execute(insert + "5) SELECT randomblob(16), 1, 0, 1, 'h', X'', X'01', X'', '', X'' FROM n", {}).value();
  session->commit().value();
  EXPECT_EQ(store->purge(3).value(), 0U) << "one step looks at a bounded number of records";
  EXPECT_EQ(store->purge(3).value(), 3U);
  EXPECT_EQ(store->purge(3).value(), 2U);
  session->begin().value();
  sql.execute("UPDATE semel_records SET expires_at = 1 WHERE rowid = 1", {}).value();
  session->commit().value();
  std::size_t removed = 0;
  for (int step = 0; step < 3; ++step) removed += store->purge(3).value();
  EXPECT_EQ(removed, 1U) << "the walk starts over at the end";
}

/// A file as version 1 left it, with a record and a dead letter in it.
void make_old_file(const TestFile& file) {
  const auto connection = Connection::open(file.options(), Connection::Create::yes).value();
  connection->run_script(std::string(migrations::embedded_files()[0].text)).value();
  connection->run_script("INSERT INTO semel_migrations (version) VALUES (1)").value();
  const RecordId id{.scope = {"h", ""}, .key = Key::from_bytes("old").value()};
  const auto digest = hex_encode(record_digest(id.scope, id.key).view());
  connection
      ->run_script("INSERT INTO semel_records VALUES (x'" + digest +
                   "', 9000000000000, 1, 2, 'h', x'', x'016f6c64', x'', 'src', x'', NULL)")
      .value();
  connection
      ->run_script(
          "INSERT INTO semel_dead_letters (id, reason, code, detail, handler, principal, key, fingerprint,"
          " recorded_fingerprint, source, sender, sender_verified, transport_id, body, attributes, attempts,"
          " set_aside_at) VALUES ('l', 'rejected', 106, '', 'h', x'', x'', x'', x'', 'src', 0, 0, x'', x'626f6479',"
          " x'0100000000', 1, 1)")
      .value();
}

TEST(SqliteStore, RefusesAnOldFileThenMigratesItWithItsRows) {
  TestFile file;
  make_old_file(file);
  const auto store = file.open();
  EXPECT_EQ(store->check().value().at(0).code, ErrorCode::schema_missing);
  EXPECT_EQ(store->migrate().value(), std::vector{2});
  const RecordId id{.scope = {"h", ""}, .key = Key::from_bytes("old").value()};
  const auto old = store->find_record(id).value();
  ASSERT_TRUE(old.has_value());
  EXPECT_EQ(old->state, RecordState::rejected);
  EXPECT_EQ(store->dead_letter("l").value()->body, "body");
  const auto session = store->open_session().value();
  Record open{.scope = {"h", ""}, .key = Key::from_bytes("new").value(), .state = RecordState::ambiguous};
  session->begin().value();
  session->record({&open, 1}).value();
  session->commit().value();
  EXPECT_EQ(store->find_record({open.scope, open.key}).value()->state, RecordState::ambiguous);
  EXPECT_EQ(store->purge(10).value(), 0U);
}

}  // namespace
}  // namespace semel::sqlite
