// One run of the simulation, from its seed to the oracle's verdict.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults.hpp"
#include "mutants.hpp"
#include "scenario.hpp"

namespace semel::sim {

struct RunOptions {
  std::uint64_t seed = 1;
  std::optional<Mutant> mutant{};
  /// Instead of the seed's own plan.
  std::optional<std::vector<PlannedFault>> faults{};
  bool keeps_timeline = false;
};

struct RunResult {
  std::optional<std::string> broken;  ///< the promise that was broken
  std::int64_t steps = 0;
  double seconds = 0;  ///< of the world's time
  std::array<std::int64_t, fault_count> struck{};
  std::map<std::string, std::int64_t> covered;  ///< how often each step of the engine was reached
  std::int64_t effects = 0;
  std::int64_t charges = 0;
  std::vector<std::string> timeline;
};

RunResult run(const RunOptions& options);

/// The faults of a failing run that it needs to fail: one after another is left out while something still breaks.
std::vector<PlannedFault> shrink(const RunOptions& options);

}  // namespace semel::sim
