// SIGTERM, SIGINT and SIGHUP: the first asks the run to stop, the second (or the deadline) ends the process at once.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace semel::app {

/// Made before any other thread, since threads inherit which signals they leave to this one.
class Signals {
 public:
  /// As long as it lives, `stop` may be called: it ends before what is to be stopped.
  class [[nodiscard]] Watch {
   public:
    explicit Watch(Signals& signals) : signals_(signals) {}
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() { signals_.forget_stop(); }

   private:
    Signals& signals_;
  };

  Signals();
  /// Once. Calls `stop` at the first signal, on a thread of its own; those that come together with it are the same one.
  /// After a second one, or `deadline` later, the process is gone, also where the watch has ended meanwhile: that is a
  /// crash, and a crash is safe.
  Watch watch(std::function<void()> stop, std::chrono::milliseconds deadline);
  ~Signals();

 private:
  using Time = std::chrono::steady_clock::time_point;
  int next(std::optional<Time> until);
  void call_stop();
  void forget_stop();

  sigset_t set_{};
  std::atomic<bool> is_over_ = false;
  std::mutex mutex_{};
  std::function<void()> stop_{};  ///< empty once what it stops may be gone
  std::thread thread_{};
};

}  // namespace semel::app
