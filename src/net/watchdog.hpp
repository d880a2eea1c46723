// A limit on time that costs nearly nothing to set: while a limit is moved outwards, the timer is left as it stands.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

namespace semel::net {

/// Barks once the limit has passed, and again every `again` until `unwatch`: a cancellation that falls between two
/// steps of one read would be missed. Belongs to the thread that runs `io`; destroying it silences it.
class Watchdog {
 public:
  using Milliseconds = std::chrono::milliseconds;

  Watchdog(boost::asio::io_context& io, Milliseconds again, std::function<void()> bark);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on; replaces the limit before.
  void watch(Milliseconds limit);
  void unwatch();

 private:
  using Clock = std::chrono::steady_clock;
  struct Kennel {
    boost::asio::steady_timer timer;
    Milliseconds again;
    std::function<void()> bark;
    Clock::time_point limit = Clock::time_point::max();
    Clock::time_point wakes = Clock::time_point::max();  ///< when the timer fires; max where it does not run
  };
  static void wake_at(const std::shared_ptr<Kennel>& kennel, Clock::time_point time);
  static void on_wake(const std::shared_ptr<Kennel>& kennel);

  std::shared_ptr<Kennel> kennel_;
};

}  // namespace semel::net
