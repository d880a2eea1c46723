#include "demo/demo.hpp"

#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "base/child_process.hpp"
#include "demo/ledger.hpp"

namespace semel::demo {

namespace {

constexpr int payments = 41;

/// What a scene needs: files, a ledger, and how to start a consumer on them.
class Scene {
 public:
  Scene(const Options& options, std::string name)
      : program_(options.program.string()), folder_(options.directory / name), ledger_(file("ledger.db")) {
    std::filesystem::create_directories(folder_);
    std::ofstream messages(file("payments.jsonl"));
    for (int i = 1; i <= payments; ++i)
      messages << fmt::format(R"({{"payment_id":"pay_{:02}","cents":{}}})", i, 1000 + i) << "\n";
  }
  virtual ~Scene() = default;

  virtual Result<void> prepare() { return create_ledger(ledger_); }
  virtual std::vector<std::string> consumer_command() const = 0;
  /// Where every effect is durable and nothing is acknowledged.
  virtual const char* effects_step() const = 0;
  /// Where a consumer has its messages and has not decided about them yet.
  virtual const char* messages_step() const = 0;

  Result<ChildProcess> start_consumer() {
    deliveries_ += payments;
    return start(consumer_command());
  }
  Result<LedgerCount> count() const { return count_ledger(ledger_); }
  long long deliveries() const { return deliveries_; }

 protected:
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  Result<ChildProcess> start(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), program_);
    return ChildProcess::start(
        {.command = std::move(arguments), .output_file = file("output.txt"), .error_file = file("errors.txt")});
  }

  std::string program_;
  std::filesystem::path folder_;
  std::string ledger_;

 private:
  long long deliveries_ = 0;
};

class NaiveScene : public Scene {
 public:
  NaiveScene(const Options& options, int version, const std::string& fault)
      : Scene(options, fmt::format("version-{}-{}", version, fault)), version_(version) {}

  Result<void> prepare() override {
    if (auto prepared = Scene::prepare(); !prepared) return prepared;
    auto started = start({"demo-ledger", ledger_, file("ledger.sock")});
    if (!started) return std::move(started).error();
    ledger_process_.emplace(*std::move(started));
    if (ledger_process_->run_until("ready")) return ledger_process_->release(), Result<void>();
    return retry_later(ErrorCode::source_unreadable, "the demo's ledger did not start; see " + file("errors.txt"));
  }
  std::vector<std::string> consumer_command() const override {
    return {"demo-consumer", std::to_string(version_), file("payments.jsonl"), file("consumer.db"),
            file("ledger.sock")};
  }
  const char* effects_step() const override { return "charged"; }
  const char* messages_step() const override { return "looked-up"; }

 private:
  int version_;
  std::optional<ChildProcess> ledger_process_{};
};

class SemelScene : public Scene {
 public:
  SemelScene(const Options& options, const std::string& fault) : Scene(options, "semel-" + fault) {}

  Result<void> prepare() override {
    std::ofstream(file("semel.yaml")) << fmt::format(R"(store: sqlite:{}
sources:
  payments: {{ file: {} }}
handlers:
  charge:
    from: payments
    key: /payment_id
    execute:
      - INSERT INTO ledger (payment_id, cents) VALUES (:key, :/cents)
)",
                                                     ledger_, file("payments.jsonl"));
    if (auto prepared = Scene::prepare(); !prepared) return prepared;
    auto migrate = start({"migrate", file("semel.yaml")});
    if (!migrate) return std::move(migrate).error();
    if (migrate->wait() == 0) return {};
    return retry_later(ErrorCode::store_unreachable, "semel migrate failed; see " + file("errors.txt"));
  }
  std::vector<std::string> consumer_command() const override {
    return {"run", file("semel.yaml"), "--probe-fd",
            fmt::format("{},{}", ChildProcess::step_fd, ChildProcess::release_fd)};
  }
  const char* effects_step() const override { return "committed"; }
  const char* messages_step() const override { return "received"; }
};

/// Kills the consumer after the last effect and before any acknowledgement; then everything is delivered again.
Result<void> play_killed(Scene& scene) {
  auto first = scene.start_consumer();
  if (!first) return std::move(first).error();
  while (first->run_until(scene.effects_step())) {
    auto counted = scene.count();
    if (!counted) return std::move(counted).error();
    if (counted->payments == payments) break;
    first->release();
  }
  first->kill();
  auto second = scene.start_consumer();
  if (!second) return std::move(second).error();
  second->run_to_end();
  return {};
}

/// Two consumers hold the same messages at the same moment, as after a visibility timeout that was too short.
Result<void> play_two_at_once(Scene& scene) {
  auto first = scene.start_consumer();
  if (!first) return std::move(first).error();
  auto second = scene.start_consumer();
  if (!second) return std::move(second).error();
  for (auto* consumer : {&*first, &*second})
    if (consumer->run_until(scene.messages_step())) consumer->release();
  std::thread other([&] { second->run_to_end(); });
  first->run_to_end();
  other.join();
  return {};
}

struct Fault {
  const char* folder;
  const char* name;
  Result<void> (*play)(Scene&);
};
constexpr Fault faults[] = {{"killed", "killed after the effect", play_killed},
                            {"two-at-once", "two consumers at once", play_two_at_once}};

Result<Row> play(Scene& scene, const std::string& consumer, const Fault& fault) {
  if (auto prepared = scene.prepare(); !prepared) return std::move(prepared).error();
  if (auto played = fault.play(scene); !played) return std::move(played).error();
  auto counted = scene.count();
  if (!counted) return std::move(counted).error();
  return Row{consumer,
             fault.name,
             payments,
             scene.deliveries(),
             counted->effects,
             counted->effects - counted->payments,
             payments - counted->payments};
}

}  // namespace

Result<std::vector<Row>> run_demo(const Options& options) {
  // A consumer that was killed leaves a pipe that nobody reads.
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<Row> rows;
  for (const auto& fault : faults) {
    NaiveScene version_1(options, 1, fault.folder);
    NaiveScene version_2(options, 2, fault.folder);
    SemelScene semel(options, fault.folder);
    const std::pair<Scene*, const char*> contestants[] = {
        {&version_1, "version 1"}, {&version_2, "version 2"}, {&semel, "semel"}};
    for (const auto& [scene, name] : contestants) {
      auto row = play(*scene, name, fault);
      if (!row) return std::move(row).error();
      rows.push_back(*std::move(row));
    }
  }
  return rows;
}

}  // namespace semel::demo
