#include "database.hpp"

#include <algorithm>

namespace semel::sim {

Result<void> Transaction::wait_for(const Writer& other) {
  host_->say([] { return std::string("waits for another transaction"); });
  if (host_->wait(lock_timeout_, [other] { return !other->is_open(); })) return {};
  return retry_later(ErrorCode::lock_timeout, "another transaction holds the row");
}

void Transaction::end(bool commits) {
  if (!open_) return;
  open_ = false;
  for (const auto& action : ends_) action(commits);
  ends_.clear();
}

Writer Database::begin(Host& host, milliseconds lock_timeout) {
  open_.push_back(std::make_shared<Transaction>(host, lock_timeout));
  return open_.back();
}

void Database::end(const Writer& transaction, bool commits) {
  transaction->end(commits);
  if (relaying == transaction) relaying.reset();
  std::erase(open_, transaction);
  surroundings_.ended();
}

void Database::orphan(const Writer& transaction, bool commits) {
  std::erase(open_, transaction);
  surroundings_.later([this, transaction, commits] { end(transaction, commits); });
}

void Database::vanished(const void* owner) {
  const auto open = open_;
  for (const auto& transaction : open)
    if (transaction->owner() == owner) orphan(transaction, false);
}

bool Database::counts_as_expired(const RecordRow& row) const {
  if (row.open > 0 || row.expires_at > now()) return false;
  const RecordId id{row.record.scope, row.record.key};
  bool waits = false;
  outbox.each(nullptr, [&](const auto&, const OutboxRow& one) { waits = waits || one.message.record == id; });
  queue.each(nullptr, [&](const auto&, const QueueRow& one) { waits = waits || one.message.record == id; });
  intents.each(nullptr, [&](const auto&, const IntentRow& one) {
    waits = waits || (one.intent.status.flagged && one.intent.record == id);
  });
  return !waits;
}

Result<void> Database::remove_intents_of(const RecordId& id, const Writer& writer) {
  std::vector<std::string> gone;
  std::vector<std::int64_t> lines;
  intents.each(writer, [&](const std::string& intent, const IntentRow& row) {
    if (row.intent.record == id) gone.push_back(intent);
  });
  events.each(writer, [&](std::int64_t number, const EventRow& row) {
    if (std::find(gone.begin(), gone.end(), row.intent.hex) != gone.end()) lines.push_back(number);
  });
  for (const auto& intent : gone) {
    auto row = intents.lock(intent, writer);
    if (!row) return row.error();
    (*row)->reset();
  }
  for (const auto number : lines) {
    auto row = events.lock(number, writer);
    if (!row) return row.error();
    (*row)->reset();
  }
  return {};
}

}  // namespace semel::sim
