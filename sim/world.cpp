#include "world.hpp"

#include <algorithm>
#include <cassert>
#include <cstdio>

namespace semel::sim {

using namespace std::chrono_literals;

std::chrono::steady_clock::time_point ProcessClock::now() const {
  return std::chrono::steady_clock::time_point(world_.now() + process_.clock_offset);
}

World::World(WorldOptions options) : options_(std::move(options)), random_(options_.seed) {
  for (const auto& fault : options_.faults) planned_[static_cast<std::size_t>(fault.kind)].push_back(fault.opportunity);
  for (auto& opportunities : planned_) std::sort(opportunities.rbegin(), opportunities.rend());
}

void World::end() {
  // Whoever still runs is unwound as a crashed one is: nobody looks any more.
  for (auto& thread : threads_) thread->process->dead = true;
  for (auto& thread : threads_)
    if (!thread->fiber->finished()) {
      running_ = thread.get();
      thread->fiber->resume();
    }
}

void World::start(Process& process, std::string name, std::function<void()> body) {
  auto thread = std::make_unique<Thread>();
  thread->process = &process;
  thread->name = std::move(name);
  thread->fiber = std::make_unique<Fiber>([&process, body = std::move(body)] {
    try {
      if (!process.dead) body();
    } catch (const Vanished&) {
      // Gone, and nobody was told.
    }
  });
  threads_.push_back(std::move(thread));
}

void World::after(microseconds delay, std::function<void()> action) {
  events_.push_back({now_ + delay, ++event_number_, std::move(action)});
  std::push_heap(events_.begin(), events_.end());
}

void World::run_events() {
  while (!events_.empty() && events_.front().at <= now_) {
    std::pop_heap(events_.begin(), events_.end());
    const auto event = std::move(events_.back());
    events_.pop_back();
    event.action();
  }
}

bool World::is_ready(const Thread& thread) const {
  if (thread.fiber->finished()) return false;
  if (thread.process->frozen_until > now_) return false;
  if (thread.runnable || thread.wake_at <= now_) return true;
  if (thread.bell && thread.bell->is_ringing()) return true;
  return thread.ready && thread.ready();
}

World::Thread* World::pick() {
  Thread* chosen = nullptr;
  std::uint64_t count = 0;
  for (const auto& thread : threads_)
    if (is_ready(*thread) && random_.below(++count) == 0) chosen = thread.get();
  return chosen;
}

/// To the next moment at which something happens by itself. Only where no thread is ready.
bool World::advance(microseconds until) {
  auto next = microseconds::max();
  if (!events_.empty()) next = events_.front().at;
  for (const auto& thread : threads_) {
    if (thread->fiber->finished()) continue;
    next = std::min(next, std::max(thread->process->frozen_until, thread->runnable ? now_ : thread->wake_at));
  }
  if (next == microseconds::max()) return false;
  now_ = std::clamp(next, now_, until);
  return true;
}

bool World::run(microseconds until, const std::function<bool()>& done) {
  while (now_ < until) {
    run_events();
    for (auto* process : std::exchange(crashed_, {})) {
      if (on_crash) on_crash(*process);
      forget(*process);
      if (after_crash) after_crash(*process);
    }
    if (done()) return true;
    if (auto* thread = pick()) {
      thread->runnable = false;
      thread->bell = nullptr;
      thread->ready = nullptr;
      running_ = thread;
      thread->fiber->resume();
      running_ = nullptr;
    } else if (!advance(until)) {
      return true;
    }
  }
  return false;
}

void World::give_way() { running_->fiber->give_way(); }

void World::freeze(Process& process) {
  const auto time = random_.one_in(4) ? random_.between(15'000, 70'000) : random_.between(500, 15'000);
  process.frozen_until = now_ + milliseconds(time);
  say(&process, [&] { return "stands still for " + std::to_string(time) + " ms"; });
}

void World::step(Process& process) {
  if (process.dead) throw Vanished();
  ++steps_;
  now_ += microseconds(random_.between(20, 400));
  if (process.may_fail && strikes(Fault::freeze)) freeze(process);
  if (process.may_fail && strikes(Fault::crash)) crash(process);
  // Most steps go on at once: what matters is that any step may be the one where another goes on.
  if (process.frozen_until <= now_ && !process.dead && !random_.one_in(3)) return;
  running_->runnable = true;
  running_->wake_at = now_;
  give_way();
  if (process.dead) throw Vanished();
}

bool World::wait(Process& process, milliseconds time, std::function<bool()> ready) {
  if (process.dead) throw Vanished();
  const auto until = now_ + time;
  while (!ready()) {
    if (now_ >= until) return false;
    running_->wake_at = until;
    running_->ready = ready;
    give_way();
    if (process.dead) throw Vanished();
  }
  return true;
}

void World::sleep(Process& process, Doorbell& bell, microseconds until) {
  if (process.dead) throw Vanished();
  running_->wake_at = std::max(until, now_ + 1us);
  running_->bell = &bell;
  give_way();
  if (process.dead) throw Vanished();
  if (bell.is_ringing()) bell.wait(0ms);
}

bool World::strikes(Fault kind) {
  const auto index = static_cast<std::size_t>(kind);
  const auto opportunity = ++opportunities_[index];
  auto& planned = planned_[index];
  if (planned.empty() || planned.back() > opportunity) return false;
  planned.pop_back();
  ++struck_[index];
  return true;
}

std::int64_t World::struck_in_all() const {
  std::int64_t sum = 0;
  for (const auto count : struck_) sum += count;
  return sum;
}

void World::crash(Process& process) {
  if (process.dead) return;
  say(&process, [] { return std::string("crashes"); });
  process.dead = true;
  crashed_.push_back(&process);
}

void World::forget(Process& process) {
  process.dead = true;
  for (auto& thread : threads_) {
    if (thread->process != &process || thread->fiber->finished()) continue;
    running_ = thread.get();
    thread->fiber->resume();
    running_ = nullptr;
    assert(thread->fiber->finished());
  }
  std::erase_if(threads_, [&](const auto& thread) { return thread->process == &process; });
}

void World::write(const Process* process, const std::string& text) {
  char head[64];
  std::snprintf(head, sizeof(head), "%10.3f s  %-9s ", static_cast<double>((now_ - 1h).count()) / 1e6,
                process ? process->name.c_str() : "-");
  timeline_.push_back(head + text + (running_ && process ? "  [" + running_->name + "]" : ""));
}

void WorldProbe::reached(Step step) {
  if (!process_.dead) {
    world_.cover("step " + std::string(step_name(step)));
    world_.say(&process_, [&] { return "step " + std::string(step_name(step)); });
    if (step == Step::reported && world_.strikes(Fault::freeze_when_told)) world_.freeze(process_);
  }
  world_.step(process_);
}

}  // namespace semel::sim
