// A connection to the simulated database: one transaction at a time, and what is left of it after a failure.
#pragma once

#include <memory>
#include <semel/sql.hpp>

#include "database.hpp"

namespace semel::sim {

/// A call to the store: a step of the world, and nobody else is in the store meanwhile unless it waits.
class Visit {
 public:
  explicit Visit(Host& host) : host_(host) { host_.enter(); }
  ~Visit() { host_.leave(); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Host& host_;
};

/// What session, ledger and outbox share.
class Connection {
 public:
  Connection(Database& database, Host& host, milliseconds lock_timeout)
      : database_(database), host_(host), lock_timeout_(lock_timeout) {}
  ~Connection();

  Result<void> begin();
  Result<void> commit();
  void rollback() noexcept;
  void mark(std::size_t number) { mark_ = number; }
  std::optional<std::size_t> failed_mark() const { return failed_mark_; }

  /// One call inside the transaction. `call` gives a Result.
  template <class Call>
  auto run(std::string_view what, Call call) -> decltype(call(std::declval<const Writer&>())) {
    const Visit visit(host_);
    if (auto usable = check(what); !usable) return usable.error();
    auto result = call(writer_);
    if (!result) fail(result.error(), true);
    return result;
  }

  Database& database() { return database_; }
  Host& host() { return host_; }
  /// For a planted bug: done once more where the commit's reply is lost.
  void repeats(std::function<void(const Writer&)> write) { writes_.push_back(std::move(write)); }

 private:
  Result<void> check(std::string_view what);
  void fail(const Error& error, bool marks);
  Error lose(std::string_view what);
  Result<void> lose_commit(bool commits, bool late);

  Database& database_;
  Host& host_;
  milliseconds lock_timeout_;
  Writer writer_;
  std::optional<Error> error_{};  ///< of this transaction: nothing but a rollback goes through any more
  std::optional<std::size_t> mark_{};
  std::optional<std::size_t> failed_mark_{};
  std::vector<std::function<void(const Writer&)>> writes_;
};

std::unique_ptr<Ledger> make_ledger(Connection& connection);
std::unique_ptr<Outbox> make_outbox(Connection& connection);

class SimulatedSession : public SqlSession {
 public:
  SimulatedSession(Database& database, Host& host, milliseconds lock_timeout)
      : connection_(database, host, lock_timeout),
        ledger_(make_ledger(connection_)),
        outbox_(make_outbox(connection_)) {}

  Result<void> begin() override;
  Result<std::vector<std::optional<Record>>> claim(std::span<const RecordId> ids) override;
  Result<void> record(std::span<const Record> records) override;
  Result<void> set_aside(std::span<const DeadLetter> letters) override;
  Result<void> commit() override;
  void rollback() noexcept override { connection_.rollback(); }
  void mark(std::size_t number) override { connection_.mark(number); }
  Result<void> synchronise() override;
  std::optional<std::size_t> failed_mark() const override { return connection_.failed_mark(); }
  Ledger& ledger() override { return *ledger_; }
  Outbox& outbox() override { return *outbox_; }

  Result<void> execute(std::string_view sql, std::span<const Value> parameters) override;
  Result<std::int64_t> execute_counted(std::string_view sql, std::span<const Value> parameters) override;
  Result<Rows> query(std::string_view sql, std::span<const Value> parameters) override;
  Result<std::int64_t> execute_set(std::string_view sql, std::span<const std::vector<Value>> columns) override;

 private:
  Connection connection_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Outbox> outbox_;
};

}  // namespace semel::sim
