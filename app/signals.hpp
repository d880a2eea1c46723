// SIGTERM, SIGINT and SIGHUP: the first asks the run to stop, the second (or the deadline) ends the process at once.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <thread>

namespace semel::app {

/// Made before any other thread, since threads inherit which signals they leave to this one.
class Signals {
 public:
  Signals();
  /// Calls `stop` at the first signal, on a thread of its own; those that come together with it are the same one. After
  /// a second one, or `deadline` later, the process is gone: that is a crash, and a crash is safe.
  void watch(std::function<void()> stop, std::chrono::milliseconds deadline);
  ~Signals();

 private:
  using Time = std::chrono::steady_clock::time_point;
  int next(std::optional<Time> until);

  sigset_t set_{};
  std::atomic<bool> is_over_ = false;
  std::thread thread_{};
};

}  // namespace semel::app
