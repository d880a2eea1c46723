#include "engine/janitor.hpp"

namespace semel::engine {

namespace {
constexpr std::size_t step_max = 1'000;
constexpr std::chrono::milliseconds between_steps(20);
constexpr std::chrono::milliseconds between_rounds(60'000);
}  // namespace

Janitor::Janitor(Store& store, Observer& observer) : store_(store), observer_(observer), thread_([this] { work(); }) {}

Janitor::~Janitor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Janitor::work() {
  do {
    purge_all();
  } while (rest(between_rounds));
}

void Janitor::purge_all() {
  while (true) {
    const auto removed = store_.purge(step_max);
    if (!removed) return observer_.trouble(removed.error());
    if (*removed < step_max || !rest(between_steps)) return;
  }
}

bool Janitor::rest(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return stopping_; });
}

}  // namespace semel::engine
