// The simulation itself under test: it repeats itself, and seeds that found something stay found.
#include "run.hpp"

#include <gtest/gtest.h>

#include <semel/probe.hpp>

namespace semel::sim {
namespace {

TEST(Simulation, IsAFunctionOfItsSeed) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto first = run({.seed = seed, .keeps_timeline = true});
    for (std::uint64_t other = 100; other < 103; ++other) run({.seed = other});
    const auto second = run({.seed = seed, .keeps_timeline = true});
    ASSERT_EQ(first.timeline, second.timeline) << "seed " << seed;
    EXPECT_EQ(first.steps, run({.seed = seed}).steps) << "a timeline changes the run, seed " << seed;
  }
}

TEST(Simulation, LeavesOutTheFaultsThatAFailureDoesNotNeed) {
  RunOptions options{.seed = 1, .mutant = Mutant::commit_repeated_blindly};
  while (options.seed < 1'000 && !run(options).broken) ++options.seed;
  ASSERT_TRUE(run(options).broken);
  const auto faults = shrink(options);
  ASSERT_FALSE(faults.empty());
  auto again = options;
  again.faults = faults;
  EXPECT_TRUE(run(again).broken);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    auto fewer = faults;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    again.faults = fewer;
    EXPECT_FALSE(run(again).broken) << "fault " << i << " is not needed";
  }
}

TEST(Simulation, EveryStepOfTheEngineIsReached) {
  std::map<std::string, std::int64_t> covered;
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    for (const auto& [place, count] : run({.seed = seed}).covered) covered[place] += count;
  for (const auto step : all_steps) EXPECT_GT(covered["step " + std::string(step_name(step))], 0) << step_name(step);
}

}  // namespace
}  // namespace semel::sim
