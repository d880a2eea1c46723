// The janitor: removes expired records in bounded steps, so that a claim never waits for a purge.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <semel/clock.hpp>
#include <semel/observer.hpp>
#include <semel/store.hpp>
#include <thread>

#include "engine/duty.hpp"

namespace semel::engine {

class Janitor {
 public:
  Janitor(Store& store, Observer& observer, Clock& clock);

  /// One step, where one is due: the first at once.
  Turn turn();

 private:
  Store& store_;
  Observer& observer_;
  Clock& clock_;
  std::chrono::steady_clock::time_point due_at_;
};

/// Turns a janitor on a thread of its own from construction to destruction.
class JanitorThread {
 public:
  JanitorThread(Store& store, Observer& observer, Clock& clock);
  ~JanitorThread();
  JanitorThread(const JanitorThread&) = delete;
  JanitorThread& operator=(const JanitorThread&) = delete;

 private:
  void work();

  Janitor janitor_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace semel::engine
