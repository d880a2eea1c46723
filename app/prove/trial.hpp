// One plan, carried out on keys that nobody has used, and what came of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <semel/result.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "prove/attack.hpp"
#include "prove/count.hpp"
#include "prove/exchange.hpp"
#include "prove/settings.hpp"
#include "prove/target.hpp"

namespace semel::prove {

struct Seen {
  Symptom symptom = Symptom::none;
  long long expected = 0;
  long long effects = 0;
  std::optional<bool> same_answers{};   ///< nothing where there were not two to compare
  std::vector<std::string> sequence{};  ///< what was done and what came of it, for people
  std::vector<std::string> keys{};
};

/// Carries plans out, one at a time.
class Bench {
 public:
  /// All outlive it. `seed` makes keys that no other run has; after `stop` nothing is begun any more.
  Bench(const Settings& settings, Target& target, Counter& counter, std::uint64_t seed, std::stop_token stop)
      : settings_(settings), target_(target), counter_(counter), seed_(seed), stop_(std::move(stop)) {}

  /// One event, undisturbed: it must have one effect and be answered. Also measures how long that takes.
  Result<Seen> warm_up();
  /// Errors are those of a world that cannot be attacked: no target, no count.
  Result<Seen> carry_out(const Plan& plan);
  Result<long long> count(const std::string& key) { return counter_.count(key); }

 private:
  struct Run;

  std::string new_key();
  Outgoing request(const Step& step, const std::string& key) const;
  Result<Reply> ask_until_answered(const Step& step, const std::string& key);
  Result<void> together(Run& run, const Step& step);
  Result<void> go_away(Run& run, const Step& step);
  Result<void> kill(Run& run, const Step& step);
  Result<void> send(Run& run, const Step& step);
  Result<void> take(Run& run, const Step& step);
  Result<void> put_message(const Step& step, const std::string& key);
  Result<void> wait_for_effect(const std::string& key);
  Result<long long> effects_at_rest(const std::string& key, long long expected);
  Result<Seen> judge(Run& run, const Plan& plan);

  const Settings& settings_;
  Target& target_;
  Counter& counter_;
  std::uint64_t seed_;
  std::stop_token stop_;
  std::uint64_t keys_made_ = 0;
  std::chrono::microseconds usual_{20'000};  ///< how long an event takes
};

}  // namespace semel::prove
