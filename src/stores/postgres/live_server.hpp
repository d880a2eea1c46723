// For tests: a schema of a test's own on the server that script/with-postgres started.
#pragma once

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <semel/stores/postgres.hpp>
#include <stdexcept>
#include <string>

#include "stores/postgres/connection.hpp"
#include "stores/postgres/schema.hpp"

namespace semel::postgres {

inline std::string live_server() {
  const char* uri = std::getenv("SEMEL_TEST_POSTGRES");
  if (!uri || !*uri)
    throw std::runtime_error("no PostgreSQL to test with: run the tests by `script/with-postgres ctest …`");
  return uri;
}

/// The value of one keyword in a connection string.
inline std::string part_of(const std::string& connection, const std::string& keyword) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(connection.c_str(), nullptr), &PQconninfoFree);
  for (const auto* option = options.get(); option && option->keyword; ++option)
    if (option->keyword == keyword && option->val) return option->val;
  return "";
}
inline std::string live_server_part(const std::string& keyword) { return part_of(live_server(), keyword); }

/// The server's address as keywords, which may be added to; `port` and `database` where they are another's.
inline std::string live_server_at(const std::string& port, const std::string& database = live_server_part("dbname")) {
  return "host=" + live_server_part("host") + " port=" + port + " user=" + live_server_part("user") +
         " dbname=" + database + " ";
}

/// A plain connection for what a test does beside the store. Throws where the server says no.
class Bystander {
 public:
  explicit Bystander(const std::string& uri = live_server()) : handle_(PQconnectdb(uri.c_str()), &PQfinish) {
    if (PQstatus(handle_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(handle_.get()));
    run("SET client_min_messages = error");
  }

  /// The first column of the first row; empty where there is none.
  std::string run(const std::string& sql) {
    const ResultHandle result(PQexec(handle_.get(), sql.c_str()));
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
      throw std::runtime_error(sql + ": " + PQresultErrorMessage(result.get()));
    return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
  }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> handle_;
};

/// A test with a schema of its own for Semel's tables and another for the user's.
class LiveServer : public ::testing::Test {
 protected:
  LiveServer() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    const auto number = std::to_string(getpid()) + "_" + test->name();
    options_.connection = live_server();
    options_.schema = ("s" + number).substr(0, 63);
    options_.lock_timeout = std::chrono::milliseconds(300);
  }
  ~LiveServer() override { bystander_.run("DROP SCHEMA IF EXISTS " + quoted_identifier(options_.schema) + " CASCADE"); }

  /// One whole transaction with one record in it.
  static Result<void> record_in_one_go(SqlSession& session, const Record& record) {
    if (auto begun = session.begin(); !begun) return begun;
    const auto found = session.claim(std::vector<RecordId>{{record.scope, record.key}});
    if (!found) return found.error();
    if (!(*found)[0])
      if (auto sent = session.record({&record, 1}); !sent) return sent;
    return session.commit();
  }

  std::unique_ptr<Store> opened(const Options& options) { return open(options).value(); }
  std::unique_ptr<Store> migrated() {
    auto store = opened(options_);
    store->migrate().value();
    return store;
  }
  static std::unique_ptr<SqlSession> session_of(Store& store) {
    return std::unique_ptr<SqlSession>(static_cast<SqlSession*>(store.open_session().value().release()));
  }
  std::string in_schema(const std::string& table) const { return quoted_identifier(options_.schema) + "." + table; }
  std::string count(const std::string& table) { return bystander_.run("SELECT count(*) FROM " + in_schema(table)); }

  static RecordId id(const std::string& key, const std::string& handler = "h", const std::string& principal = "") {
    return {.scope = {.handler = handler, .principal = principal}, .key = Key::from_bytes(key).value()};
  }
  static Record fresh(const RecordId& id) {
    return Record{.scope = id.scope,
                  .key = id.key,
                  .fingerprint = Fingerprint::from_bytes("f"),
                  .state = RecordState::completed,
                  .answer = Answer{.status = 201, .headers = {}, .body = "done"},
                  .source = "src",
                  .transport_id = "t",
                  .retention = std::chrono::hours(1),
                  .replaces_rejection = false,
                  .recorded_at = {},
                  .expires_at = {}};
  }

  Options options_;
  Bystander bystander_;
};

}  // namespace semel::postgres
