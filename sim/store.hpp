// The simulated store: semel::Store on a simulated database. It keeps the contract of stores, as the conformance suite
// shows, and is as unreliable as its host says: connections break, commits lose their replies.
#pragma once

#include <memory>
#include <semel/sql.hpp>
#include <semel/store.hpp>

#include "database.hpp"

namespace semel::sim {

/// A process's store. `database` and `host` outlive it.
class SimulatedStore : public Store {
 public:
  using SessionType = SqlSession;

  SimulatedStore(Database& database, Host& host, milliseconds lock_timeout = milliseconds(300))
      : database_(database), host_(host), lock_timeout_(lock_timeout) {}

  StoreTraits traits() const override { return {.name = "simulated"}; }
  Result<std::vector<Finding>> check() override;
  Result<std::vector<int>> migrate() override;
  Result<std::unique_ptr<Session>> open_session() override;

  Result<std::size_t> purge(std::size_t count_max) override;
  Result<std::optional<Record>> find_record(const RecordId& id) override;
  Result<std::vector<DeadLetter>> dead_letters(const DeadLetterQuery& query) override;
  Result<std::optional<DeadLetter>> dead_letter(const std::string& id) override;
  Result<bool> resolve(const std::string& id, std::string_view resolution) override;

  Result<std::vector<Intent>> intents(const IntentQuery& query) override;
  Result<std::vector<IntentEvent>> intent_history(const IntentId& id) override;
  Result<IntentCounts> intent_counts() override;

  Result<std::vector<OutboxMessage>> outbox(const OutboxQuery& query) override;
  Result<OutboxCounts> outbox_counts() override;
  Result<bool> release(const std::string& publication_id) override;
  Result<bool> drop(const std::string& publication_id) override;

  Result<std::vector<QueuedMessage>> take_queued(const std::string& queue, std::size_t count_max,
                                                 milliseconds lease) override;
  Result<void> end_queued(const std::string& queue, std::span<const QueueEnd> ends) override;

 private:
  Database& database_;
  Host& host_;
  milliseconds lock_timeout_;
};

}  // namespace semel::sim
