#include "engine/waiting_room.hpp"

#include <algorithm>

namespace semel::engine {

void Handover::expect(std::span<const Intent> intents) {
  const std::lock_guard lock(mutex_);
  for (const auto& intent : intents) coming_.insert(intent.id);
}

void Handover::let_go(std::span<const Intent> intents) {
  const std::lock_guard lock(mutex_);
  for (const auto& intent : intents) coming_.erase(intent.id);
}

bool Handover::comes(const IntentId& id) {
  const std::lock_guard lock(mutex_);
  return coming_.contains(id);
}

void Handover::put(std::vector<HandedOver> intents) {
  const std::lock_guard lock(mutex_);
  for (auto& intent : intents) waiting_.push_back(std::move(intent));
  if (bell_) bell_->ring();
}

std::vector<HandedOver> Handover::take() {
  const std::lock_guard lock(mutex_);
  for (const auto& handed_over : waiting_) coming_.erase(handed_over.intent.id);
  return std::exchange(waiting_, {});
}

void Handover::listen(Doorbell* bell) {
  const std::lock_guard lock(mutex_);
  bell_ = bell;
}

void WaitingRoom::enter(const RecordId& record, Doorbell& bell) {
  const std::lock_guard lock(mutex_);
  seats_[record].bells.push_back(&bell);
}

void WaitingRoom::leave(const RecordId& record, Doorbell& bell) {
  const std::lock_guard lock(mutex_);
  const auto seat = seats_.find(record);
  if (seat == seats_.end()) return;
  auto& bells = seat->second.bells;
  if (const auto mine = std::find(bells.begin(), bells.end(), &bell); mine != bells.end()) bells.erase(mine);
  if (bells.empty()) seats_.erase(seat);
}

std::optional<WaitingRoom::Word> WaitingRoom::ask(const RecordId& record) {
  const std::lock_guard lock(mutex_);
  const auto seat = seats_.find(record);
  return seat == seats_.end() ? std::nullopt : seat->second.word;
}

void WaitingRoom::tell(const RecordId& record, Word word) {
  const std::lock_guard lock(mutex_);
  const auto seat = seats_.find(record);
  if (seat == seats_.end()) return;
  seat->second.word = std::move(word);
  for (auto* bell : seat->second.bells) bell->ring();
}

void AfterCommit::tell_relay() {
  published = true;
  if (relay_bell) relay_bell->ring();
}

}  // namespace semel::engine
