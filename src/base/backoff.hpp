// How long to wait before trying again.
#pragma once

#include <chrono>

namespace semel {

/// Exponential with full jitter: `fraction` (0 to 1, random, the caller's) of min(max, first × 2^(attempt − 1)).
/// `attempt` counts from 1; never negative, never above `max`, whatever is given.
std::chrono::milliseconds backoff(int attempt, std::chrono::milliseconds first, std::chrono::milliseconds max,
                                  double fraction);

}  // namespace semel
