// semel dead-letters CONFIG list|show|retry|drop
#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <iostream>
#include <memory>
#include <mutex>

#include "base/encoding.hpp"
#include "commands/commands.hpp"
#include "commands/given.hpp"
#include "commands/with_config.hpp"
#include "config/nearest_name.hpp"
#include "configured_handler.hpp"
#include "opened_performers.hpp"

namespace semel::app {
namespace {

constexpr std::array all_reasons{SetAsideReason::no_key, SetAsideReason::malformed, SetAsideReason::conflict,
                                 SetAsideReason::rejected, SetAsideReason::exhausted};

struct LetterOptions {
  std::string config;
  bool json = false;
  std::string handler;
  std::string reason;
  bool resolved_too = false;
  std::size_t count_max = 100;
  std::string before;
  std::vector<std::string> ids;
  bool all = false;
};

/// Empty where the letter has no key.
std::string key_text(const DeadLetter& letter) {
  const auto key = Key::from_bytes(letter.key);
  return key ? printable(key->text()) : "";
}

std::string state_text(const DeadLetter& letter) { return letter.resolution.empty() ? "waiting" : letter.resolution; }

boost::json::object letter_json(const DeadLetter& letter, bool whole) {
  boost::json::object object;
  object["id"] = letter.id;
  object["state"] = state_text(letter);
  object["reason"] = std::string(reason_name(letter.reason));
  object["code"] = code_name(letter.code);
  put_bytes(object, "detail", letter.detail);
  object["handler"] = letter.scope.handler;
  put_bytes(object, "principal", letter.scope.principal);
  const auto key = Key::from_bytes(letter.key);
  object["key"] = key ? key_json(*key) : nullptr;
  object["source"] = letter.source;
  put_bytes(object, "transport_id", letter.transport_id);
  object["attempts"] = letter.attempts;
  object["times"] = letter.times;
  object["set_aside_at"] = time_text(letter.set_aside_at);
  if (!whole) return object;
  object["fingerprint"] = hex_encode(letter.fingerprint.bytes());
  object["recorded_fingerprint"] = hex_encode(letter.recorded_fingerprint.bytes());
  object["attributes"] = attributes_json(letter.attributes);
  put_bytes(object, "body", letter.body);
  return object;
}

Result<DeadLetterQuery> query_of(const LetterOptions& options) {
  DeadLetterQuery query;
  if (!options.handler.empty()) query.handler = options.handler;
  query.waiting_only = !options.resolved_too;
  query.count_max = options.count_max;
  if (!options.before.empty()) {
    auto before = whole_id("dead letter", options.before);
    if (!before) return before.error();
    query.before_id = *std::move(before);
  }
  for (const auto reason : all_reasons) {
    if (reason_name(reason) == options.reason) query.reason = reason;
  }
  if (options.reason.empty() || query.reason) return query;
  std::vector<std::string> names;
  for (const auto reason : all_reasons) names.emplace_back(reason_name(reason));
  return fix_call(ErrorCode::config_unknown_name,
                  "there is no reason \"" + options.reason + "\"" + suggestion(options.reason, names));
}

Result<void> check_handler(const LetterOptions& options, const Config& config, Store& store) {
  std::vector<std::string> names;
  for (const auto& handler : config.handlers) names.push_back(handler.options.name);
  for (const auto& gateway : config.gateways) names.push_back(gateway.name);
  return check_name("handler", options.handler, names, [&]() -> Result<bool> {
    DeadLetterQuery query;
    query.handler = options.handler;
    query.waiting_only = false;
    query.count_max = 1;
    const auto letters = store.dead_letters(query);
    if (!letters) return letters.error();
    return !letters->empty();
  });
}

int list(const LetterOptions& options, const Config& config, Store& store) {
  const auto query = query_of(options);
  if (!query) return report(query.error());
  const auto letters = store.dead_letters(*query);
  if (!letters) return report(letters.error(), config.redactor);
  if (options.json) {
    boost::json::array array;
    for (const auto& letter : *letters) array.push_back(letter_json(letter, false));
    print_json(array);
    return done;
  }
  std::vector<std::vector<std::string>> rows = {{"id", "set aside", "state", "handler", "key", "reason", "detail"}};
  for (const auto& letter : *letters) {
    rows.push_back({letter.id, time_text(letter.set_aside_at), state_text(letter), letter.scope.handler,
                    key_text(letter), std::string(reason_name(letter.reason)), printable(letter.detail)});
  }
  if (letters->empty()) {
    std::cout << "no dead letters\n";
  } else {
    std::cout << table(rows);
  }
  if (letters->size() == options.count_max) note("there may be more: --before " + letters->back().id);
  return done;
}

Result<DeadLetter> find(const std::string& written, Store& store) {
  const auto id = find_id("dead letter", written, [&](const std::string& before) -> Result<std::vector<std::string>> {
    DeadLetterQuery query;
    query.waiting_only = false;
    query.before_id = before;
    query.count_max = 1'000;
    const auto page = store.dead_letters(query);
    if (!page) return page.error();
    std::vector<std::string> ids;
    for (const auto& letter : *page) ids.push_back(letter.id);
    return ids;
  });
  if (!id) return id.error();
  auto letter = store.dead_letter(*id);
  if (!letter) return letter.error();
  if (!*letter) return not_found("dead letter", written);
  return **std::move(letter);
}

int show(const LetterOptions& options, const Config& config, Store& store) {
  const auto letter = find(options.ids.front(), store);
  if (!letter) return report(letter.error(), config.redactor), failure;
  const auto& found = *letter;
  if (options.json) return print_json(letter_json(found, true)), done;
  std::vector<std::vector<std::string>> rows = {{"id", found.id},
                                                {"state", state_text(found)},
                                                {"reason", std::string(reason_name(found.reason))},
                                                {"detail", code_name(found.code) + ": " + printable(found.detail)},
                                                {"handler", found.scope.handler},
                                                {"key", key_text(found)},
                                                {"source", found.source},
                                                {"transport id", printable(found.transport_id)},
                                                {"attempts", std::to_string(found.attempts)},
                                                {"times set aside", std::to_string(found.times)},
                                                {"last set aside", time_text(found.set_aside_at)}};
  if (!found.fingerprint.empty()) rows.push_back({"fingerprint", hex_encode(found.fingerprint.bytes())});
  if (!found.recorded_fingerprint.empty()) {
    rows.push_back({"recorded", hex_encode(found.recorded_fingerprint.bytes()) + ", of the key's first message"});
  }
  for (const auto& entry : found.attributes.entries()) rows.push_back({"attribute", attribute_text(entry)});
  rows.push_back({"body", printable(found.body)});
  std::cout << table(rows);
  return done;
}

/// The letters that were named, or all that wait and match.
Result<std::vector<std::string>> chosen_ids(const LetterOptions& options, Store& store) {
  std::vector<std::string> ids;
  for (const auto& written : options.ids) {
    const auto letter = find(written, store);
    if (!letter) return letter.error();
    ids.push_back(letter->id);
  }
  if (!options.all) return ids;
  auto query = query_of(options);
  if (!query) return query.error();
  query->waiting_only = true;
  query->count_max = 1'000;
  for (;;) {
    const auto page = store.dead_letters(*query);
    if (!page) return page.error();
    for (const auto& letter : *page) ids.push_back(letter.id);
    if (page->size() < query->count_max) return ids;
    query->before_id = page->back().id;
  }
}

int drop(const LetterOptions& options, const Config& config, Store& store) {
  const auto ids = chosen_ids(options, store);
  if (!ids) return report(ids.error(), config.redactor), failure;
  std::uint64_t dropped = 0;
  for (const auto& id : *ids) {
    const auto was_waiting = store.resolve(id, "dropped");
    if (!was_waiting) return report(was_waiting.error(), config.redactor);
    if (*was_waiting) {
      ++dropped;
    } else {
      note("dead letter " + id + " does not wait any more");
    }
  }
  if (options.json) {
    print_json(boost::json::object{{"dropped", dropped}, {"not_waiting", ids->size() - dropped}});
  } else {
    std::cout << dropped << " of " << ids->size() << " dropped\n";
  }
  return dropped == ids->size() ? done : failure;
}

/// Collects why messages did not get through.
class Failures : public Observer {
 public:
  struct Failed {
    std::string handler;
    std::string key;
    std::string code;
    std::string why;
  };
  explicit Failures(const Redactor& redactor) : redactor_(redactor) {}
  void message(const MessageReport& report) override {
    if (report.decision == Decision::fresh || report.decision == Decision::replay) return;
    const std::lock_guard lock(mutex_);
    all_.push_back({std::string(report.handler), report.key ? report.key->text() : "",
                    report.error ? code_name(report.error->code) : "",
                    report.error ? redactor_.clean(report.error->message) : "its handler is not configured any more"});
  }
  const std::vector<Failed>& all() const { return all_; }

 private:
  const Redactor& redactor_;
  std::mutex mutex_;
  std::vector<Failed> all_;
};

boost::json::array failures_json(const Failures& failures) {
  boost::json::array array;
  for (const auto& [handler, key, code, why] : failures.all()) {
    array.push_back(boost::json::object{
        {"handler", handler}, {"key", printable(key)}, {"code", code}, {"message", printable(why)}});
  }
  return array;
}

void print_failures(const Failures& failures) {
  for (const auto& [handler, key, code, why] : failures.all()) {
    std::string text = "failed";
    if (!handler.empty()) text += ": handler " + handler;
    if (!key.empty()) text += ", key " + printable(key);
    if (!code.empty()) text += ": " + code;
    note(text + ": " + printable(why));
  }
}

template <class StoreT>
int retry(const LetterOptions& options, const Config& config, StoreT& store) {
  const auto ids = chosen_ids(options, store);
  if (!ids) return report(ids.error(), config.redactor), failure;
  const auto performers = OpenedPerformers::open(config);
  if (!performers) return report(performers.error(), config.redactor);
  Failures failures(config.redactor);
  auto consumer_options = config.consumer;
  consumer_options.observer = &failures;
  Consumer<StoreT> consumer(store, consumer_options);
  for (const auto& handler : config.handlers) add_handler(consumer, handler);
  add_outside(consumer, config, *performers);
  const auto summary = ids->empty() ? Result<Summary>(Summary{}) : consumer.resend(*ids);
  if (!summary) return report(summary.error(), config.redactor);
  const auto through = summary->fresh + summary->replays;
  if (options.json) {
    print_json(boost::json::object{{"sent", ids->size()},
                                   {"fresh", summary->fresh},
                                   {"replays", summary->replays},
                                   {"set_aside", summary->set_aside},
                                   {"handed_back", summary->handed_back},
                                   {"unmatched", summary->unmatched},
                                   {"failed", failures_json(failures)}});
  } else {
    print_failures(failures);
    std::cout << through << " of " << ids->size() << " got through (" << summary->fresh << " fresh, "
              << summary->replays << " replays); " << ids->size() - through << " still wait\n";
  }
  return through == ids->size() ? done : failure;
}

/// Each command's own; the id is one that a letter might have.
std::string example_of(const std::string& name) {
  const std::string id = " 5f0c7e9ab1d24c3388e6f1027d9b4a65";
  const auto rest = name == "list" ? std::string(" --reason malformed") : id;
  return "Example:\n  semel dead-letters semel.yaml " + name + rest;
}

using LetterCommand = int (*)(const LetterOptions&, const Config&, const AnyStore&);

int run_command(const LetterOptions& options, LetterCommand command) {
  return with_store(options.config, [&](const Config& config, const AnyStore& store) {
    if (const auto query = query_of(options); !query) return report_given(query.error());
    if (const auto checked = check_handler(options, config, store_of(store)); !checked)
      return report_given(checked.error(), config.redactor);
    return command(options, config, store);
  });
}

void add_action(CLI::App& parent, const std::string& name, const std::string& about,
                const std::shared_ptr<LetterOptions>& options, Action& chosen, LetterCommand command) {
  auto* sub = parent.add_subcommand(name, about);
  sub->add_flag("--json", options->json, "Print JSON");
  sub->footer(example_of(name));
  if (name == "show")
    sub->add_option("ID", options->ids, "The letter; its first six digits or more will do")->required()->expected(1);
  if (name == "list" || name == "retry" || name == "drop") {
    sub->add_option("--handler", options->handler, "Only this handler's");
    sub->add_option("--reason", options->reason, "Only of this reason");
  }
  if (name == "list") {
    sub->add_flag("--resolved", options->resolved_too, "With those that were retried or dropped");
    sub->add_option("--limit", options->count_max, "At most so many, newest first")->check(CLI::Range(1, 1'000'000));
    sub->add_option("--before", options->before, "Continue after this id");
  }
  if (name == "retry" || name == "drop") {
    auto* ids = sub->add_option("ID", options->ids, "The letters; the first six digits of each, or more, will do");
    auto* all = sub->add_flag("--all", options->all, "All that wait");
    ids->excludes(all);
  }
  const bool chooses = name == "retry" || name == "drop";
  sub->callback([options, &chosen, command, chooses] {
    if (chooses && options->ids.empty() && !options->all) throw CLI::RequiredError("ID or --all");
    chosen = [options, command] { return run_command(*options, command); };
  });
}

}  // namespace

void add_dead_letters(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<LetterOptions>();
  auto* command = program.add_subcommand("dead-letters", "List, show, send again or drop messages that were set aside");
  command->add_option("CONFIG", options->config, "The configuration file")->required();
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  semel dead-letters semel.yaml list --reason malformed\n"
      "  semel dead-letters semel.yaml show 5f0c7e9ab1d24c3388e6f1027d9b4a65\n"
      "  semel dead-letters semel.yaml retry --all");
  add_action(
      *command, "list", "List them, newest first", options, chosen,
      [](const auto& o, const Config& config, const AnyStore& store) { return list(o, config, store_of(store)); });
  add_action(
      *command, "show", "Show one whole, with its body", options, chosen,
      [](const auto& o, const Config& config, const AnyStore& store) { return show(o, config, store_of(store)); });
  add_action(*command, "retry", "Send them through their handlers again", options, chosen,
             [](const auto& o, const Config& config, const AnyStore& store) {
               return std::visit([&](const auto& opened) { return retry(o, config, *opened); }, store);
             });
  add_action(
      *command, "drop", "Mark them as dropped; they stay listed under --resolved", options, chosen,
      [](const auto& o, const Config& config, const AnyStore& store) { return drop(o, config, store_of(store)); });
}

}  // namespace semel::app
