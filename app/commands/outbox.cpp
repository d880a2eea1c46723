// semel outbox CONFIG list|release|drop
#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <iostream>
#include <memory>

#include "commands/commands.hpp"
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

int list(const OutboxOptions& options, const Config& config, Store& store) {
  OutboxQuery query{.held_only = options.held, .after_id = options.after, .count_max = options.count_max};
  if (!options.to.empty()) query.to = options.to;
  const auto messages = store.outbox(query);
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

int say(const OutboxOptions& options, const Config& config, const Result<bool>& was_held, const std::string& what) {
  if (!was_held) return report(was_held.error(), config.redactor);
  if (!*was_held) return note("publication " + printable(options.id) + " is not held"), failure;
  if (options.json) {
    print_json(boost::json::object{{"id", options.id}, {"now", what}});
  } else {
    std::cout << options.id << " " << what << "\n";
  }
  return done;
}

int release(const OutboxOptions& options, const Config& config, Store& store) {
  return say(options, config, store.release(options.id), "released");
}

int drop(const OutboxOptions& options, const Config& config, Store& store) {
  return say(options, config, store.drop(options.id), "dropped");
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
  releasing->add_option("ID", options->id, "The publication")->required();
  releasing->footer("Example:\n  semel outbox semel.yaml release 5f0c7e9ab1d24c3388e6f1027d9b4a65");
  auto* dropping = add_action(*command, "drop", "Take a held one out unsent", options, chosen, drop);
  dropping->add_option("ID", options->id, "The publication")->required();
  dropping->footer("Example:\n  semel outbox semel.yaml drop 5f0c7e9ab1d24c3388e6f1027d9b4a65");
}

}  // namespace semel::app
