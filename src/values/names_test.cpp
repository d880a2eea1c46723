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

TEST(Names, every_step_decision_and_reason_has_one_of_its_own) {
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

TEST(Clock, the_systems_never_goes_back) {
  const auto before = Clock::system().now();
  EXPECT_LE(before, Clock::system().now());
}

TEST(Probe, none_returns_at_once) {
  for (const auto step : all_steps) EXPECT_NO_THROW(Probe::none().reached(step));
}

TEST(Doorbell, a_ring_before_the_wait_is_not_lost) {
  Doorbell bell;
  bell.ring();
  bell.wait(std::chrono::hours(1));  // hangs, and so fails by the test's time limit, where the ring is lost
}

TEST(Doorbell, a_ring_wakes_one_wait_only) {
  Doorbell bell;
  bell.ring();
  bell.ring();
  bell.wait(std::chrono::hours(1));
  const auto before = std::chrono::steady_clock::now();
  bell.wait(std::chrono::milliseconds(20));
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(20));
}

TEST(Doorbell, wakes_whoever_waits) {
  Doorbell bell;
  std::thread ringer([&] { bell.ring(); });
  bell.wait(std::chrono::hours(1));
  ringer.join();
}

}  // namespace
}  // namespace semel
