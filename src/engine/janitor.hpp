// The janitor: removes expired records in bounded steps, so that a claim never waits for a purge.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <semel/observer.hpp>
#include <semel/store.hpp>
#include <thread>

namespace semel::engine {

/// Works on a thread of its own from construction to destruction.
class Janitor {
 public:
  Janitor(Store& store, Observer& observer);
  ~Janitor();
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;

 private:
  void work();
  void purge_all();
  /// False where the janitor is to stop.
  bool rest(std::chrono::milliseconds time);

  Store& store_;
  Observer& observer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace semel::engine
