// semel outbox CONFIG list|release|drop
#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <iostream>
#include <memory>

#include "commands/commands.hpp"
#include "commands/given.hpp"
#include "commands/with_config.hpp"

namespace semel::app {
namespace {

struct OutboxOptions {
  std::string config;
  bool json = false;
  bool held = false;
  std::string to;
  std::size_t count_max = 100;
  std::string after;
  std::string id;
};

boost::json::object message_json(const OutboxMessage& message, const Redactor& redactor) {
  boost::json::object object;
  object["id"] = message.id;
  object["to"] = message.publication.to;
  object["held"] = message.held;
  object["handler"] = message.record.scope.handler;
  object["key"] = key_json(message.record.key);
  put_bytes(object, "order_key", message.publication.order_key);
  object["attempt"] = message.attempt;
  object["failures"] = message.failures;
  put_bytes(object, "last_error", redactor.clean(message.last_error));
  object["published_at"] = time_text(message.published_at);
  return object;
}

Result<OutboxQuery> query_of(const OutboxOptions& options, const Config& config, Store& store) {
  OutboxQuery query{.held_only = options.held, .count_max = options.count_max};
  if (!options.to.empty()) query.to = options.to;
  std::vector<std::string> names;
  for (const auto& target : config.targets) names.push_back(target.name());
  const auto checked = check_name("target", options.to, names, [&]() -> Result<bool> {
    const auto messages = store.outbox({.to = options.to, .count_max = 1});
    if (!messages) return messages.error();
    return !messages->empty();
  });
  if (!checked) return checked.error();
  if (options.after.empty()) return query;
  auto after = whole_id("publication", options.after);
  if (!after) return after.error();
  query.after_id = *std::move(after);
  return query;
}

int list(const OutboxOptions& options, const Config& config, Store& store) {
  const auto query = query_of(options, config, store);
  if (!query) return report_given(query.error(), config.redactor);
  const auto messages = store.outbox(*query);
  if (!messages) return report(messages.error(), config.redactor);
  if (options.json) {
    boost::json::array array;
    for (const auto& message : *messages) array.push_back(message_json(message, config.redactor));
    print_json(array);
    return done;
  }
  std::vector<std::vector<std::string>> rows = {
      {"id", "published", "state", "to", "handler", "key", "order key", "failures", "last error"}};
  for (const auto& message : *messages) {
    rows.push_back({message.id, time_text(message.published_at), message.held ? "held" : "waiting",
                    message.publication.to, message.record.scope.handler, printable(message.record.key.text()),
                    printable(message.publication.order_key), std::to_string(message.failures),
                    printable(config.redactor.clean(message.last_error))});
  }
  std::cout << (messages->empty() ? std::string("nothing waits to be sent\n") : table(rows));
  if (messages->size() == options.count_max) note("there may be more: --after " + messages->back().id);
  return done;
}

Result<std::string> id_of(const std::string& written, Store& store) {
  return find_id("publication", written, [&](const std::string& after) -> Result<std::vector<std::string>> {
    const auto page = store.outbox({.after_id = after, .count_max = 1'000});
    if (!page) return page.error();
    std::vector<std::string> ids;
    for (const auto& message : *page) ids.push_back(message.id);
    return ids;
  });
}

using Change = Result<bool> (Store::*)(const std::string&);

/// `change` is true where the publication was held.
int change_one(const OutboxOptions& options, const Config& config, Store& store, Change change,
               const std::string& what) {
  const auto id = id_of(options.id, store);
  if (!id) return report(id.error(), config.redactor), failure;
  const auto was_held = (store.*change)(*id);
  if (!was_held) return report(was_held.error(), config.redactor);
  if (!*was_held) return report(not_found("publication", options.id, "none that is held has this id")), failure;
  if (options.json) {
    print_json(boost::json::object{{"id", *id}, {"now", what}});
  } else {
    std::cout << *id << " " << what << "\n";
  }
  return done;
}

int release(const OutboxOptions& options, const Config& config, Store& store) {
  return change_one(options, config, store, &Store::release, "released");
}

int drop(const OutboxOptions& options, const Config& config, Store& store) {
  return change_one(options, config, store, &Store::drop, "dropped");
}

using OutboxCommand = int (*)(const OutboxOptions&, const Config&, Store&);

CLI::App* add_action(CLI::App& parent, const std::string& name, const std::string& about,
                     const std::shared_ptr<OutboxOptions>& options, Action& chosen, OutboxCommand command) {
  auto* sub = parent.add_subcommand(name, about);
  sub->add_flag("--json", options->json, "Print JSON");
  sub->callback([options, &chosen, command] {
    chosen = [options, command] {
      return with_store(options->config, [&](const Config& config, const AnyStore& store) {
        return command(*options, config, store_of(store));
      });
    };
  });
  return sub;
}

}  // namespace

void add_outbox(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<OutboxOptions>();
  auto* command =
      program.add_subcommand("outbox", "List publications that are not sent yet; release or drop held ones");
  command->add_option("CONFIG", options->config, "The configuration file")->required();
  command->require_subcommand(1);
  command->footer("Example:\n  semel outbox semel.yaml list --held");
  auto* listing = add_action(*command, "list", "List them, oldest first", options, chosen, list);
  listing->add_flag("--held", options->held, "Only those that wait for an operator");
  listing->add_option("--to", options->to, "Only to this target");
  listing->add_option("--limit", options->count_max, "At most so many")->check(CLI::Range(1, 1'000'000));
  listing->add_option("--after", options->after, "Continue after this id");
  listing->footer("Example:\n  semel outbox semel.yaml list --held --to events");
  auto* releasing = add_action(*command, "release", "Have a held one sent again", options, chosen, release);
  releasing->add_option("ID", options->id, "The publication; its first six digits or more will do")->required();
  releasing->footer("Example:\n  semel outbox semel.yaml release 5f0c7e9ab1d24c3388e6f1027d9b4a65");
  auto* dropping = add_action(*command, "drop", "Take a held one out unsent", options, chosen, drop);
  dropping->add_option("ID", options->id, "The publication; its first six digits or more will do")->required();
  dropping->footer("Example:\n  semel outbox semel.yaml drop 5f0c7e9ab1d24c3388e6f1027d9b4a65");
}

}  // namespace semel::app
