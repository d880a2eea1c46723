#include "base/backoff.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace semel {
namespace {

using std::chrono::milliseconds;

TEST(Backoff, DoublesFromTheFirstDelayUpToTheLast) {
  struct Case {
    int attempt;
    int most;
  };
  for (const auto [attempt, most] : {Case{1, 100}, Case{2, 200}, Case{3, 400}, Case{9, 25'600}, Case{10, 30'000},
                                     Case{11, 30'000}, Case{64, 30'000}, Case{1'000'000, 30'000}}) {
    EXPECT_EQ(backoff(attempt, milliseconds(100), milliseconds(30'000), 1), milliseconds(most)) << attempt;
    EXPECT_EQ(backoff(attempt, milliseconds(100), milliseconds(30'000), 0.5), milliseconds(most / 2)) << attempt;
    EXPECT_EQ(backoff(attempt, milliseconds(100), milliseconds(30'000), 0), milliseconds(0)) << attempt;
  }
}

TEST(Backoff, StaysWithinItsBoundsWhateverIsGiven) {
  const auto endless = milliseconds::max();
  EXPECT_GE(backoff(1'000, milliseconds(1), endless / 1024, 1), milliseconds(0));
  EXPECT_EQ(backoff(0, milliseconds(100), milliseconds(1'000), 1), milliseconds(100));
  EXPECT_EQ(backoff(-5, milliseconds(100), milliseconds(1'000), 1), milliseconds(100));
  EXPECT_EQ(backoff(3, milliseconds(0), milliseconds(1'000), 1), milliseconds(0));
  EXPECT_EQ(backoff(3, milliseconds(-1), milliseconds(1'000), 1), milliseconds(0));
  EXPECT_EQ(backoff(3, milliseconds(5'000), milliseconds(1'000), 1), milliseconds(1'000));
  EXPECT_EQ(backoff(3, milliseconds(100), milliseconds(-1), 1), milliseconds(0));
  EXPECT_EQ(backoff(1, milliseconds(100), milliseconds(1'000), 7.0), milliseconds(100));
  EXPECT_EQ(backoff(1, milliseconds(100), milliseconds(1'000), std::numeric_limits<double>::quiet_NaN()),
            milliseconds(100));
}

TEST(Backoff, JitterSpreadsOverTheWholeDelay) {
  Jitter jitter(1);
  int below_half = 0;
  for (int i = 0; i < 1'000; ++i) {
    const auto delay = jitter.backoff(3, milliseconds(100), milliseconds(30'000));
    EXPECT_GE(delay, milliseconds(0));
    EXPECT_LE(delay, milliseconds(400));
    below_half += delay < milliseconds(200);
  }
  EXPECT_GT(below_half, 400);
  EXPECT_LT(below_half, 600);
}

}  // namespace
}  // namespace semel
