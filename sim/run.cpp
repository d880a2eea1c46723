#include "run.hpp"

#include <algorithm>
#include <semel/resolve.hpp>

#include "node.hpp"

namespace semel::sim {

using namespace std::chrono_literals;

namespace {

constexpr auto time_max = 30min;
constexpr std::int64_t steps_max = 60'000;
/// How long an operator thinks: no call is under way any more when he looks.
constexpr auto operator_waits = 40s;

/// The database's machine: its clock, and what it does by itself.
class Machine : public Surroundings {
 public:
  explicit Machine(World& world) : world_(world) {}

  milliseconds now() const override { return 1'700'000'000'000ms + world_.now_ms() + ahead_; }
  void later(std::function<void()> action) override {
    world_.after(milliseconds(world_.random().spread(2'000)), std::move(action));
  }
  void set_forward(milliseconds time) { ahead_ += time; }

 private:
  World& world_;
  milliseconds ahead_{0};
};

class Simulation {
 public:
  Simulation(const RunOptions& options, Scenario scenario)
      : scenario_(std::move(scenario)),
        world_({.seed = options.seed,
                .faults = scenario_.faults,
                .mutant = options.mutant,
                .keeps_timeline = options.keeps_timeline}) {
    make_tables();
    world_.on_crash = [this](Process& process) {
      database_.vanished(&process);
      oracle_.vanished(process);
    };
    world_.after_crash = [this](Process& process) { restart(process.number); };
    nodes_.resize(static_cast<std::size_t>(scenario_.processes));
    lives_.resize(nodes_.size());
    for (int number = 0; number < scenario_.processes; ++number) start(number);
    for (std::size_t i = 0; i < scenario_.tellings.size(); ++i) tell(i);
    tick();
  }

  ~Simulation() { world_.end(); }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  RunResult run() {
    go();
    RunResult result{.broken = oracle_.broken(), .steps = world_.steps(), .covered = world_.covered()};
    result.seconds = static_cast<double>((world_.now() - begin_).count()) / 1e6;
    for (std::size_t kind = 0; kind < fault_count; ++kind)
      result.struck[kind] = world_.struck(static_cast<Fault>(kind));
    result.charges = static_cast<std::int64_t>(provider_.charges().size());
    database_.user_tables.at("effects").rows.each(nullptr, [&](auto, const auto&) { ++result.effects; });
    result.timeline = world_.timeline();
    return result;
  }

 private:
  void make_tables() {
    const auto make = [&](const std::string& name, const std::string& column) {
      database_.user_tables[name].columns = {{.name = "name"}, {.name = column}};
    };
    make("effects", "cents");
    make("settlements", "state");
    make("mails", "n");
    make("counters", "n");
    for (const std::string name : {"a", "b"})
      database_.user_tables["counters"].rows.put(database_.next_number(), {Value(std::in_place_type<std::string>, name),
                                                                           Value(std::in_place_type<std::int64_t>, 0)});
  }

  void start(int number) {
    const auto index = static_cast<std::size_t>(number);
    nodes_[index] = std::make_unique<Node>(town_, number, ++lives_[index]);
    world_.say(&nodes_[index]->process(), [] { return std::string("starts"); });
  }

  void restart(int number) {
    nodes_[static_cast<std::size_t>(number)].reset();
    // Mostly at once; sometimes its machine is away for longer than a provider remembers.
    auto& random = world_.random();
    const auto away = random.one_in(6) ? random.between(20'000, 60'000) : random.spread(4'000);
    world_.after(milliseconds(away), [this, number] { start(number); });
  }

  void tell(std::size_t telling) {
    ++untold_;
    world_.after(scenario_.tellings[telling].at, [this, telling] {
      --untold_;
      scenario_.tellings[telling].is_caller ? callers_.call(telling) : broker_.put(telling);
    });
  }

  /// The store's clock is checked now and then, and set.
  void tick() {
    world_.after(3s, [this] {
      if (world_.strikes(Fault::stop))
        if (auto& node = nodes_[world_.random().below(nodes_.size())]) node->stop();
      if (world_.strikes(Fault::store_clock_jump)) machine_.set_forward(milliseconds(world_.random().between(50, 900)));
      tick();
    });
  }

  bool nothing_left(bool but_for_operators) const {
    if (untold_ > 0 || !broker_.is_empty() || !provider_.is_idle()) return false;
    if (but_for_operators ? !callers_.wait_for_operators_only() : !callers_.all_answered()) return false;
    return oracle_.is_at_rest();
  }

  /// Until everything is at rest, with operators who look at what waits for them.
  void go() {
    for (int rounds = 0; rounds < 20; ++rounds) {
      const bool rest = world_.run(begin_ + time_max, [this] {
        return oracle_.broken() || world_.steps() > steps_max || nothing_left(oracle_.waits_for_operator());
      });
      if (oracle_.broken()) return;
      if (!rest || world_.steps() > steps_max) return oracle_.accuse("it does not come to rest" + oracle_.unfinished());
      if (!oracle_.waits_for_operator()) return oracle_.look_at_the_end(provider_, mailbox_);
      const auto until = world_.now() + operator_waits;
      world_.run(until, [] { return false; });
      oracle_.look_at_evidence();
      ask_operator();
    }
    oracle_.accuse("operators are asked again and again");
  }

  /// Resolves what is ambiguous, by what the provider says.
  void ask_operator() {
    Process process{.number = -1, .name = "operator", .may_fail = false};
    ProcessHost host(world_, process);
    SimulatedStore store(database_, host);
    bool finished = false;
    world_.start(process, "operator", [&] {
      const auto waiting = store.intents({.waiting_for_operator = true});
      for (const auto& intent : waiting ? *waiting : std::vector<Intent>()) resolve(store, intent);
      finished = true;
    });
    world_.run(world_.now() + 5min, [&] { return finished; });
    world_.forget(process);
  }

  void resolve(Store& store, const Intent& intent) {
    ResolutionRequest request{
        .id = intent.id, .resolution = Resolution::did_not_happen, .by = "operator", .why = "asked"};
    for (const auto& charge : provider_.charges()) {
      if (charge.reference != intent.reference || charge.effect != intent.effect) continue;
      request.resolution = Resolution::happened;
      request.reference = charge.id;
    }
    const auto resolved = semel::resolve(store, request);
    world_.say(nullptr, [&] {
      return "operator says that " + intent.reference + " " + std::string(resolution_name(request.resolution)) +
             (resolved ? "" : ": " + resolved.error().message);
    });
  }

  Scenario scenario_;
  World world_;
  Machine machine_{world_};
  Database database_{machine_};
  Oracle oracle_{world_, scenario_, database_};
  Broker broker_{world_, scenario_, oracle_};
  Callers callers_{world_, scenario_, oracle_};
  Provider provider_{world_};
  Mailbox mailbox_{world_};
  Town town_{world_, scenario_, database_, oracle_, broker_, callers_, provider_, mailbox_};
  const microseconds begin_ = world_.now();
  int untold_ = 0;
  std::vector<int> lives_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace

RunResult run(const RunOptions& options) {
  auto scenario = scenario_of(options.seed);
  if (options.faults) scenario.faults = *options.faults;
  return Simulation(options, std::move(scenario)).run();
}

std::vector<PlannedFault> shrink(const RunOptions& options) {
  auto tried = options;
  tried.keeps_timeline = false;
  auto faults = options.faults.value_or(scenario_of(options.seed).faults);
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = 0; i < faults.size(); ++i) {
      auto fewer = faults;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      tried.faults = fewer;
      if (!sim::run(tried).broken) continue;
      faults = std::move(fewer);
      smaller = true;
      break;
    }
  }
  return faults;
}

}  // namespace semel::sim
