#include "engine/throttle.hpp"

#include <algorithm>
#include <cmath>

namespace semel::engine {

bool is_unanswered(const CallReport& report) {
  const bool open = report.verdict == CallVerdict::unknown || report.verdict == CallVerdict::not_done;
  // An Answer that nobody filled in has 200, which no answer of these verdicts has.
  return open && report.outcome.answer.status < 400;
}

Throttle::Throttle(const ProviderLimits& limits)
    : limits_(limits), saved_max_(std::max(1.0, limits.calls_per_second)), saved_(saved_max_) {}

void Throttle::earn(Time now) {
  if (earned_ && now > *earned_) {
    const std::chrono::duration<double> passed = now - *earned_;
    saved_ = std::min(saved_max_, saved_ + passed.count() * limits_.calls_per_second);
  }
  earned_ = std::max(now, earned_.value_or(now));
}

std::size_t Throttle::room(Time now) {
  earn(now);
  if (is_open(now) || under_way_ >= limits_.calls_max) return 0;
  std::size_t room = limits_.calls_max - under_way_;
  if (limits_rate()) room = std::min(room, static_cast<std::size_t>(saved_));
  if (reopens_) room = trying_ ? 0 : std::min<std::size_t>(room, 1);
  return room;
}

std::optional<std::chrono::milliseconds> Throttle::wait(Time now) {
  if (room(now) > 0 || under_way_ >= limits_.calls_max) return std::nullopt;
  std::chrono::milliseconds wait{0};
  if (is_open(now)) wait = std::chrono::ceil<std::chrono::milliseconds>(*reopens_ - now);
  if (reopens_ && !is_open(now) && trying_) return std::nullopt;
  if (limits_rate() && saved_ < 1) {
    const std::chrono::duration<double> missing((1 - saved_) / limits_.calls_per_second);
    wait = std::max(wait, std::chrono::ceil<std::chrono::milliseconds>(missing));
  }
  // Rounding must not make a waiter turn in circles.
  return std::max(wait, std::chrono::milliseconds(1));
}

void Throttle::began(Time now) {
  earn(now);
  ++under_way_;
  if (limits_rate()) saved_ -= 1;
  if (reopens_) trying_ = true;
}

void Throttle::ended(Time now, bool answered) {
  if (under_way_ > 0) --under_way_;
  if (answered) {
    failures_ = 0;
    reopens_.reset();
    trying_ = false;
    return;
  }
  if (is_open(now)) return;  // begun before it opened, and nothing new
  ++failures_;
  if (limits_.breaker_failures == 0 || failures_ < limits_.breaker_failures) return;
  reopens_ = now + limits_.breaker_pause;
  trying_ = false;
}

}  // namespace semel::engine
