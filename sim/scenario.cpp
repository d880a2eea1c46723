#include "scenario.hpp"

#include <algorithm>
#include <array>

namespace semel::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::array effect_names{"idempotent", "short-memory", "lookup", "neither"};
constexpr std::string_view refund = "refund";
constexpr std::array order_keys{"a", "b"};

Happening::Kind kind_of(Random& random) {
  switch (random.below(8)) {
    case 0:
    case 1:
      return Happening::Kind::own_rows;
    case 2:
    case 3:
      return Happening::Kind::publications;
    case 4:
      return random.one_in(3) ? Happening::Kind::rejected : Happening::Kind::charge;
    case 5:
      return Happening::Kind::chain;
    default:
      return Happening::Kind::charge;
  }
}

Happening make_happening(Random& random, std::size_t number) {
  Happening happening{.kind = kind_of(random), .key = "k" + std::to_string(number)};
  happening.cents = static_cast<int>(random.between(100, 999));
  happening.effect = effect_names[random.below(effect_names.size())];
  happening.order_key = order_keys[random.below(order_keys.size())];
  happening.publications = static_cast<int>(random.between(1, 3));
  return happening;
}

/// How often there is an opportunity for it in a run, roughly.
std::int64_t opportunities_of(Fault kind) {
  switch (kind) {
    case Fault::crash:
    case Fault::freeze:
      return 1'200;
    case Fault::connection_lost:
    case Fault::serialization_failure:
      return 400;
    case Fault::commit_lost_applied:
    case Fault::commit_lost_undone:
    case Fault::commit_late:
      return 100;
    case Fault::store_clock_jump:
    case Fault::stop:
      return 8;
    default:
      return 16;
  }
}

void plan_faults(Random& random, std::vector<PlannedFault>& faults) {
  if (random.one_in(12)) return;  // a calm day
  const std::uint64_t rare = 1 + random.below(4);
  for (std::size_t kind = 0; kind < fault_count; ++kind) {
    if (!random.one_in(rare)) continue;
    const auto count = random.below(4);
    for (std::uint64_t n = 0; n < count; ++n) {
      const PlannedFault fault{static_cast<Fault>(kind), random.spread(opportunities_of(static_cast<Fault>(kind)))};
      if (std::find(faults.begin(), faults.end(), fault) == faults.end()) faults.push_back(fault);
    }
  }
}

void plan_tellings(Random& random, Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.happenings.size(); ++i) {
    const auto count = random.between(1, 3);
    for (int n = 0; n < count; ++n)
      scenario.tellings.push_back(
          {.happening = i,
           .is_caller = random.one_in(2),
           .is_changed = n > 0 && random.one_in(4),
           .at = milliseconds(random.one_in(8) ? random.between(0, 90'000) : random.spread(4'000))});
  }
}

}  // namespace

std::string Happening::body(int other_cents) const {
  static constexpr std::array kinds{"own", "publish", "charge", "reject", "chain"};
  return R"({"id":")" + key + R"(","kind":")" + kinds[static_cast<std::size_t>(kind)] + R"(","cents":)" +
         std::to_string(cents + other_cents) + R"(,"effect":")" + effect + R"(","order":")" + order_key +
         R"(","count":)" + std::to_string(publications) + "}";
}

Scenario scenario_of(std::uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15u + 0x5e3e1);
  Scenario scenario;
  scenario.processes = static_cast<int>(random.between(1, 3));
  scenario.lanes = static_cast<int>(random.between(1, 2));
  scenario.batch_max = random.one_in(3) ? 1 : 10;
  scenario.waits_again = random.one_in(2);
  scenario.accepted_when_late = random.one_in(2);
  scenario.provider_calls_max = random.one_in(3) ? 1 : 32;
  scenario.performer_room = random.one_in(3) ? 1 : 8;
  const bool skewed = random.one_in(2);
  for (int i = 0; i < scenario.processes; ++i)
    scenario.clock_offsets.push_back(skewed ? milliseconds(random.between(-100'000, 100'000)) : 0ms);
  const auto count = static_cast<std::size_t>(random.between(2, 6));
  for (std::size_t i = 0; i < count; ++i) scenario.happenings.push_back(make_happening(random, i));
  plan_tellings(random, scenario);
  plan_faults(random, scenario.faults);
  return scenario;
}

std::vector<EffectOptions> simulated_effects(const Scenario& scenario) {
  using Kind = ProviderPolicy::Kind;
  EffectOptions effect{.name = "", .provider = "bank"};
  effect.limits.calls_max = scenario.provider_calls_max;
  effect.limits.breaker_failures = 4;
  effect.limits.breaker_pause = 2s;
  effect.timeout = 8s;
  effect.lease = 3s;
  effect.delay_first = 200ms;
  effect.delay_max = 3s;
  std::vector<EffectOptions> effects(effect_names.size(), effect);
  effects[0].policy = {.kind = Kind::idempotent, .key_lifetime = 24h};
  effects[1].policy = {
      .kind = Kind::idempotent, .key_lifetime = 30s, .margin = 10s, .can_look_up = true, .visibility_delay = 14s};
  effects[2].policy = {.kind = Kind::lookup, .visibility_delay = 14s};
  for (std::size_t i = 0; i < effects.size(); ++i) effects[i].name = effect_names[i];
  effects.push_back(effects[0]);
  effects.back().name = refund;
  return effects;
}

}  // namespace semel::sim
