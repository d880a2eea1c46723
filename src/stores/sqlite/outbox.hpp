// Publications and queues as rows: the SQL of migrations/sqlite/0002, in one place.
#pragma once

#include <memory>
#include <optional>
#include <semel/store.hpp>
#include <span>
#include <string>
#include <vector>

#include "stores/sqlite/session.hpp"

namespace semel::sqlite {

/// The outbox of the session whose transaction this is.
std::unique_ptr<Outbox> make_outbox(OpenTransaction& transaction);

Result<std::vector<OutboxMessage>> list_outbox(Connection& connection, const OutboxQuery& query);
Result<OutboxCounts> count_outbox(Connection& connection);
/// Both say whether the message was held. Inside a write transaction.
Result<bool> release_held(Connection& connection, const std::string& id);
Result<bool> drop_held(Connection& connection, const std::string& id);

/// Both inside a write transaction.
Result<std::vector<QueuedMessage>> take_from_queue(Connection& connection, const std::string& queue,
                                                   std::size_t count_max, std::chrono::milliseconds lease);
Result<void> end_in_queue(Connection& connection, const std::string& queue, std::span<const QueueEnd> ends);

}  // namespace semel::sqlite
