#include "engine/store_away.hpp"

#include <utility>

namespace semel::engine {

namespace {
constexpr std::chrono::milliseconds shortest(50);
constexpr std::chrono::milliseconds longest(5'000);
}  // namespace

std::optional<StoreAway::TimePoint> StoreAway::until(TimePoint now) {
  if (until_ && now >= *until_) until_.reset();
  return until_;
}

std::chrono::milliseconds StoreAway::failed(TimePoint now, Jitter& jitter) {
  const auto pause = jitter.backoff(++failures_, shortest, longest);
  until_ = now + pause;
  return pause;
}

bool StoreAway::recovered() { return std::exchange(failures_, 0) > 0; }

}  // namespace semel::engine
