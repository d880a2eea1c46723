// How lane, clerk and relay keep away from a store that fails: longer each time, until something commits again.
#pragma once

#include <chrono>
#include <optional>

#include "base/backoff.hpp"

namespace semel::engine {

class StoreAway {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Nothing is asked of the store before it; nothing where it may be asked now.
  std::optional<TimePoint> until(TimePoint now);
  /// The store has failed: how long to keep away.
  std::chrono::milliseconds failed(TimePoint now, Jitter& jitter);
  /// A transaction has committed. True where the store had failed before.
  bool recovered();
  /// Lets the next transaction be tried at once.
  void forget_pause() { until_.reset(); }

 private:
  std::optional<TimePoint> until_{};
  int failures_ = 0;  ///< in a row
};

}  // namespace semel::engine
