// semel-sim: runs the engine in a simulated world, one seed after another, and says which promise breaks.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>
#include <thread>

#include "run.hpp"

namespace semel::sim {
namespace {

constexpr std::string_view examples = R"(
Examples:
  semel-sim --seeds 10000                 ten thousand runs, from seed 1 on
  semel-sim --seeds 1000000 --jobs 4      more of them, on four threads; each run has one
  semel-sim --replay 40 --timeline        one run again, step by step
  semel-sim --mutants                     plants one bug after another, and looks how soon each is found
  semel-sim --mutant outbox-by-cursor     runs with one planted bug

Exit status: 0 where every promise held (--mutants: every bug was found), 1 where not, 2 for a wrong call.)";

struct Settings {
  std::uint64_t seeds = 1'000;
  std::uint64_t from = 1;
  unsigned jobs = 1;
  std::string mutant;
  bool mutants = false;
  std::optional<std::uint64_t> replay;
  bool timeline = false;
};

struct Failure {
  std::uint64_t seed;
  std::string broken;
};

/// What many runs came to.
struct Total {
  std::uint64_t runs = 0;
  std::int64_t steps = 0;
  double world_seconds = 0;
  std::int64_t effects = 0;
  std::int64_t charges = 0;
  std::array<std::int64_t, fault_count> struck{};
  std::map<std::string, std::int64_t> covered;
  std::vector<Failure> failures;

  void add(std::uint64_t seed, const RunResult& result) {
    ++runs;
    steps += result.steps;
    world_seconds += result.seconds;
    effects += result.effects;
    charges += result.charges;
    for (std::size_t kind = 0; kind < fault_count; ++kind) struck[kind] += result.struck[kind];
    for (const auto& [place, count] : result.covered) covered[place] += count;
    if (result.broken) failures.push_back({seed, *result.broken});
  }
};

constexpr std::size_t failures_max = 10;

/// Runs `settings.seeds` seeds on `settings.jobs` threads; ends early where `failures` have been found.
Total run_all(const Settings& settings, std::optional<Mutant> mutant, std::size_t failures) {
  Total total;
  std::mutex mutex;
  std::atomic<std::uint64_t> next = settings.from;
  std::atomic<bool> enough = false;
  const auto work = [&] {
    while (!enough) {
      const auto seed = next.fetch_add(1);
      if (seed >= settings.from + settings.seeds) return;
      const auto result = sim::run({.seed = seed, .mutant = mutant});
      const std::lock_guard lock(mutex);
      total.add(seed, result);
      enough = total.failures.size() >= failures;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < settings.jobs; ++i) threads.emplace_back(work);
  work();
  for (auto& thread : threads) thread.join();
  std::sort(total.failures.begin(), total.failures.end(), [](const auto& a, const auto& b) { return a.seed < b.seed; });
  return total;
}

void print(const PlannedFault& fault) {
  std::printf("    %s, at its opportunity %lld\n", std::string(fault_name(fault.kind)).c_str(),
              static_cast<long long>(fault.opportunity));
}

void explain(const Failure& failure, std::optional<Mutant> mutant) {
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(failure.seed), failure.broken.c_str());
  const auto faults = shrink({.seed = failure.seed, .mutant = mutant});
  std::printf("  %s\n", faults.empty() ? "without any fault" : "these faults are enough:");
  for (const auto& fault : faults) print(fault);
  std::printf("  again, step by step: semel-sim --replay %llu --timeline%s%s\n",
              static_cast<unsigned long long>(failure.seed), mutant ? " --mutant " : "",
              mutant ? std::string(traits_of(*mutant).name).c_str() : "");
}

void print(const Total& total, double seconds) {
  const auto runs = static_cast<double>(std::max<std::uint64_t>(1, total.runs));
  std::printf("%llu runs in %.1f s: %.0f runs per second\n", static_cast<unsigned long long>(total.runs), seconds,
              runs / seconds);
  std::printf("%lld steps, %.0f hours of the simulated world, %lld effects, %lld charges\n",
              static_cast<long long>(total.steps), total.world_seconds / 3600, static_cast<long long>(total.effects),
              static_cast<long long>(total.charges));
  std::printf("faults that struck:\n");
  std::int64_t all = 0;
  for (std::size_t kind = 0; kind < fault_count; ++kind) {
    std::printf("  %-24s %10lld\n", fault_names[kind], static_cast<long long>(total.struck[kind]));
    all += total.struck[kind];
  }
  std::printf("  %-24s %10lld\n", "in all", static_cast<long long>(all));
  std::printf("steps of the engine and changes of intents that were reached:\n");
  for (const auto& [place, count] : total.covered)
    std::printf("  %-40s %10lld\n", place.c_str(), static_cast<long long>(count));
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int run_seeds(const Settings& settings, std::optional<Mutant> mutant) {
  const auto begin = std::chrono::steady_clock::now();
  const auto total = run_all(settings, mutant, failures_max);
  print(total, seconds_since(begin));
  for (const auto& failure : total.failures) explain(failure, mutant);
  std::printf("%s\n", total.failures.empty() ? "every promise held" : "PROMISES WERE BROKEN");
  return total.failures.empty() ? 0 : 1;
}

int replay(const Settings& settings, std::optional<Mutant> mutant) {
  const auto result = sim::run({.seed = *settings.replay, .mutant = mutant, .keeps_timeline = settings.timeline});
  for (const auto& line : result.timeline) std::printf("%s\n", line.c_str());
  if (!result.broken) {
    std::printf("seed %llu: every promise held\n", static_cast<unsigned long long>(*settings.replay));
    return 0;
  }
  explain({*settings.replay, *result.broken}, mutant);
  return 1;
}

/// As a table, ready for a page.
int run_mutants(const Settings& settings) {
  bool all_found = true;
  std::printf(
      "| planted bug | promise that breaks | found by seed | of at most | what was seen |\n|---|---|---|---|---|\n");
  for (const auto& mutant : all_mutants()) {
    auto own = settings;
    own.seeds = mutant.seeds_max;
    const auto total = run_all(own, mutant.mutant, 1);
    const bool found = !total.failures.empty();
    all_found = all_found && found;
    std::printf("| %s | %s | %s | %llu | %s |\n", std::string(mutant.name).c_str(), std::string(mutant.breaks).c_str(),
                found ? std::to_string(total.failures.front().seed).c_str() : "NOT FOUND",
                static_cast<unsigned long long>(mutant.seeds_max), found ? total.failures.front().broken.c_str() : "");
    std::fflush(stdout);
  }
  return all_found ? 0 : 1;
}

int start(int argc, char** argv) {
  Settings settings;
  CLI::App app{"Runs the engine in a simulated world: crashes, lost replies and clocks that differ, by seed."};
  app.footer(std::string(examples));
  app.add_option("--seeds", settings.seeds, "how many runs")->check(CLI::PositiveNumber);
  app.add_option("--from", settings.from, "the first seed");
  app.add_option("--jobs", settings.jobs, "how many runs at a time")->check(CLI::Range(1, 1024));
  app.add_option("--mutant", settings.mutant, "with this planted bug");
  app.add_flag("--mutants", settings.mutants, "every planted bug in turn, as a table");
  app.add_option("--replay", settings.replay, "this seed again");
  app.add_flag("--timeline", settings.timeline, "with --replay: every step");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto mutant = mutant_named(settings.mutant);
  if (!settings.mutant.empty() && !mutant) {
    std::fprintf(stderr, "no planted bug is named \"%s\"; there are:\n", settings.mutant.c_str());
    for (const auto& known : all_mutants()) std::fprintf(stderr, "  %s\n", std::string(known.name).c_str());
    return 2;
  }
  if (settings.timeline && !settings.replay) {
    std::fprintf(stderr, "--timeline goes with --replay SEED\n");
    return 2;
  }
  if (settings.mutants) return run_mutants(settings);
  return settings.replay ? replay(settings, mutant) : run_seeds(settings, mutant);
}

}  // namespace
}  // namespace semel::sim

int main(int argc, char** argv) { return semel::sim::start(argc, argv); }
