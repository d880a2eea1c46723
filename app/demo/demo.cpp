#include "demo/demo.hpp"

#include <fmt/format.h>

#include <chrono>
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

  /// The ledger is there, and its process serves.
  virtual Result<void> prepare() {
    if (auto created = create_ledger(ledger_); !created) return created;
    auto started = start({"demo-ledger", ledger_, file("ledger.sock")});
    if (!started) return std::move(started).error();
    ledger_process_.emplace(*std::move(started));
    const std::string ready = "ready ";
    const auto step = ledger_process_->next_step();
    if (!step || !step->starts_with(ready))
      return retry_later(ErrorCode::source_unreadable, "the demo's ledger did not start; see " + file("errors.txt"));
    ledger_port_ = step->substr(ready.size());
    ledger_process_->release();
    return {};
  }
  virtual std::vector<std::string> consumer_command() const = 0;
  /// Runs a consumer until every charge is in the ledger and nothing of it is written down by the consumer.
  virtual Result<void> run_until_charged(ChildProcess& consumer) = 0;
  /// How long after a consumer's death another one may go on with its calls.
  virtual std::chrono::milliseconds lease() const { return std::chrono::milliseconds(0); }
  /// Payments without a charge, or whose charge the consumer does not know of in the end.
  virtual Result<long long> lost() const {
    auto counted = count();
    if (!counted) return std::move(counted).error();
    return payments - counted->payments;
  }
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
  std::string ledger_port_{};

 private:
  std::optional<ChildProcess> ledger_process_{};
  long long deliveries_ = 0;
};

class NaiveScene : public Scene {
 public:
  NaiveScene(const Options& options, int version, const std::string& fault)
      : Scene(options, fmt::format("version-{}-{}", version, fault)), version_(version) {}

  std::vector<std::string> consumer_command() const override {
    return {"demo-consumer", std::to_string(version_), file("payments.jsonl"), file("consumer.db"),
            file("ledger.sock")};
  }
  Result<void> run_until_charged(ChildProcess& consumer) override {
    if (consumer.run_until("charged")) return {};
    return retry_later(ErrorCode::source_unreadable, "a consumer ended too early; see " + file("errors.txt"));
  }
  const char* messages_step() const override { return "looked-up"; }

 private:
  int version_;
};

class SemelScene : public Scene {
 public:
  SemelScene(const Options& options, const std::string& fault) : Scene(options, "semel-" + fault) {}

  Result<void> prepare() override {
    if (auto prepared = Scene::prepare(); !prepared) return prepared;
    if (auto created = create_shop(shop()); !created) return created;
    std::ofstream(file("semel.yaml")) << fmt::format(
        R"(store: sqlite:{shop}
sources:
  payments: {{ file: {payments} }}
providers:
  bank: {{ key: {{ header: Idempotency-Key, lifetime: 24h }}, calls_max: {calls} }}
handlers:
  charge:
    from: payments
    key: /payment_id
    execute: INSERT INTO payments (id, cents) VALUES (:key, :/cents)
    call:
      provider: bank
      url: "http://127.0.0.1:{port}/charges"
      body: {{ payment: ":/payment_id", cents: ":/cents" }}
      lease: {lease}ms
      settle: {{ execute: UPDATE payments SET charge = :outcome_reference WHERE id = :/payment_id }}
)",
        fmt::arg("shop", shop()), fmt::arg("payments", file("payments.jsonl")), fmt::arg("calls", payments),
        fmt::arg("port", ledger_port_), fmt::arg("lease", lease().count()));
    auto migrate = start({"migrate", file("semel.yaml")});
    if (!migrate) return std::move(migrate).error();
    if (migrate->wait() == 0) return {};
    return retry_later(ErrorCode::store_unreachable, "semel migrate failed; see " + file("errors.txt"));
  }
  std::vector<std::string> consumer_command() const override {
    return {"run", file("semel.yaml"), "--probe-fd",
            fmt::format("{},{}", ChildProcess::step_fd, ChildProcess::release_fd)};
  }
  /// After the charge, and before its outcome is written.
  Result<void> run_until_charged(ChildProcess& consumer) override {
    int called = 0;
    while (auto step = consumer.next_step()) {
      if (*step == "called") ++called;
      if (*step == "reported" && called == payments) {
        auto ledger = LedgerClient::connect(file("ledger.sock"));
        return ledger ? ledger->wait_for(payments) : Result<void>(std::move(ledger).error());
      }
      consumer.release();
    }
    return retry_later(ErrorCode::source_unreadable, "semel ended too early; see " + file("errors.txt"));
  }
  const char* messages_step() const override { return "received"; }
  std::chrono::milliseconds lease() const override { return std::chrono::milliseconds(1'000); }
  Result<long long> lost() const override {
    auto settled = count_settled(shop());
    if (!settled) return std::move(settled).error();
    return payments - *settled;
  }

 private:
  std::string shop() const { return file("shop.db"); }
};

/// Kills the consumer after the last effect and before any acknowledgement; then everything is delivered again.
Result<void> play_killed(Scene& scene) {
  auto first = scene.start_consumer();
  if (!first) return std::move(first).error();
  if (auto charged = scene.run_until_charged(*first); !charged) return charged;
  first->kill();
  // Nobody takes over the calls of a process that may be alive.
  std::this_thread::sleep_for(scene.lease());
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
  const auto lost = scene.lost();
  if (!lost) return lost.error();
  return Row{consumer, fault.name, payments, scene.deliveries(), counted->effects, counted->effects - counted->payments,
             *lost};
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
