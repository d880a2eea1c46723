// How long to wait before trying again.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace semel {

/// Exponential with full jitter: `fraction` (0 to 1, random, the caller's) of min(max, first × 2^(attempt − 1)).
/// `attempt` counts from 1; never negative, never above `max`, whatever is given.
std::chrono::milliseconds backoff(int attempt, std::chrono::milliseconds first, std::chrono::milliseconds max,
                                  double fraction);

/// The same with fractions of its own. One thread at a time.
class Jitter {
 public:
  explicit Jitter(std::uint64_t seed) : random_(seed) {}
  std::chrono::milliseconds backoff(int attempt, std::chrono::milliseconds first, std::chrono::milliseconds max);

 private:
  std::mt19937_64 random_;
};

}  // namespace semel
