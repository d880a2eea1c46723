// semel run CONFIG
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <iostream>
#include <memory>

#include "admin.hpp"
#include "commands/commands.hpp"
#include "commands/with_config.hpp"
#include "configured_handler.hpp"
#include "log.hpp"
#include "metrics.hpp"
#include "net/http_server.hpp"
#include "opened_performers.hpp"
#include "opened_sources.hpp"
#include "probe_fd.hpp"
#include "progress.hpp"
#include "signals.hpp"
#include "store_review.hpp"

namespace semel::app {
namespace {

struct RunOptions {
  std::string config;
  bool json = false;
  std::vector<int> probe_fds{};
};

/// Tells each of several observers.
class Observers : public Observer {
 public:
  explicit Observers(std::vector<Observer*> all) : all_(std::move(all)) {}
  void started() override {
    for (auto* one : all_) one->started();
  }
  void message(const MessageReport& report) override {
    for (auto* one : all_) one->message(report);
  }
  void batch(const BatchReport& report) override {
    for (auto* one : all_) one->batch(report);
  }
  void called(const CallReported& report) override {
    for (auto* one : all_) one->called(report);
  }
  void sent(const SendReported& report) override {
    for (auto* one : all_) one->sent(report);
  }
  void trouble(const Error& error) override {
    for (auto* one : all_) one->trouble(error);
  }
  void recovered() override {
    for (auto* one : all_) one->recovered();
  }

 private:
  std::vector<Observer*> all_;
};

/// Says where it listens once the run has begun, and not before: a run that is refused has listened to nobody.
class Announcement : public Observer {
 public:
  Announcement(Log& log, const OpenedSources& sources) : log_(log), sources_(sources) {}
  void started() override {
    for (const auto& address : sources_.addresses()) log_.info("listening on " + address);
  }

 private:
  Log& log_;
  const OpenedSources& sources_;
};

void print_summary(const Summary& summary, bool json) {
  const std::pair<const char*, std::uint64_t> counts[] = {
      {"received", summary.received},   {"fresh", summary.fresh},     {"replays", summary.replays},
      {"set_aside", summary.set_aside}, {"refused", summary.refused}, {"handed_back", summary.handed_back},
      {"unmatched", summary.unmatched}};
  boost::json::object object;
  std::vector<std::vector<std::string>> rows(2);
  for (const auto& [name, count] : counts) {
    object[name] = count;
    std::string words(name);
    std::replace(words.begin(), words.end(), '_', ' ');
    rows[0].push_back(words);
    rows[1].push_back(std::to_string(count));
  }
  if (json) {
    print_json(object);
  } else {
    std::cout << table(rows);
  }
}

std::vector<std::string> handler_names(const Config& config) {
  std::vector<std::string> names;
  for (const auto& handler : config.handlers) names.push_back(handler.options.name);
  for (const auto& gateway : config.gateways) names.push_back(gateway.name);
  return names;
}

/// A bar and a line for each message would fight for one terminal.
bool shows_progress(const Config& config) {
  return config.listeners.empty() && ::isatty(STDERR_FILENO) && config.log.level >= LogConfig::Level::info;
}

/// The admin listener, and what it asks.
struct Admin {
  std::optional<Readiness> readiness{};
  std::optional<Backlog> backlog{};
  std::unique_ptr<net::Server> server{};

  Result<void> open(const AdminConfig& config, Store& store, Metrics& metrics, Log& log, const Redactor& redactor) {
    readiness.emplace(store);
    backlog.emplace(store);
    auto serving = serve_admin(config, metrics, *backlog, *readiness, redactor);
    if (!serving && config.asked_for) return std::move(serving).error();
    if (!serving) {
      log.warn("no admin listener: " + serving.error().message);
    } else {
      server = std::move(*serving);
      log.info("admin on http://" + config.address + ":" + std::to_string(server->port()));
    }
    return {};
  }
};

void tell_what_no_lane_saw(http::Options& listener, Log& log, Metrics& metrics) {
  listener.on_refused = [&log, &metrics](std::string_view source, const Error& why) {
    metrics.refused(source, why);
    log.refused(source, why);
  };
  const auto address = host_text(listener.address) + ":" + std::to_string(listener.port);
  listener.on_problem = [&log, &metrics, address](int status, std::string_view problem) {
    metrics.problem(address, status, problem);
    log.problem(address, status, problem);
  };
}

/// One run, wired: store, sources, handlers, observers.
template <class StoreT>
int run_on(StoreT& store, Config& config, const RunOptions& options, Signals& signals) {
  const bool bar = shows_progress(config);
  if (bar) config.log.level = std::max(config.log.level, LogConfig::Level::warn);
  Log log(config.log, config.redactor);
  Metrics metrics(handler_names(config));
  std::vector<Observer*> observers = {&metrics, &log};
  Admin admin;
  if (config.admin) {
    if (auto opened = admin.open(*config.admin, store, metrics, log, config.redactor); !opened)
      return report(opened.error(), config.redactor);
    observers.push_back(&*admin.readiness);
  }
  for (auto& listener : config.listeners) tell_what_no_lane_saw(listener, log, metrics);
  auto performers = OpenedPerformers::open(config);
  if (!performers) return report(performers.error(), config.redactor);
  auto sources = OpenedSources::open(config, store);
  if (!sources) return report(sources.error(), config.redactor);
  Announcement announcement(log, *sources);
  observers.push_back(&announcement);
  Observers observer(observers);
  std::optional<ProbeFd> probe;
  config.consumer.observer = &observer;
  if (options.probe_fds.size() == 2) {
    config.consumer.probe = &probe.emplace(ProbeFd::Descriptors{options.probe_fds[0], options.probe_fds[1]});
  }
  Consumer<StoreT> consumer(store, config.consumer);
  for (const auto& handler : config.handlers) add_handler(consumer, handler);
  add_outside(consumer, config, *performers);
  for (auto* source : sources->all()) consumer.consume(*source);
  if (auto started = sources->start(); !started) return report(started.error(), config.redactor);

  const auto stop = [&consumer, &log] {
    log.info("stopping");
    consumer.stop();
  };
  const auto watch = signals.watch(stop, config.consumer.shutdown_deadline);
  std::optional<ProgressBar> progress;
  if (bar) progress.emplace(sources->files());
  const auto summary = consumer.run();
  progress.reset();
  if (!summary) return report(summary.error(), config.redactor);
  print_summary(*summary, options.json);
  return done;
}

}  // namespace

void add_run(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<RunOptions>();
  auto* command = program.add_subcommand("run", "Take messages from the sources and apply their effects, each once");
  command->add_option("CONFIG", options->config, "The configuration file")->required();
  command->add_flag("--json", options->json, "Print the summary as JSON");
  command->add_option("--probe-fd", options->probe_fds, "For tests: report steps on one descriptor, wait on another")
      ->delimiter(',')
      ->expected(2)
      ->group("");
  command->footer(
      "Ends by itself where every source is a file; else runs until SIGTERM or SIGINT.\n"
      "Example:\n"
      "  STRIPE_SECRET=whsec_… semel run semel.yaml");
  command->callback([options, &chosen] {
    chosen = [options] {
      return with_config(options->config, [&](Config config) {
        // Before any thread is made, the store's included.
        Signals signals;
        const auto store = open_existing_store(config.store);
        if (!store) return report(store.error(), config.redactor);
        const auto wrong = wrong_statements(config, store_of(*store));
        for (const auto& error : wrong) report(error, config.redactor);
        if (!wrong.empty()) return static_cast<int>(failure);
        return std::visit([&](const auto& opened) { return run_on(*opened, config, *options, signals); }, *store);
      });
    };
  });
}

}  // namespace semel::app
