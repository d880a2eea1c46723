// Time, injected. The engine reads no other clock; leases and expiry are judged by the store's.
#pragma once

#include <chrono>

namespace semel {

/// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::chrono::steady_clock::time_point now() const = 0;

  /// The machine's.
  static Clock& system();
};

}  // namespace semel
