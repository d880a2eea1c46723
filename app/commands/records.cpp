// semel records CONFIG --handler H --key K
#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <memory>

#include "base/encoding.hpp"
#include "commands/commands.hpp"
#include "commands/with_config.hpp"
#include "config/nearest_name.hpp"

namespace semel::app {
namespace {

struct RecordsOptions {
  std::string config;
  std::string handler;
  std::vector<std::string> key;
  std::string principal;
  bool json = false;
};

const char* state_text(RecordState state) {
  switch (state) {
    case RecordState::completed:
      return "completed";
    case RecordState::rejected:
      return "rejected";
    case RecordState::in_progress:
      return "in progress";
    case RecordState::ambiguous:
      return "ambiguous";
  }
  return "unknown";
}

/// An open record has no end yet.
std::string expiry_text(const Record& record) {
  return is_open(record.state) ? "not while it is open" : time_text(record.expires_at);
}

boost::json::object record_json(const Record& record) {
  boost::json::object object;
  object["handler"] = record.scope.handler;
  put_bytes(object, "principal", record.scope.principal);
  object["key"] = key_json(record.key);
  object["state"] = state_text(record.state);
  object["recorded_at"] = time_text(record.recorded_at);
  object["expires_at"] = nullptr;
  if (!is_open(record.state)) object["expires_at"] = time_text(record.expires_at);
  object["source"] = record.source;
  put_bytes(object, "transport_id", record.transport_id);
  object["fingerprint"] = hex_encode(record.fingerprint.bytes());
  object["answer"] = nullptr;
  if (record.answer) {
    boost::json::object answer{{"status", record.answer->status}, {"headers", attributes_json(record.answer->headers)}};
    put_bytes(answer, "body", record.answer->body);
    object["answer"] = std::move(answer);
  }
  return object;
}

void print_record(const Record& record) {
  std::vector<std::vector<std::string>> rows = {
      {"handler", record.scope.handler},
      {"key", printable(record.key.text())},
      {"state", state_text(record.state)},
      {"recorded", time_text(record.recorded_at)},
      {"expires", expiry_text(record)},
      {"source", record.source},
      {"transport id", printable(record.transport_id)},
      {"fingerprint", record.fingerprint.empty() ? "none" : hex_encode(record.fingerprint.bytes())}};
  if (!record.scope.principal.empty()) rows.insert(rows.begin() + 1, {"principal", printable(record.scope.principal)});
  if (!record.answer) {
    rows.push_back({"answer", "not kept"});
  } else {
    rows.push_back({"answer", std::to_string(record.answer->status)});
    for (const auto& entry : record.answer->headers.entries()) rows.push_back({"", attribute_text(entry)});
    if (!record.answer->body.empty()) rows.push_back({"", printable(record.answer->body)});
  }
  std::cout << table(rows);
}

bool tells_callers_apart(const GatewayConfig& gateway) {
  return std::ranges::any_of(gateway.gateway.routes, [](const http::GuardedRoute& route) {
    return route.principal.from != http::Principal::From::none;
  });
}

/// A handler that is configured no more may have records, so its name is judged only where there is none.
int no_record(const std::string& handler_name, bool named_caller, const Config& config) {
  std::vector<std::string> names;
  for (const auto& handler : config.handlers) {
    names.push_back(handler.options.name);
    if (handler.options.name != handler_name) continue;
    const bool keeps = handler.options.guard == Guard::record;
    note(keeps ? "no record of this key; it was not processed, or it has expired"
               : "the handler's guard keeps no records: look at the table that it writes");
    return failure;
  }
  for (const auto& gateway : config.gateways) {
    names.push_back(gateway.name);
    if (gateway.name != handler_name) continue;
    note("no record of this key; it was not processed, or it has expired" +
         std::string(named_caller || !tells_callers_apart(gateway) ? "" : "; whose key it is, --principal says"));
    return failure;
  }
  note("there is no handler \"" + printable(handler_name) + "\"" + suggestion(handler_name, names));
  return usage;
}

int records(const RecordsOptions& options) {
  return with_store(options.config, [&](const Config& config, const AnyStore& store) -> int {
    const auto key = Key::from_parts(options.key);
    if (!key) return report(key.error(), config.redactor);
    const auto record = store_of(store).find_record({{options.handler, options.principal}, *key});
    if (!record) return report(record.error(), config.redactor);
    if (!*record) {
      return no_record(options.handler, !options.principal.empty(), config);
    }
    options.json ? print_json(record_json(**record)) : print_record(**record);
    return done;
  });
}

}  // namespace

void add_records(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<RecordsOptions>();
  auto* command = program.add_subcommand("records", "Look a key up: was its effect applied, when, with what answer");
  command->add_option("CONFIG", options->config, "The configuration file")->required();
  command->add_option("--handler", options->handler, "The handler's name")->required();
  command->add_option("--key", options->key, "The key; once for each part of a key of several")
      ->required()
      ->allow_extra_args(false);
  command->add_option("--principal", options->principal, "On whose behalf the caller asked, behind HTTP requests");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Ends with 1 where there is no record.\n"
      "Example:\n"
      "  semel records semel.yaml --handler record-invoice --key in_1");
  command->callback([options, &chosen] { chosen = [options] { return records(*options); }; });
}

}  // namespace semel::app
