// The simulated world: its time, its processes and their threads, and who goes on next. One thread of this machine, no
// clock of it, and nothing random but the seed.
//
// A simulated thread is a fiber. Every call that it makes to the world (store, source, performer, probe) is a step:
// here the seed decides who goes on, and here a planned fault strikes. A process that crashes is never heard of again:
// its fibers are unwound by an exception so that their memory is freed, with the world deaf to whatever they still do.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <semel/clock.hpp>
#include <semel/probe.hpp>
#include <semel/source.hpp>
#include <set>
#include <string>
#include <vector>

#include "faults.hpp"
#include "fiber.hpp"
#include "mutants.hpp"
#include "random.hpp"

namespace semel::sim {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// How a crashed process's fibers are unwound.
struct Vanished {};

class World;

/// One process of the simulated world, from its start to its crash.
struct Process {
  int number = 0;
  std::string name;
  bool dead = false;
  microseconds frozen_until{0};
  microseconds clock_offset{0};  ///< its clock against the world's time
  bool may_fail = true;          ///< whether it can crash or stand still
};

/// A process's clock: never set back, as steady clocks are not.
class ProcessClock : public Clock {
 public:
  ProcessClock(const World& world, const Process& process) : world_(world), process_(process) {}
  std::chrono::steady_clock::time_point now() const override;

 private:
  const World& world_;
  const Process& process_;
};

struct WorldOptions {
  std::uint64_t seed = 1;
  std::vector<PlannedFault> faults{};
  std::optional<Mutant> mutant{};
  bool keeps_timeline = false;
};

class World {
 public:
  explicit World(WorldOptions options);

  /// Unwinds every simulated thread that still runs; whoever started one calls it before what its body uses is gone.
  void end();

  microseconds now() const { return now_; }
  milliseconds now_ms() const { return std::chrono::duration_cast<milliseconds>(now_); }
  Random& random() { return random_; }
  bool has(Mutant mutant) const { return options_.mutant == mutant; }

  /// Starts a simulated thread of `process`, which outlives it.
  void start(Process& process, std::string name, std::function<void()> body);
  /// `action` happens after `delay`, by itself.
  void after(microseconds delay, std::function<void()> action);
  /// Runs until nothing is left to do, `done` says so, or the world's time is `until`. False: there was more to do.
  bool run(microseconds until, const std::function<bool()>& done);

  // From inside a simulated thread:

  /// One step of `process`: others may go on here. Throws Vanished where the process has crashed.
  void step(Process& process);
  /// Until `ready` or `time` has passed; false for the latter. Throws Vanished.
  bool wait(Process& process, milliseconds time, std::function<bool()> ready);
  /// Until `bell` rings, or the world's time is `until`. Throws Vanished.
  void sleep(Process& process, Doorbell& bell, microseconds until);

  /// Whether a planned fault of this kind strikes now.
  bool strikes(Fault kind);
  /// How many of its kind have struck.
  std::int64_t struck(Fault kind) const { return struck_[static_cast<std::size_t>(kind)]; }
  std::int64_t struck_in_all() const;
  std::int64_t opportunities(Fault kind) const { return opportunities_[static_cast<std::size_t>(kind)]; }

  /// Called when a process has crashed, before its fibers are unwound; and after.
  std::function<void(Process&)> on_crash;
  std::function<void(Process&)> after_crash;
  /// It stands still for a while, from its next step on.
  void freeze(Process& process);
  /// Ends a process now.
  void crash(Process& process);
  /// The process's threads are unwound and forgotten. From outside of every fiber.
  void forget(Process& process);

  /// A line of the timeline. `text` is called only where one is kept.
  template <class Text>
  void say(const Process* process, Text text) {
    if (options_.keeps_timeline) write(process, text());
  }
  const std::vector<std::string>& timeline() const { return timeline_; }
  std::int64_t steps() const { return steps_; }
  void cover(const std::string& place) { ++covered_[place]; }
  const std::map<std::string, std::int64_t>& covered() const { return covered_; }

 private:
  struct Thread {
    Process* process;
    std::string name;
    std::unique_ptr<Fiber> fiber;
    microseconds wake_at{0};
    Doorbell* bell = nullptr;
    std::function<bool()> ready{};
    bool runnable = true;
  };
  struct Event {
    microseconds at;
    std::uint64_t number;
    std::function<void()> action;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };

  void give_way();
  void run_events();
  bool is_ready(const Thread& thread) const;
  Thread* pick();
  bool advance(microseconds until);
  void write(const Process* process, const std::string& text);

  WorldOptions options_;
  Random random_;
  microseconds now_{std::chrono::hours(1)};
  std::vector<std::unique_ptr<Thread>> threads_;
  Thread* running_ = nullptr;
  std::vector<Process*> crashed_;  ///< to be buried by the scheduler
  std::vector<Event> events_;      ///< a heap
  std::uint64_t event_number_ = 0;
  std::int64_t steps_ = 0;
  std::array<std::vector<std::int64_t>, fault_count> planned_{};  ///< sorted, last first
  std::array<std::int64_t, fault_count> opportunities_{};
  std::array<std::int64_t, fault_count> struck_{};
  std::vector<std::string> timeline_;
  std::map<std::string, std::int64_t> covered_;
};

/// Tells the world of every step of the engine.
class WorldProbe : public Probe {
 public:
  WorldProbe(World& world, Process& process) : world_(world), process_(process) {}
  void reached(Step step) override;

 private:
  World& world_;
  Process& process_;
};

}  // namespace semel::sim
