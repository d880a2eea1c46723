// SIGTERM and SIGINT: the first asks the run to stop, the second (or the deadline) ends the process at once.
#pragma once

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

namespace semel::app {

/// Made before any other thread, since threads inherit which signals they leave to this one.
class Signals {
 public:
  Signals();
  /// Calls `stop` at the first signal, on a thread of its own. After a second one, or `deadline` later, the process is
  /// gone: that is a crash, and a crash is safe.
  void watch(std::function<void()> stop, std::chrono::milliseconds deadline);
  ~Signals();

 private:
  sigset_t set_{};
  std::thread thread_{};
};

}  // namespace semel::app
