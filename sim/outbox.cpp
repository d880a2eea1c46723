// Publications of the simulated store: see <semel/outbox.hpp>.
#include <algorithm>

#include "rows.hpp"
#include "session.hpp"

namespace semel::sim {
namespace {

class SimulatedOutbox final : public Outbox {
 public:
  explicit SimulatedOutbox(Connection& connection) : connection_(connection), database_(connection.database()) {}

  Result<void> publish(std::span<const OutboxMessage> messages) override;
  Result<std::vector<OutboxMessage>> take(std::span<const std::string> targets, std::size_t count_max,
                                          milliseconds lease) override;
  Result<void> finish(std::span<const OutboxResult> results) override;

 private:
  Result<void> publish_one(const Writer& writer, OutboxMessage message);
  Result<void> finish_one(const Writer& writer, const OutboxResult& result);
  Result<void> wait_for_turn(const Writer& writer);
  bool may_go(const Writer& writer, const OutboxRow& row) const;

  Connection& connection_;
  Database& database_;
  std::int64_t cursor_ = 0;  ///< of a planted bug
};

Error taken() {
  return {Remedy::reread, Certainty::not_applied, ErrorCode::lost_race,
          "another transaction published the same message"};
}

Result<void> SimulatedOutbox::publish_one(const Writer& writer, OutboxMessage message) {
  message.published_at = time_of(database_.now());
  message.attempt = message.failures = 0;
  message.last_error.clear();
  message.held = false;
  const auto id = message.id;
  if (message.queued) {
    auto slot = database_.queue.lock(id, writer);
    if (!slot) return slot.error();
    if (**slot) return taken();
    **slot = QueueRow{.message = std::move(message),
                      .number = database_.next_number(),
                      .due_at = database_.now(),
                      .sent_at = database_.now()};
    return {};
  }
  if (connection_.host().has(Mutant::order_key_ignored)) message.publication.order_key.clear();
  auto slot = database_.outbox.lock(id, writer);
  if (!slot) return slot.error();
  if (**slot) return taken();
  **slot = OutboxRow{.message = std::move(message), .number = database_.next_number(), .due_at = database_.now()};
  return {};
}

Result<void> SimulatedOutbox::publish(std::span<const OutboxMessage> messages) {
  return connection_.run("publish", [&](const Writer& writer) -> Result<void> {
    for (const auto& message : messages)
      if (auto published = publish_one(writer, message); !published) return published;
    return {};
  });
}

/// Whoever takes or finishes does so alone, until his transaction ends.
Result<void> SimulatedOutbox::wait_for_turn(const Writer& writer) {
  while (database_.relaying && database_.relaying != writer) {
    const auto other = database_.relaying;
    if (auto waited = writer->wait_for(other); !waited) return waited;
  }
  database_.relaying = writer;
  return {};
}

/// Nothing before it in its order waits.
bool SimulatedOutbox::may_go(const Writer& writer, const OutboxRow& row) const {
  const auto& publication = row.message.publication;
  if (publication.order_key.empty()) return true;
  bool free = true;
  database_.outbox.each(writer, [&](const std::string&, const OutboxRow& other) {
    const bool before = other.number < row.number && other.message.publication.to == publication.to &&
                        other.message.publication.order_key == publication.order_key;
    if (before && (other.message.held || other.due_at > database_.now())) free = false;
  });
  return free;
}

Result<std::vector<OutboxMessage>> SimulatedOutbox::take(std::span<const std::string> targets, std::size_t count_max,
                                                         milliseconds lease) {
  return connection_.run("take publications", [&](const Writer& writer) -> Result<std::vector<OutboxMessage>> {
    if (auto waited = wait_for_turn(writer); !waited) return waited.error();
    const bool by_cursor = connection_.host().has(Mutant::outbox_by_cursor);
    std::vector<std::pair<std::int64_t, std::string>> ready;
    database_.outbox.each(writer, [&](const std::string& id, const OutboxRow& row) {
      const bool wanted = std::find(targets.begin(), targets.end(), row.message.publication.to) != targets.end();
      const bool due = row.due_at <= database_.now() && !row.message.held;
      if (wanted && due && may_go(writer, row) && !(by_cursor && row.number <= cursor_ && row.message.attempt == 0))
        ready.emplace_back(row.number, id);
    });
    std::sort(ready.begin(), ready.end());
    if (ready.size() > count_max) ready.resize(count_max);
    std::vector<OutboxMessage> given;
    for (const auto& [number, id] : ready) {
      auto slot = database_.outbox.lock(id, writer);
      if (!slot) return slot.error();
      auto& row = ***slot;
      ++row.message.attempt;
      row.due_at = database_.now() + bounded(lease);
      cursor_ = std::max(cursor_, number);
      given.push_back(row.message);
      if (connection_.host().has(Mutant::publication_gone_before_confirmation)) (*slot)->reset();
    }
    return given;
  });
}

Result<void> SimulatedOutbox::finish_one(const Writer& writer, const OutboxResult& result) {
  auto slot = database_.outbox.lock_seen(result.id, writer);
  if (!slot) return slot.error();
  if (!*slot || (**slot)->message.attempt != result.attempt) return {};
  if (result.sent) {
    (*slot)->reset();
    return {};
  }
  auto& row = ***slot;
  if (!result.error.empty()) {
    ++row.message.failures;
    row.message.last_error = result.error;
  }
  row.message.held = result.hold;
  row.due_at = database_.now() + bounded(result.due_in);
  return {};
}

Result<void> SimulatedOutbox::finish(std::span<const OutboxResult> results) {
  return connection_.run("finish publications", [&](const Writer& writer) -> Result<void> {
    if (auto waited = wait_for_turn(writer); !waited) return waited;
    for (const auto& result : results)
      if (auto finished = finish_one(writer, result); !finished) return finished;
    return {};
  });
}

}  // namespace

std::unique_ptr<Outbox> make_outbox(Connection& connection) { return std::make_unique<SimulatedOutbox>(connection); }

}  // namespace semel::sim
