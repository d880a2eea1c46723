#include "prove/prove.hpp"

#include <algorithm>

namespace semel::prove {
namespace {

/// How often a simpler plan is tried before it is taken not to show the same.
constexpr int simpler_trials = 3;

std::string what_is_missing(const Attack& attack, const Settings& settings) {
  const auto* request = std::get_if<Request>(&settings.event);
  const bool changed = request ? request->changed.has_value() : std::get<Message>(settings.event).changed.has_value();
  switch (attack.needs) {
    case Needs::nothing:
      return "";
    case Needs::start:
      return settings.start ? "" : "needs \"target: { start: … }\"";
    case Needs::reply:
      return request ? "" : "a message has no reply";
    case Needs::changed:
      return changed ? "" : "needs \"changed\"";
  }
  return "";
}

class Prover {
 public:
  Prover(const Settings& settings, const Orders& orders)
      : settings_(settings),
        orders_(orders),
        target_(settings.start, url_of(settings)),
        counter_(counter_for(settings)),
        bench_(settings_, target_, *counter_, orders.seed, orders.stop) {}

  Result<std::vector<Verdict>> run() {
    if (const auto seen = bench_.warm_up(); !seen) return seen.error();
    std::vector<Verdict> verdicts;
    for (const auto& attack : all_attacks(settings_.clients)) {
      if (!orders_.attacks.empty() && !orders_.attacks.contains(std::string(attack.name))) continue;
      auto verdict = verdict_on(attack);
      if (!verdict) return verdict.error();
      verdicts.push_back(*std::move(verdict));
    }
    if (auto counted = count_again(verdicts); !counted) return counted.error();
    return verdicts;
  }

 private:
  static std::string url_of(const Settings& settings) {
    const auto* request = std::get_if<Request>(&settings.event);
    return request ? with_key(request->url, "0") : "";
  }

  Result<Verdict> verdict_on(const Attack& attack) {
    Verdict verdict{.attack = std::string(attack.name), .what = std::string(attack.what)};
    verdict.not_tried = what_is_missing(attack, settings_);
    if (!verdict.not_tried.empty()) return verdict;
    orders_.begins(attack);
    std::mt19937_64 chance(orders_.seed);
    Plan plan;
    const int trials = attack.by_chance ? settings_.trials : 1;
    while (verdict.trials < trials && !verdict.broken()) {
      plan = with_moments(attack.plan, chance);
      auto seen = bench_.carry_out(plan);
      if (!seen) return seen.error();
      ++verdict.trials;
      keep_keys(attack, *seen);
      verdict.seen = *std::move(seen);
    }
    if (verdict.broken())
      if (auto shortened = shorten(verdict, plan); !shortened) return shortened.error();
    return verdict;
  }

  /// Goes over to a simpler plan as long as one shows the same.
  Result<void> shorten(Verdict& verdict, Plan plan) {
    const auto symptom = verdict.seen.symptom;
    if (const auto simple = simplest_.find(symptom); simple != simplest_.end()) {
      verdict.same_as = simple->second;
      return {};
    }
    for (bool found = symptom != Symptom::unanswered; found;) {
      found = false;
      for (const auto& candidate : simpler(plan)) {
        auto seen = shows(candidate, symptom);
        if (!seen) return seen.error();
        if (!*seen) continue;
        verdict.seen = **std::move(seen);
        plan = candidate;
        found = true;
        break;
      }
    }
    verdict.advice = advice(verdict.attack, symptom, plan);
    if (only_sends(plan)) simplest_.emplace(symptom, verdict.attack);
    return {};
  }

  Result<std::optional<Seen>> shows(const Plan& plan, Symptom symptom) {
    for (int i = 0; i < simpler_trials; ++i) {
      auto seen = bench_.carry_out(plan);
      if (!seen) return seen.error();
      if (seen->symptom == symptom) return std::optional(*std::move(seen));
    }
    return std::optional<Seen>();
  }

  void keep_keys(const Attack& attack, const Seen& seen) {
    if (seen.symptom != Symptom::none) return;
    for (const auto& key : seen.keys) keys_.emplace_back(attack.name, key);
  }

  /// What came late: all keys whose effects were once right are counted again in the end.
  Result<void> count_again(std::vector<Verdict>& verdicts) {
    for (const auto& [attack, key] : keys_) {
      const auto effects = bench_.count(key);
      if (!effects) return effects.error();
      const auto verdict = std::ranges::find(verdicts, attack, &Verdict::attack);
      if (*effects == 1 || verdict->broken()) continue;
      verdict->seen.symptom = *effects > 1 ? Symptom::repeated : Symptom::lost;
      verdict->seen.effects = *effects;
      verdict->seen.expected = 1;
      verdict->seen.sequence.push_back("key " + key + ", counted again in the end: " + std::to_string(*effects) +
                                       " effects");
      verdict->advice = "The effect changed long after the answer: give `quiet` more time, and look again.";
    }
    return {};
  }

  const Settings& settings_;
  const Orders& orders_;
  Target target_;
  std::unique_ptr<Counter> counter_;
  Bench bench_;
  std::map<Symptom, std::string> simplest_{};                ///< the attack that shows it with plain requests alone
  std::vector<std::pair<std::string, std::string>> keys_{};  ///< attack and key
};

}  // namespace

Result<std::vector<Verdict>> prove(const Settings& settings, const Orders& orders) {
  return Prover(settings, orders).run();
}

}  // namespace semel::prove
