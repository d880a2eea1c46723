// All attacks on one target, each with its verdict.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "prove/trial.hpp"

namespace semel::prove {

struct Verdict {
  std::string attack;
  std::string what;
  std::string not_tried{};  ///< why; empty where it was
  int trials = 0;
  Seen seen{};  ///< the worst that was seen; its sequence is the shortest that shows it
  std::string advice{};
  std::string same_as{};  ///< an earlier attack that is as simple as can be and shows the same; empty: none
  bool broken() const { return seen.symptom != Symptom::none; }
};

struct Orders {
  std::set<std::string> attacks{};  ///< only these; empty: all
  std::uint64_t seed = 0;           ///< of the moments
  std::stop_token stop{};           ///< ends the run with an error, once what it does is done
  std::function<void(const Attack&)> begins = [](const Attack&) {};
};

/// Errors are those of a world that cannot be attacked: no target, no count, no effect when asked once.
Result<std::vector<Verdict>> prove(const Settings& settings, const Orders& orders);

/// A row for each attack; behind it, of each broken one, the sequence and what to do.
std::string verdicts_text(const std::vector<Verdict>& verdicts);
boost::json::value verdicts_json(const std::vector<Verdict>& verdicts, std::uint64_t seed);
/// JUnit's XML, as continuous integration servers read it.
std::string verdicts_junit(const std::vector<Verdict>& verdicts);

}  // namespace semel::prove
