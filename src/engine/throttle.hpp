// How many calls to one provider may begin now: bounds, a rate, and a breaker. Pure: time is handed in.
#pragma once

#include <chrono>
#include <optional>
#include <semel/performer.hpp>

namespace semel::engine {

/// Whether an attempt ended without any answer of the provider: what the breaker counts.
bool is_unanswered(const CallReport& report);

/// Counts the calls to one provider. One thread at a time.
///
/// The breaker opens after `breaker_failures` calls in a row without any answer. No call begins for `breaker_pause`;
/// then one does, to try. An answer of any kind closes it; none, and it stays open for another pause.
class Throttle {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// A rate above 0 saves up at most one second's worth of calls, and at least one.
  explicit Throttle(const ProviderLimits& limits);

  /// How many calls may begin now.
  std::size_t room(Time now);
  /// Where there is no room, and it comes by itself: how long until then. Nothing where there is room, or a call must
  /// end first.
  std::optional<std::chrono::milliseconds> wait(Time now);

  /// One of the calls that `room` allowed has begun.
  void began(Time now);
  /// One that had begun has ended; `answered`: the provider was heard, whatever it said.
  void ended(Time now, bool answered);

  bool is_open(Time now) const { return reopens_ && now < *reopens_; }
  std::size_t under_way() const { return under_way_; }

 private:
  void earn(Time now);
  bool limits_rate() const { return limits_.calls_per_second > 0; }

  const ProviderLimits limits_;
  const double saved_max_;
  double saved_;  ///< calls that the rate allows now
  std::optional<Time> earned_{};
  std::size_t under_way_ = 0;
  int failures_ = 0;               ///< in a row
  std::optional<Time> reopens_{};  ///< the breaker is open until then, and on trial from then on
  bool trying_ = false;            ///< the trial is under way
};

}  // namespace semel::engine
