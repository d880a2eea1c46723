#include "backlog.hpp"

namespace semel::app {
namespace {

constexpr std::chrono::seconds patience(1);

}  // namespace

Backlog::Backlog(Store& store) : store_(store), thread_([this] { serve(); }) {}

Backlog::~Backlog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<BacklogCounts> Backlog::counts() {
  std::unique_lock lock(mutex_);
  const auto mine = ++asked_;
  changed_.notify_all();
  const bool in_time = changed_.wait_for(lock, patience, [&] { return counted_ >= mine || stopping_; });
  return in_time ? last_ : std::nullopt;
}

std::optional<BacklogCounts> Backlog::count() const {
  auto intents = store_.intent_counts();
  if (!intents) return std::nullopt;
  auto outbox = store_.outbox_counts();
  if (!outbox) return std::nullopt;
  return BacklogCounts{*std::move(intents), *std::move(outbox)};
}

void Backlog::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || asked_ > counted_; });
    if (stopping_) return;
    const auto upto = asked_;
    lock.unlock();
    auto counted = count();
    lock.lock();
    last_ = std::move(counted);
    counted_ = upto;
    changed_.notify_all();
  }
}

}  // namespace semel::app
