// SQLite as a store: opens sessions, answers operators.
#include <mutex>
#include <utility>

#include "stores/sqlite/connection.hpp"
#include "stores/sqlite/ledger.hpp"
#include "stores/sqlite/outbox.hpp"
#include "stores/sqlite/rows.hpp"
#include "stores/sqlite/schema.hpp"
#include "stores/sqlite/session.hpp"

namespace semel::sqlite {
namespace {

/// How many rows one purge looks at, at most. It only reads them, beside the writer.
constexpr std::size_t looked_at_max = 100'000;

/// A walk over all records in order of insertion, a bounded stretch at a time, that starts over at the end: so that
/// records that live long, at the head of the table, never hide those that have expired behind them.
class PurgeWalk {
 public:
  /// The rows that have expired on the next stretch, at most `count_max`.
  Result<std::vector<std::int64_t>> next(Connection& connection, std::size_t count_max) {
    std::vector<std::int64_t> expired;
    std::size_t budget = looked_at_max;
    const auto start = position_;
    if (auto looked = look(connection, count_max, budget, no_end, expired); !looked) return looked.error();
    const bool at_the_end = budget > 0 && expired.size() < count_max;
    if (!at_the_end) return expired;
    position_ = 0;
    if (auto looked = look(connection, count_max, budget, start, expired); !looked) return looked.error();
    return expired;
  }

 private:
  static constexpr std::int64_t no_end = INT64_MAX;

  Result<void> look(Connection& connection, std::size_t count_max, std::size_t& budget, std::int64_t last,
                    std::vector<std::int64_t>& expired) {
    static const std::string select =
        "SELECT rowid, " + expired_sql() + " FROM semel_records WHERE rowid > ?1 AND rowid <= ?2 ORDER BY rowid";
    auto row = connection.prepare(select);
    if (!row) return row.error();
    row->bind(1, position_).bind(2, last);
    for (; budget > 0 && expired.size() < count_max; --budget) {
      const auto more = row->step();
      if (!more) return more.error();
      if (!*more) return {};
      position_ = row->integer(0);
      if (row->integer(1) != 0) expired.push_back(position_);
    }
    return {};
  }

  std::int64_t position_ = 0;
};

/// Runs `work` in a write transaction of its own.
template <class Work>
auto in_transaction(Connection& connection, Work work) -> decltype(work()) {
  if (auto begun = connection.begin(); !begun) return begun.error();
  auto done = work();
  if (!done) return connection.rollback(), done;
  if (auto committed = connection.commit(); !committed) return connection.rollback(), committed.error();
  return done;
}

/// Operators and the janitor share one connection, under a mutex; every lane has its own.
class FileStore final : public Store {
 public:
  FileStore(Options options, std::unique_ptr<Connection> connection)
      : options_(std::move(options)), connection_(std::move(connection)) {}

  StoreTraits traits() const override { return {.name = "sqlite", .single_writer = true}; }

  Result<std::vector<Finding>> check() override {
    return with_connection([&](Connection& connection) -> Result<std::vector<Finding>> {
      auto findings = check_durability(connection);
      auto schema = check_schema(connection);
      if (!findings) return findings;
      if (!schema) return schema;
      findings->insert(findings->end(), schema->begin(), schema->end());
      return findings;
    });
  }

  Result<std::vector<int>> migrate() override {
    return with_connection([](Connection& connection) { return sqlite::migrate(connection); });
  }

  Result<std::unique_ptr<Session>> open_session() override {
    auto connection = Connection::open(options_, Connection::Create::no);
    if (!connection) return std::move(connection).error();
    return std::unique_ptr<Session>(make_session(options_, std::move(*connection)));
  }

  Result<std::size_t> purge(std::size_t count_max) override {
    return with_connection([&](Connection& connection) -> Result<std::size_t> {
      auto expired = walk_.next(connection, count_max);
      if (!expired) return expired.error();
      if (expired->empty()) return std::size_t{0};
      return in_transaction(connection, [&] { return remove(connection, *expired); });
    });
  }

  Result<std::optional<Record>> find_record(const RecordId& id) override {
    return with_connection([&](Connection& connection) -> Result<std::optional<Record>> {
      auto row = find_row(connection, id);
      if (!row) return row.error();
      if (!*row || (*row)->expired) return std::optional<Record>();
      return std::optional(std::move((*row)->record));
    });
  }

  Result<std::vector<DeadLetter>> dead_letters(const DeadLetterQuery& query) override {
    return with_connection([&](Connection& connection) { return list_dead_letters(connection, query); });
  }

  Result<std::optional<DeadLetter>> dead_letter(const std::string& id) override {
    return with_connection([&](Connection& connection) { return find_dead_letter(connection, id); });
  }

  Result<bool> resolve(const std::string& id, std::string_view resolution) override {
    if (resolution != "retried" && resolution != "dropped")
      return fix_call(ErrorCode::bad_value, "a dead letter is resolved as retried or dropped");
    return write([&](Connection& connection) { return resolve_dead_letter(connection, id, resolution); });
  }

  Result<std::vector<Intent>> intents(const IntentQuery& query) override {
    return with_connection([&](Connection& connection) { return list_intents(connection, query); });
  }
  Result<std::vector<IntentEvent>> intent_history(const IntentId& id) override {
    return with_connection([&](Connection& connection) { return list_events(connection, id); });
  }
  Result<IntentCounts> intent_counts() override {
    return with_connection([](Connection& connection) { return count_intents(connection); });
  }

  Result<std::vector<OutboxMessage>> outbox(const OutboxQuery& query) override {
    return with_connection([&](Connection& connection) { return list_outbox(connection, query); });
  }
  Result<OutboxCounts> outbox_counts() override {
    return with_connection([](Connection& connection) { return count_outbox(connection); });
  }
  Result<bool> release(const std::string& publication_id) override {
    return write([&](Connection& connection) { return release_held(connection, publication_id); });
  }
  Result<bool> drop(const std::string& publication_id) override {
    return write([&](Connection& connection) { return drop_held(connection, publication_id); });
  }

  Result<std::vector<QueuedMessage>> take_queued(const std::string& queue, std::size_t count_max,
                                                 std::chrono::milliseconds lease) override {
    return write([&](Connection& connection) { return take_from_queue(connection, queue, count_max, lease); });
  }
  Result<void> end_queued(const std::string& queue, std::span<const QueueEnd> ends) override {
    return write([&](Connection& connection) { return end_in_queue(connection, queue, ends); });
  }

 private:
  template <class Use>
  auto with_connection(Use use) -> decltype(use(std::declval<Connection&>())) {
    const std::lock_guard lock(mutex_);
    if (auto there = Connection::renew(connection_, options_); !there) return there.error();
    auto result = use(*connection_);
    if (!result) connection_.reset();
    return result;
  }

  template <class Use>
  auto write(Use use) -> decltype(use(std::declval<Connection&>())) {
    return with_connection(
        [&](Connection& connection) { return in_transaction(connection, [&] { return use(connection); }); });
  }

  Result<std::vector<Finding>> check_durability(Connection& connection) const;
  static Result<std::size_t> remove(Connection& connection, const std::vector<std::int64_t>& expired);

  const Options options_;
  std::mutex mutex_;
  std::unique_ptr<Connection> connection_;
  PurgeWalk walk_;
};

Result<std::size_t> FileStore::remove(Connection& connection, const std::vector<std::int64_t>& expired) {
  // Between the walk and this transaction a row may have gone, and its number may have been given to a new one.
  std::size_t removed = 0;
  for (const auto rowid : expired) {
    const auto gone = delete_if_expired(connection, rowid);
    if (!gone) return gone.error();
    removed += *gone ? 1 : 0;
  }
  return removed;
}

Result<std::vector<Finding>> FileStore::check_durability(Connection& connection) const {
  const auto mode = connection.look_up("PRAGMA journal_mode");
  if (!mode) return mode.error();
  const auto synchronous = connection.look_up("PRAGMA synchronous");
  if (!synchronous) return synchronous.error();
  const auto severity = options_.allow_unsafe_durability ? Finding::Severity::warning : Finding::Severity::refuse;
  std::vector<Finding> findings;
  if (const auto& text = std::get<std::string>(mode->value()); text != "wal")
    findings.push_back({severity, options_.path + " could not be put into WAL mode; it is in mode " + text,
                        ErrorCode::unsafe_durability});
  if (std::get<std::int64_t>(synchronous->value()) < 2)
    findings.push_back({severity,
                        "synchronous is below FULL: a commit that was acknowledged may be lost in a power cut",
                        ErrorCode::unsafe_durability});
  return findings;
}

}  // namespace

Result<std::unique_ptr<Store>> open(Options options) {
  auto connection = Connection::open(options, Connection::Create::yes);
  if (!connection) return std::move(connection).error();
  return std::unique_ptr<Store>(std::make_unique<FileStore>(std::move(options), std::move(*connection)));
}

}  // namespace semel::sqlite
