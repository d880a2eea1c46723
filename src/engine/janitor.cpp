#include "engine/janitor.hpp"

namespace semel::engine {

namespace {
constexpr std::size_t step_max = 1'000;
constexpr std::chrono::milliseconds between_steps(20);
constexpr std::chrono::milliseconds between_rounds(60'000);
}  // namespace

Janitor::Janitor(Store& store, Observer& observer, Clock& clock)
    : store_(store), observer_(observer), clock_(clock), due_at_(clock.now()) {}

Turn Janitor::turn() {
  if (clock_.now() < due_at_) return {.wake_at = due_at_};
  const auto removed = store_.purge(step_max);
  if (!removed) observer_.trouble(removed.error());
  due_at_ = clock_.now() + (removed && *removed == step_max ? between_steps : between_rounds);
  return {.worked = true, .wake_at = due_at_};
}

JanitorThread::JanitorThread(Store& store, Observer& observer, Clock& clock)
    : janitor_(store, observer, clock), clock_(clock), thread_([this] { work(); }) {}

JanitorThread::~JanitorThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void JanitorThread::work() {
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    const auto turn = janitor_.turn();
    lock.lock();
    const auto left = *turn.wake_at - clock_.now();
    changed_.wait_for(lock, left, [this] { return stopping_; });
  } while (!stopping_);
}

}  // namespace semel::engine
