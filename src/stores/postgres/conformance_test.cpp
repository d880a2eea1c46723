// The store contract, promise by promise, on a live PostgreSQL: directly with prepared statements, and through a
// PgBouncer that pools transactions, without.
#include "stores/postgres/live_server.hpp"
#include "testing/store_conformance_gtest.hpp"

namespace semel::postgres {
namespace {

using testing::StoreUnderTest;

std::string pooler_port() {
  const char* uri = std::getenv("SEMEL_TEST_POOLER");
  if (!uri || !*uri)
    throw std::runtime_error(
        "no PgBouncer to test with: install it, and run the tests by `script/with-postgres ctest …`");
  return part_of(uri, "port");
}

/// One database for all tests of this process, which leave nothing in it: to make and drop one each takes longer than
/// most of them.
class SharedDatabase {
 public:
  static const std::string& name() {
    static const SharedDatabase shared;
    return shared.name_;
  }

 private:
  SharedDatabase() : name_("conformance_" + std::to_string(getpid())) { Bystander().run("CREATE DATABASE " + name_); }
  ~SharedDatabase() { Bystander().run("DROP DATABASE " + name_ + " WITH (FORCE)"); }
  std::string name_;
};

class LiveDatabase final : public testing::TestDatabase {
 public:
  /// `pooler_port` is empty for the server itself.
  explicit LiveDatabase(std::string pooler_port) : pooler_port_(std::move(pooler_port)) {}
  ~LiveDatabase() override {
    Bystander(live_server_at(live_server_part("port"), name_))
        .run("DROP SCHEMA IF EXISTS semel CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  }

  std::unique_ptr<semel::Store> open() override {
    auto usual = options(pooler_port_.empty() ? live_server_part("port") : pooler_port_);
    usual.prepared_statements = pooler_port_.empty();
    return postgres::open(usual).value();
  }

  std::unique_ptr<semel::Store> open_unsafe(bool allowed_by_name) override {
    auto unsafe = options(live_server_part("port"));  // a pooler takes no settings with the connection
    unsafe.connection += " options='-c synchronous_commit=off'";
    unsafe.allow_unsafe_durability = allowed_by_name;
    return postgres::open(unsafe).value();
  }

  std::string migrations_table() const override { return "semel.migrations"; }

  bool cut_connections() override {
    constexpr auto wait_ms = "10000";
    Bystander().run("SELECT count(pg_terminate_backend(pid, " + std::string(wait_ms) +
                    ")) FROM pg_stat_activity WHERE datname = '" + name_ + "'");
    return true;
  }

 private:
  Options options(const std::string& server_port) const {
    Options options;
    options.connection = live_server_at(server_port, name_);
    options.lock_timeout = std::chrono::milliseconds(500);
    return options;
  }

  std::string pooler_port_;
  std::string name_ = SharedDatabase::name();
};

SEMEL_STORE_CONFORMANCE(Postgres, [] { return StoreUnderTest{[] { return std::make_unique<LiveDatabase>(""); }}; });

SEMEL_STORE_CONFORMANCE(PooledPostgres,
                        [] { return StoreUnderTest{[] { return std::make_unique<LiveDatabase>(pooler_port()); }}; });

}  // namespace
}  // namespace semel::postgres
