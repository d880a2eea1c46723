// PostgreSQL as a store: opens sessions, answers operators.
#include <mutex>
#include <utility>

#include "stores/postgres/connection.hpp"
#include "stores/postgres/ledger.hpp"
#include "stores/postgres/outbox.hpp"
#include "stores/postgres/rows.hpp"
#include "stores/postgres/schema.hpp"
#include "stores/postgres/session.hpp"

namespace semel::postgres {

namespace {

/// Operators and the janitor share one connection, under a mutex; every lane has its own.
class ServerStore final : public Store {
 public:
  explicit ServerStore(Options options) : options_(std::move(options)), statements_(options_.schema) {}

  StoreTraits traits() const override { return {.name = "postgresql"}; }

  Result<std::vector<Finding>> check() override {
    return with_connection([&](Connection& connection) { return findings(connection, options_); });
  }

  Result<std::vector<int>> migrate() override {
    return with_connection([&](Connection& connection) { return postgres::migrate(connection, options_.schema); });
  }

  Result<std::unique_ptr<Session>> open_session() override {
    return std::unique_ptr<Session>(make_session(options_, statements_));
  }

  Result<std::size_t> purge(std::size_t count_max) override {
    Parameters parameters;
    parameters.add_binary(Type::int8, binary_int8(static_cast<std::int64_t>(count_max)));
    return with_connection([&](Connection& connection) -> Result<std::size_t> {
      if (auto purged = run(connection, statements_.purge, parameters); !purged) return purged.error();
      return static_cast<std::size_t>(BinaryRow(connection.last(), 0).integer(0));
    });
  }

  Result<std::optional<Record>> find_record(const RecordId& id) override;
  Result<std::vector<DeadLetter>> dead_letters(const DeadLetterQuery& query) override;
  Result<std::optional<DeadLetter>> dead_letter(const std::string& id) override;
  Result<bool> resolve(const std::string& id, std::string_view resolution) override;

  Result<std::vector<Intent>> intents(const IntentQuery& query) override {
    return with_connection([&](Connection& connection) { return list_intents(connection, statements_.ledger, query); });
  }
  Result<std::vector<IntentEvent>> intent_history(const IntentId& id) override {
    return with_connection([&](Connection& connection) { return list_events(connection, statements_.ledger, id); });
  }
  Result<IntentCounts> intent_counts() override {
    return with_connection([&](Connection& connection) { return count_intents(connection, statements_.ledger); });
  }

  Result<std::vector<OutboxMessage>> outbox(const OutboxQuery& query) override {
    return with_connection([&](Connection& connection) { return list_outbox(connection, statements_.outbox, query); });
  }
  Result<OutboxCounts> outbox_counts() override {
    return with_connection([&](Connection& connection) { return count_outbox(connection, statements_.outbox); });
  }
  Result<bool> release(const std::string& publication_id) override {
    return with_connection(
        [&](Connection& connection) { return change_held(connection, statements_.outbox.release, publication_id); });
  }
  Result<bool> drop(const std::string& publication_id) override {
    return with_connection(
        [&](Connection& connection) { return change_held(connection, statements_.outbox.drop, publication_id); });
  }

  Result<std::vector<QueuedMessage>> take_queued(const std::string& queue, std::size_t count_max,
                                                 std::chrono::milliseconds lease) override {
    return with_connection([&](Connection& connection) {
      return take_from_queue(connection, statements_.outbox, queue, count_max, lease);
    });
  }
  Result<void> end_queued(const std::string& queue, std::span<const QueueEnd> ends) override {
    return with_connection(
        [&](Connection& connection) { return end_in_queue(connection, statements_.outbox, queue, ends); });
  }

 private:
  template <class Use>
  auto with_connection(Use use) -> decltype(use(std::declval<Connection&>())) {
    const std::lock_guard lock(mutex_);
    if (connection_ && !connection_->alive()) connection_.reset();
    if (!connection_) {
      auto connected = Connection::connect(options_);
      if (!connected) return connected.error();
      connection_ = *std::move(connected);
    }
    auto result = use(*connection_);
    if (!result) connection_.reset();
    return result;
  }

  const Options options_;
  const Statements statements_;
  std::mutex mutex_;
  std::unique_ptr<Connection> connection_;
};

Result<std::optional<Record>> ServerStore::find_record(const RecordId& id) {
  const RecordDigest digest = record_digest(id.scope, id.key);
  return with_connection([&](Connection& connection) -> Result<std::optional<Record>> {
    Parameters parameters;
    parameters.add_binary(Type::uuid, std::string(digest.view()));
    if (auto read = run(connection, statements_.find, parameters); !read) return read.error();
    if (PQntuples(connection.last()) == 0) return std::optional<Record>();
    auto found = read_record(BinaryRow(connection.last(), 0));
    if (!found) return found.error();
    if (found->record.scope != id.scope || found->record.key != id.key) return digest_collision(id);
    return found->expired ? std::optional<Record>() : std::optional(std::move(found->record));
  });
}

Parameters letters_asked_for(const DeadLetterQuery& query) {
  Parameters parameters;
  query.handler ? parameters.add_binary(Type::bytes, *query.handler) : parameters.add_null();
  query.reason ? parameters.add_text(std::string(reason_name(*query.reason))) : parameters.add_null();
  parameters.add_binary(Type::boolean, binary_boolean(query.waiting_only));
  query.before_id.empty() ? parameters.add_null() : parameters.add_binary(Type::bytes, query.before_id);
  parameters.add_binary(Type::int8, binary_int8(static_cast<std::int64_t>(query.count_max)));
  return parameters;
}

Result<std::vector<DeadLetter>> ServerStore::dead_letters(const DeadLetterQuery& query) {
  return with_connection([&](Connection& connection) -> Result<std::vector<DeadLetter>> {
    if (auto read = run(connection, statements_.list_letters, letters_asked_for(query)); !read) return read.error();
    std::vector<DeadLetter> letters;
    for (int row = 0; row < PQntuples(connection.last()); ++row) {
      auto letter = read_letter(BinaryRow(connection.last(), row));
      if (!letter) return letter.error();
      letters.push_back(*std::move(letter));
    }
    return letters;
  });
}

Result<std::optional<DeadLetter>> ServerStore::dead_letter(const std::string& id) {
  Parameters parameters;
  parameters.add_binary(Type::bytes, id);
  return with_connection([&](Connection& connection) -> Result<std::optional<DeadLetter>> {
    if (auto read = run(connection, statements_.find_letter, parameters); !read) return read.error();
    if (PQntuples(connection.last()) == 0) return std::optional<DeadLetter>();
    auto letter = read_letter(BinaryRow(connection.last(), 0));
    if (!letter) return letter.error();
    return std::optional(*std::move(letter));
  });
}

Result<bool> ServerStore::resolve(const std::string& id, std::string_view resolution) {
  if (resolution != "retried" && resolution != "dropped")
    return fix_call(ErrorCode::bad_value, "a dead letter is resolved as retried or dropped");
  Parameters parameters;
  parameters.add_binary(Type::bytes, id);
  parameters.add_text(std::string(resolution));
  return with_connection([&](Connection& connection) -> Result<bool> {
    const auto changed = run(connection, statements_.resolve_letter, parameters);
    if (!changed) return changed.error();
    return *changed > 0;
  });
}

}  // namespace

Result<std::unique_ptr<Store>> open(Options options) {
  if (auto readable = check_connection_string(options.connection); !readable) return readable.error();
  if (auto named = check_schema_name(options.schema); !named) return named.error();
  return std::unique_ptr<Store>(std::make_unique<ServerStore>(std::move(options)));
}

}  // namespace semel::postgres
