#include <semel/clock.hpp>

namespace semel {
namespace {

struct SystemClock final : Clock {
  std::chrono::steady_clock::time_point now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace

Clock& Clock::system() {
  static SystemClock clock;
  return clock;
}

}  // namespace semel
