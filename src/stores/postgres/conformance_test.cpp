// The store contract, promise by promise, on a live PostgreSQL: with prepared statements, and without any session
// state as it must be behind a transaction pooler.
#include <atomic>

#include "stores/postgres/live_server.hpp"
#include "testing/store_conformance_gtest.hpp"

namespace semel::postgres {
namespace {

using testing::StoreUnderTest;

class LiveDatabase final : public testing::TestDatabase {
 public:
  explicit LiveDatabase(bool prepared_statements) : prepared_statements_(prepared_statements) {
    static std::atomic<int> number{0};
    name_ = "conformance_" + std::to_string(getpid()) + "_" + std::to_string(++number);
    server_.run("CREATE DATABASE " + name_);
  }
  ~LiveDatabase() override { server_.run("DROP DATABASE " + name_ + " WITH (FORCE)"); }

  std::unique_ptr<semel::Store> open() override { return postgres::open(options()).value(); }

  std::unique_ptr<semel::Store> open_unsafe(bool allowed_by_name) override {
    auto unsafe = options();
    unsafe.connection += " options='-c synchronous_commit=off'";
    unsafe.allow_unsafe_durability = allowed_by_name;
    return postgres::open(unsafe).value();
  }

  std::string migrations_table() const override { return "semel.migrations"; }

  bool cut_connections() override {
    constexpr auto wait_ms = "10000";
    server_.run("SELECT count(pg_terminate_backend(pid, " + std::string(wait_ms) +
                ")) FROM pg_stat_activity WHERE datname = '" + name_ + "'");
    return true;
  }

 private:
  Options options() const {
    Options options;
    options.connection = live_server_at(live_server_part("port"), name_);
    options.lock_timeout = std::chrono::milliseconds(500);
    options.prepared_statements = prepared_statements_;
    return options;
  }

  bool prepared_statements_;
  Bystander server_;
  std::string name_;
};

SEMEL_STORE_CONFORMANCE(Postgres, [] { return StoreUnderTest{[] { return std::make_unique<LiveDatabase>(true); }}; });

SEMEL_STORE_CONFORMANCE(StatelessPostgres,
                        [] { return StoreUnderTest{[] { return std::make_unique<LiveDatabase>(false); }}; });

}  // namespace
}  // namespace semel::postgres
