// What a run is about: which events happen, who tells of them, how many processes there are, and what goes wrong. All
// of it comes from the seed.
#pragma once

#include <semel/performer.hpp>
#include <string>
#include <vector>

#include "faults.hpp"
#include "random.hpp"
#include "world.hpp"

namespace semel::sim {

/// One business event, which is to have its effect once, however often it is told.
struct Happening {
  enum class Kind { own_rows, publications, charge, rejected, chain } kind = Kind::own_rows;
  std::string key;
  int cents = 0;
  std::string effect{};     ///< of a charge, or of a chain's first step
  std::string order_key{};  ///< of publications
  int publications = 0;

  std::string body(int other_cents = 0) const;
};

/// One who tells of a happening, again and again until it is acknowledged or answered.
struct Telling {
  std::size_t happening = 0;
  bool is_caller = false;   ///< else a message at the broker
  bool is_changed = false;  ///< the same key with another body
  microseconds at{0};
};

struct Scenario {
  int processes = 2;
  int lanes = 2;
  std::size_t batch_max = 10;
  bool waits_again = false;
  bool accepted_when_late = true;
  std::size_t provider_calls_max = 32;
  std::size_t performer_room = 8;
  std::vector<microseconds> clock_offsets;
  std::vector<Happening> happenings;
  std::vector<Telling> tellings;
  std::vector<PlannedFault> faults;
};

Scenario scenario_of(std::uint64_t seed);

/// The effects that the simulated provider has, with what is said of it, each a little less than is true.
std::vector<EffectOptions> simulated_effects(const Scenario& scenario);

}  // namespace semel::sim
