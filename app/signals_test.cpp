#include "signals.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

using namespace std::chrono_literals;

namespace semel::app {
namespace {

constexpr int was_stopped = 7;

[[noreturn]] void wait_for_the_end() {
  for (;;) ::pause();
}

TEST(Signals, TheFirstOneStops) {
  const auto run = [] {
    Signals signals;
    const auto watch = signals.watch([] { ::_exit(was_stopped); }, 1h);
    ::kill(::getpid(), SIGTERM);
    wait_for_the_end();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(was_stopped), "");
}

TEST(Signals, NothingIsStoppedThatIsGoneButTheDeadlineHolds) {
  const auto run = [] {
    Signals signals;
    {
      const auto watch = signals.watch([] { ::_exit(was_stopped); }, 1ms);
    }
    ::kill(::getpid(), SIGTERM);
    wait_for_the_end();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(1), "the shutdown deadline has passed");
}

}  // namespace
}  // namespace semel::app
