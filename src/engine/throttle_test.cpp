#include "engine/throttle.hpp"

#include <gtest/gtest.h>

namespace semel::engine {
namespace {

using namespace std::chrono_literals;

/// A throttle and the test's own time.
struct Scene {
  explicit Scene(const ProviderLimits& limits) : throttle(limits) {}
  std::size_t room() { return throttle.room(now); }
  void begin(int count = 1) {
    for (int i = 0; i < count; ++i) throttle.began(now);
  }
  void end(bool answered, int count = 1) {
    for (int i = 0; i < count; ++i) throttle.ended(now, answered);
  }
  Throttle throttle;
  Throttle::Time now{1h};
};

TEST(Throttle, BoundsTheCallsUnderWay) {
  Scene scene({.calls_max = 3});
  EXPECT_EQ(scene.room(), 3u);
  scene.begin(3);
  EXPECT_EQ(scene.room(), 0u);
  EXPECT_EQ(scene.throttle.wait(scene.now), std::nullopt) << "only the end of a call helps";
  scene.end(true);
  EXPECT_EQ(scene.room(), 1u);
}

TEST(Throttle, BoundsTheRateAndSavesUpOneSecond) {
  Scene scene({.calls_max = 100, .calls_per_second = 4});
  EXPECT_EQ(scene.room(), 4u);
  scene.begin(4);
  EXPECT_EQ(scene.room(), 0u);
  EXPECT_EQ(scene.throttle.wait(scene.now), 250ms);
  scene.now += 250ms;
  EXPECT_EQ(scene.room(), 1u);
  scene.now += 1h;
  EXPECT_EQ(scene.room(), 4u) << "an idle hour is no burst";
}

TEST(Throttle, ARateBelowOneASecondStillLetsOneBegin) {
  Scene scene({.calls_per_second = 0.1});
  EXPECT_EQ(scene.room(), 1u);
  scene.begin();
  scene.end(true);
  EXPECT_EQ(scene.throttle.wait(scene.now), 10s);
  scene.now += *scene.throttle.wait(scene.now);
  EXPECT_EQ(scene.room(), 1u);
}

TEST(Throttle, TheBreakerOpensAfterSoManyUnansweredInARow) {
  Scene scene({.breaker_failures = 3, .breaker_pause = 10s});
  scene.begin(5);
  scene.end(false, 2);
  scene.end(true);
  scene.end(false, 2);
  EXPECT_GT(scene.room(), 0u) << "an answer in between begins the count anew";
  scene.begin();
  scene.end(false);
  EXPECT_EQ(scene.room(), 0u);
  EXPECT_TRUE(scene.throttle.is_open(scene.now));
  EXPECT_EQ(scene.throttle.wait(scene.now), 10s);
}

TEST(Throttle, AfterThePauseOneCallTries) {
  Scene scene({.breaker_failures = 1, .breaker_pause = 10s});
  scene.begin();
  scene.end(false);
  scene.now += 10s;
  EXPECT_EQ(scene.room(), 1u);
  scene.begin();
  EXPECT_EQ(scene.room(), 0u);
  EXPECT_EQ(scene.throttle.wait(scene.now), std::nullopt);
  scene.end(false);
  EXPECT_EQ(scene.room(), 0u) << "not answered: another pause";
  EXPECT_EQ(scene.throttle.wait(scene.now), 10s);
  scene.now += 10s;
  scene.begin();
  scene.end(true);
  EXPECT_EQ(scene.room(), ProviderLimits{}.calls_max);
}

TEST(Throttle, CallsBegunBeforeTheBreakerOpenedDoNotProlongThePause) {
  Scene scene({.breaker_failures = 2, .breaker_pause = 10s});
  scene.begin(4);
  scene.end(false, 2);
  scene.now += 9s;
  scene.end(false);
  scene.now += 1s;
  EXPECT_EQ(scene.room(), 1u);
  scene.end(true);
  EXPECT_GT(scene.room(), 1u) << "an answer closes it, whichever call it belongs to";
}

TEST(Throttle, ABreakerOfZeroNeverOpens) {
  Scene scene({.breaker_failures = 0});
  scene.begin(30);
  scene.end(false, 30);
  EXPECT_EQ(scene.room(), ProviderLimits{}.calls_max);
}

TEST(Throttle, AnAnswerOfAnyKindIsAnAnswer) {
  const auto report = [](CallVerdict verdict, int status) {
    CallReport made{.verdict = verdict};
    made.outcome.answer.status = status;
    return made;
  };
  EXPECT_TRUE(is_unanswered(report(CallVerdict::unknown, 0)));
  EXPECT_TRUE(is_unanswered(report(CallVerdict::not_done, 0)));
  EXPECT_TRUE(is_unanswered(CallReport{})) << "a Reply that was dropped";
  EXPECT_FALSE(is_unanswered(report(CallVerdict::unknown, 500)));
  EXPECT_FALSE(is_unanswered(report(CallVerdict::not_done, 429)));
  for (const auto verdict : {CallVerdict::succeeded, CallVerdict::failed, CallVerdict::not_found,
                             CallVerdict::unfinished, CallVerdict::mismatch})
    EXPECT_FALSE(is_unanswered(report(verdict, 0)));
}

}  // namespace
}  // namespace semel::engine
