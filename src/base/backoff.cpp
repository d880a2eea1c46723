#include "base/backoff.hpp"

#include <algorithm>

namespace semel {

std::chrono::milliseconds backoff(int attempt, std::chrono::milliseconds first, std::chrono::milliseconds max,
                                  double fraction) {
  const auto ceiling = std::max(max.count(), std::chrono::milliseconds::rep{0});
  auto bound = std::clamp(first.count(), std::chrono::milliseconds::rep{0}, ceiling);
  // The loop ends by itself where doubling would pass the ceiling, so nothing overflows at the millionth attempt.
  for (int i = 1; i < attempt && bound > 0 && bound < ceiling; ++i) bound = bound > ceiling / 2 ? ceiling : bound * 2;
  const double part = fraction >= 0 && fraction <= 1 ? fraction : 1;
  return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(static_cast<double>(bound) * part));
}

std::chrono::milliseconds Jitter::backoff(int attempt, std::chrono::milliseconds first, std::chrono::milliseconds max) {
  return semel::backoff(attempt, first, max, std::uniform_real_distribution<double>(0.0, 1.0)(random_));
}

}  // namespace semel
