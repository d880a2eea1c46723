#include "stores/sqlite/session.hpp"

#include <utility>

#include "stores/sqlite/binding.hpp"
#include "stores/sqlite/ledger.hpp"
#include "stores/sqlite/outbox.hpp"
#include "stores/sqlite/rows.hpp"

namespace semel::sqlite {
namespace {

/// Errors after which the file is opened anew.
bool distrusts_connection(const Error& error) {
  switch (error.code) {
    case ErrorCode::store_unreachable:
    case ErrorCode::commit_unknown:
    case ErrorCode::store_damaged:
    case ErrorCode::store_read_only:
      return true;
    default:
      return false;
  }
}

/// Statements run at once, so an error always belongs to the call that returns it.
class LaneSession final : public SqlSession, private OpenTransaction {
 public:
  LaneSession(const Options& options, std::unique_ptr<Connection> connection)
      : options_(options), connection_(std::move(connection)) {}

  Result<void> begin() override;
  Result<std::vector<std::optional<Record>>> claim(std::span<const RecordId> ids) override;
  Result<void> record(std::span<const Record> records) override;
  Result<void> set_aside(std::span<const DeadLetter> letters) override;
  Result<void> commit() override;
  void rollback() noexcept override;

  void mark(std::size_t number) override { mark_ = number; }
  Result<void> synchronise() override { return usable(); }
  std::optional<std::size_t> failed_mark() const override { return failed_mark_; }

  Result<void> execute(std::string_view sql, std::span<const Value> parameters) override;
  Result<std::int64_t> execute_counted(std::string_view sql, std::span<const Value> parameters) override;
  Result<Rows> query(std::string_view sql, std::span<const Value> parameters) override;
  Result<std::int64_t> execute_set(std::string_view sql, std::span<const std::vector<Value>> columns) override;

  Ledger& ledger() override { return *ledger_; }
  Outbox& outbox() override { return *outbox_; }

 private:
  Result<void> usable() const override;
  Connection& connection() override { return *connection_; }
  Error fail(Error error) override;
  Error fail_handler(Error error);
  Result<std::optional<Record>> claim_one(const RecordId& id);
  Result<Rows> read_all(Statement& statement);

  Options options_;
  std::unique_ptr<Connection> connection_;
  bool open_ = false;
  std::optional<Error> failure_;
  std::optional<std::size_t> mark_;
  std::optional<std::size_t> failed_mark_;
  const std::unique_ptr<Ledger> ledger_ = make_ledger(*this);
  const std::unique_ptr<Outbox> outbox_ = make_outbox(*this);
};

/// SQLite ends a transaction by itself on some errors, and what ran after that would commit alone: so nothing runs
/// once anything has failed.
Result<void> LaneSession::usable() const {
  if (!open_) return fix_call(ErrorCode::handler_misused, "no transaction is open");
  if (failure_) return *failure_;
  if (!connection_->in_transaction())
    return fix_call(ErrorCode::handler_misused, "the transaction was ended from inside");
  return {};
}

Error LaneSession::fail(Error error) {
  if (!failure_) failure_ = error;
  return error;
}

Error LaneSession::fail_handler(Error error) {
  if (!failure_) failed_mark_ = mark_;
  return fail(std::move(error));
}

Result<void> LaneSession::begin() {
  if (open_) return fix_call(ErrorCode::handler_misused, "a transaction is open already");
  if (auto there = Connection::renew(connection_, options_); !there) return there;
  if (auto begun = connection_->begin(); !begun) return begun;
  open_ = true;
  failure_.reset();
  mark_.reset();
  failed_mark_.reset();
  return {};
}

Result<std::vector<std::optional<Record>>> LaneSession::claim(std::span<const RecordId> ids) {
  if (auto ready = usable(); !ready) return ready.error();
  std::vector<std::optional<Record>> found;
  found.reserve(ids.size());
  for (const RecordId& id : ids) {
    auto one = claim_one(id);
    if (!one) return fail(std::move(one).error());
    found.push_back(std::move(*one));
  }
  return found;
}

/// A record whose time is over, and which the purge has not come to yet, makes room in this transaction.
Result<std::optional<Record>> LaneSession::claim_one(const RecordId& id) {
  auto row = find_row(*connection_, id);
  if (!row) return std::move(row).error();
  if (!*row) return std::optional<Record>();
  if (!(*row)->expired) return std::optional(std::move((*row)->record));
  if (auto removed = delete_row(*connection_, **row); !removed) return removed.error();
  return std::optional<Record>();
}

Result<void> LaneSession::record(std::span<const Record> records) {
  if (auto ready = usable(); !ready) return ready;
  for (const Record& record : records) {
    if (record.replaces_rejection) {
      auto removed = delete_rejected(*connection_, {record.scope, record.key});
      if (!removed) return fail(removed.error());
    }
    if (auto inserted = insert_record(*connection_, record); !inserted) return fail(inserted.error());
  }
  return {};
}

Result<void> LaneSession::set_aside(std::span<const DeadLetter> letters) {
  if (auto ready = usable(); !ready) return ready;
  for (const DeadLetter& letter : letters)
    if (auto put = put_dead_letter(*connection_, letter); !put) return fail(put.error());
  return {};
}

Result<void> LaneSession::commit() {
  if (auto ready = usable(); !ready) return ready;
  if (auto committed = connection_->commit(); !committed) return fail(committed.error());
  open_ = false;
  return {};
}

void LaneSession::rollback() noexcept {
  if (connection_) connection_->rollback();
  if (failure_ && distrusts_connection(*failure_)) connection_.reset();
  open_ = false;
  failure_.reset();
}

Result<void> LaneSession::execute(std::string_view sql, std::span<const Value> parameters) {
  const auto counted = execute_counted(sql, parameters);
  return counted ? Result<void>() : Result<void>(counted.error());
}

Result<std::int64_t> LaneSession::execute_counted(std::string_view sql, std::span<const Value> parameters) {
  if (auto ready = usable(); !ready) return ready.error();
  auto statement = connection_->prepare_user(sql, parameters);
  if (!statement) return fail_handler(std::move(statement).error());
  const auto before = connection_->total_changes();
  if (auto done = statement->finish(); !done) return fail_handler(done.error());
  if (auto ready = usable(); !ready) return fail_handler(ready.error());
  // `changes` still counts an earlier statement where this one was of a kind that changes no rows.
  return connection_->total_changes() == before ? 0 : connection_->changes();
}

Result<Rows> LaneSession::query(std::string_view sql, std::span<const Value> parameters) {
  if (auto ready = usable(); !ready) return ready.error();
  auto statement = connection_->prepare_user(sql, parameters);
  if (!statement) return fail_handler(std::move(statement).error());
  auto rows = read_all(*statement);
  if (!rows) return fail_handler(std::move(rows).error());
  return rows;
}

Result<Rows> LaneSession::read_all(Statement& statement) {
  Rows result;
  for (int column = 0; column < statement.column_count(); ++column)
    result.columns.push_back(statement.column_name(column));
  for (;;) {
    const auto more = statement.step();
    if (!more) return more.error();
    if (!*more) return result;
    auto& row = result.rows.emplace_back();
    for (int column = 0; column < statement.column_count(); ++column) row.push_back(statement.column(column));
  }
}

/// A statement a row: there are no round trips to save here, and SQLite has no arrays.
Result<std::int64_t> LaneSession::execute_set(std::string_view sql, std::span<const std::vector<Value>> columns) {
  if (auto ready = usable(); !ready) return ready.error();
  const std::size_t rows = columns.empty() ? 0 : columns.front().size();
  for (const auto& column : columns)
    if (column.size() != rows)
      return fail_handler(fix_call(ErrorCode::bad_value, "the columns of a set-based write differ in length"));
  std::int64_t changed = 0;
  std::vector<Value> row(columns.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t column = 0; column < columns.size(); ++column) row[column] = columns[column][i];
    const auto written = execute_counted(sql, row);
    if (!written) return written;
    changed += *written;
  }
  return changed;
}

}  // namespace

std::unique_ptr<SqlSession> make_session(const Options& options, std::unique_ptr<Connection> connection) {
  return std::make_unique<LaneSession>(options, std::move(connection));
}

}  // namespace semel::sqlite
