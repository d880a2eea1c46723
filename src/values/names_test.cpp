// Names that metrics, dead letters and crash tests use, and the objects that do nothing.
#include <gtest/gtest.h>

#include <semel/clock.hpp>
#include <semel/observer.hpp>
#include <semel/probe.hpp>
#include <semel/source.hpp>
#include <semel/store.hpp>
#include <set>
#include <thread>

namespace semel {
namespace {

TEST(Names, EveryStepDecisionAndReasonHasOneOfItsOwn) {
  std::set<std::string_view> names;
  for (const auto step : all_steps) EXPECT_TRUE(names.insert(step_name(step)).second) << step_name(step);
  EXPECT_EQ(names.count(""), 0u);
  names.clear();
  for (const auto decision : all_decisions)
    EXPECT_TRUE(names.insert(decision_name(decision)).second) << decision_name(decision);
  EXPECT_EQ(names.count(""), 0u);
  for (const auto reason : {SetAsideReason::no_key, SetAsideReason::malformed, SetAsideReason::conflict,
                            SetAsideReason::rejected, SetAsideReason::exhausted})
    EXPECT_EQ(names.count(reason_name(reason)), 1u) << "a message set aside is counted under its reason";
}

TEST(Clock, TheSystemsNeverGoesBack) {
  const auto before = Clock::system().now();
  EXPECT_LE(before, Clock::system().now());
}

TEST(Probe, NoneReturnsAtOnce) {
  for (const auto step : all_steps) EXPECT_NO_THROW(Probe::none().reached(step));
}

TEST(Doorbell, ARingBeforeTheWaitIsNotLost) {
  Doorbell bell;
  bell.ring();
  bell.wait(std::chrono::hours(1));  // hangs, and so fails by the test's time limit, where the ring is lost
}

TEST(Doorbell, ARingWakesOneWaitOnly) {
  Doorbell bell;
  bell.ring();
  bell.ring();
  bell.wait(std::chrono::hours(1));
  const auto before = std::chrono::steady_clock::now();
  bell.wait(std::chrono::milliseconds(20));
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(20));
}

TEST(Doorbell, WakesWhoeverWaits) {
  Doorbell bell;
  std::thread ringer([&] { bell.ring(); });
  bell.wait(std::chrono::hours(1));
  ringer.join();
}

}  // namespace
}  // namespace semel
