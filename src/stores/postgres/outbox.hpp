// Publications and queues as rows: the statements on them (migrations/postgres/0002), and what reads them back.
#pragma once

#include <memory>
#include <semel/store.hpp>
#include <span>
#include <string>
#include <vector>

#include "stores/postgres/schema.hpp"
#include "stores/postgres/session.hpp"

namespace semel::postgres {

/// The outbox of the session whose transaction this is. `statements` outlive it.
std::unique_ptr<Outbox> make_outbox(OpenTransaction& transaction, const OutboxStatements& statements);

/// Each in a transaction of its own.
Result<std::vector<OutboxMessage>> list_outbox(Connection& connection, const OutboxStatements& statements,
                                               const OutboxQuery& query);
Result<OutboxCounts> count_outbox(Connection& connection, const OutboxStatements& statements);
/// `sql` is `release` or `drop`; whether the message was held.
Result<bool> change_held(Connection& connection, const std::string& sql, const std::string& id);
Result<std::vector<QueuedMessage>> take_from_queue(Connection& connection, const OutboxStatements& statements,
                                                   const std::string& queue, std::size_t count_max,
                                                   std::chrono::milliseconds lease);
Result<void> end_in_queue(Connection& connection, const OutboxStatements& statements, const std::string& queue,
                          std::span<const QueueEnd> ends);

}  // namespace semel::postgres
