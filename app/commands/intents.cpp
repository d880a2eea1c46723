// semel intents CONFIG list|show|resolve
#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <iostream>
#include <memory>
#include <semel/resolve.hpp>

#include "base/digest.hpp"
#include "base/encoding.hpp"
#include "commands/commands.hpp"
#include "commands/given.hpp"
#include "commands/with_config.hpp"
#include "config/nearest_name.hpp"
#include "configured_calls.hpp"
#include "gateway_handler.hpp"

namespace semel::app {
namespace {

struct IntentOptions {
  std::string config;
  bool json = false;
  std::vector<std::string> states;
  std::string provider;
  std::string effect;
  std::string older_than;
  bool waiting = false;
  std::size_t count_max = 100;
  std::string after;
  std::string id;
  bool body = false;
  std::string happened;
  bool did_not_happen = false;
  bool abandoned = false;
  std::string by;
  std::string why;
};

bool waits(const Intent& intent) { return intent.status.state == IntentState::ambiguous || intent.status.flagged; }

/// "ambiguous, flagged".
std::string state_text(const Intent& intent) {
  const auto& status = intent.status;
  std::string text(intent_state_name(status.state));
  if (is_open(status.state) && status.doubtful && status.state != IntentState::ambiguous) text += ", in doubt";
  if (!is_open(status.state) && !status.settled) text += ", not settled";
  if (status.flagged) text += ", flagged";
  return text;
}

std::chrono::seconds in_seconds(std::chrono::milliseconds time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time);
}

boost::json::object outcome_json(const CallOutcome& outcome, bool body) {
  boost::json::object object;
  put_bytes(object, "reference", outcome.reference);
  put_bytes(object, "detail", outcome.detail);
  object["status"] = nullptr;
  if (outcome.answer.status != 0) object["status"] = outcome.answer.status;
  object["headers"] = attributes_json(outcome.answer.headers);
  object["body_sha256"] = hex_encode(sha256(outcome.answer.body));
  if (body) put_bytes(object, "body", outcome.answer.body);
  return object;
}

boost::json::object intent_json(const Intent& intent) {
  const auto& status = intent.status;
  boost::json::object object;
  object["id"] = intent.id.hex;
  object["state"] = std::string(intent_state_name(status.state));
  object["attempt"] = status.attempt;
  object["doubtful"] = status.doubtful;
  object["settled"] = status.settled;
  object["flagged"] = status.flagged;
  object["waits_for_operator"] = waits(intent);
  object["effect"] = intent.effect;
  object["provider"] = intent.provider;
  put_bytes(object, "reference", intent.reference);
  object["handler"] = intent.record.scope.handler;
  put_bytes(object, "principal", intent.record.scope.principal);
  object["key"] = key_json(intent.record.key);
  object["step"] = intent.step;
  object["compensates"] = nullptr;
  if (intent.compensates) object["compensates"] = intent.compensates->hex;
  object["created_at"] = time_text(intent.created_at);
  object["age_seconds"] = in_seconds(intent.age).count();
  return object;
}

boost::json::object event_json(const IntentEvent& event, const Redactor& redactor, bool body) {
  boost::json::object object{{"at", time_text(event.at)}, {"kind", event.kind}, {"attempt", event.attempt}};
  put_bytes(object, "by", event.by);
  put_bytes(object, "detail", redactor.clean(event.detail));
  object["evidence"] = nullptr;
  if (event.evidence) object["evidence"] = outcome_json(*event.evidence, body);
  return object;
}

/// What the profile of its provider says to an operator; empty where nobody asks, or there is nothing to say.
std::string advice_of(const Intent& intent, const Config& config) {
  if (!waits(intent)) return "";
  const auto provider = std::ranges::find(config.providers, intent.provider, &ProviderConfig::name);
  if (provider != config.providers.end()) return provider->performer.profile.notes;
  for (const auto& gateway : config.gateways) {
    const auto* behind = provider_of(gateway, config);
    if (behind && intent.provider == effect_of(gateway, behind).provider) return behind->performer.profile.notes;
  }
  return "";
}

boost::json::object whole_json(const Intent& intent, const std::vector<IntentEvent>& history, const Redactor& redactor,
                               bool body) {
  auto object = intent_json(intent);
  put_bytes(object, "idempotency_key", intent.idempotency_key);
  object["request_sha256"] = hex_encode(sha256(intent.request));
  if (body) put_bytes(object, "request", intent.request);
  object["outcome"] = nullptr;
  if (intent.outcome) object["outcome"] = outcome_json(*intent.outcome, body);
  object["compensation"] = nullptr;
  if (intent.compensation) {
    object["compensation"] = boost::json::object{{"effect", intent.compensation->effect},
                                                 {"request_sha256", hex_encode(sha256(intent.compensation->request))}};
  }
  boost::json::array events;
  for (const auto& event : history) events.push_back(event_json(event, redactor, body));
  object["history"] = std::move(events);
  return object;
}

/// "250ms", "10m" as in the configuration.
Result<std::chrono::seconds> age_of(const std::string& text) {
  constexpr std::pair<char, std::int64_t> units[] = {{'s', 1}, {'m', 60}, {'h', 3'600}, {'d', 86'400}};
  std::int64_t count = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  for (const auto& [unit, factor] : units) {
    if (error == std::errc() && count >= 0 && count < 1'000'000 && rest + 1 == end && *rest == unit)
      return std::chrono::seconds(count * factor);
  }
  return fix_call(ErrorCode::config_bad_value, "--older-than takes an age such as 90s, 10m, 12h or 30d");
}

std::vector<EffectOptions> effects_of(const Config& config) {
  std::vector<EffectOptions> all;
  for (const auto& handler : config.handlers) {
    for (const auto* call : all_calls(handler)) {
      all.push_back(call->options);
      if (call->compensate) all.push_back(call->compensate->options);
    }
  }
  for (const auto& gateway : config.gateways) all.push_back(effect_of(gateway, provider_of(gateway, config)));
  return all;
}

Result<void> check_names(const IntentOptions& options, const Config& config, Store& store) {
  std::vector<std::string> effects;
  std::vector<std::string> providers;
  for (const auto& effect : effects_of(config)) {
    effects.push_back(effect.name);
    providers.push_back(effect.provider_name());
  }
  const auto any = [&](IntentQuery query) -> Result<bool> {
    query.count_max = 1;
    const auto intents = store.intents(query);
    if (!intents) return intents.error();
    return !intents->empty();
  };
  const auto effect = check_name("effect", options.effect, effects, [&] { return any({.effect = options.effect}); });
  if (!effect) return effect;
  return check_name("provider", options.provider, providers, [&] { return any({.provider = options.provider}); });
}

Result<IntentQuery> query_of(const IntentOptions& options) {
  IntentQuery query;
  if (!options.provider.empty()) query.provider = options.provider;
  if (!options.effect.empty()) query.effect = options.effect;
  query.waiting_for_operator = options.waiting;
  query.count_max = options.count_max;
  if (!options.after.empty()) {
    auto after = whole_id("intent", options.after);
    if (!after) return after.error();
    query.after_id = *std::move(after);
  }
  if (!options.older_than.empty()) {
    const auto age = age_of(options.older_than);
    if (!age) return age.error();
    query.older_than = *age;
  }
  std::vector<std::string> names;
  for (const auto state : all_intent_states) names.emplace_back(intent_state_name(state));
  for (const auto& written : options.states) {
    const auto found = std::find(names.begin(), names.end(), written);
    if (found == names.end()) {
      return fix_call(ErrorCode::config_unknown_name,
                      "there is no state \"" + printable(written) + "\"" + suggestion(written, names));
    }
    query.states.push_back(all_intent_states[static_cast<std::size_t>(found - names.begin())]);
  }
  return query;
}

/// What the whole ledger says, so that a filter hides no call for help.
Result<bool> any_waits(Store& store) {
  const auto counts = store.intent_counts();
  if (!counts) return counts.error();
  return counts->waiting_for_operator > 0;
}

int list(const IntentOptions& options, const Config& config, Store& store) {
  if (const auto checked = check_names(options, config, store); !checked)
    return report_given(checked.error(), config.redactor);
  const auto query = query_of(options);
  if (!query) return report_given(query.error());
  const auto intents = store.intents(*query);
  if (!intents) return report(intents.error(), config.redactor);
  const auto waiting = any_waits(store);
  if (!waiting) return report(waiting.error(), config.redactor);
  const int code = *waiting ? waits_for_operator : done;
  if (options.json) {
    boost::json::array array;
    for (const auto& intent : *intents) array.push_back(intent_json(intent));
    print_json(array);
    return code;
  }
  std::vector<std::vector<std::string>> rows = {
      {"id", "age", "state", "attempt", "effect", "provider", "handler", "key", "reference"}};
  for (const auto& intent : *intents) {
    rows.push_back({intent.id.hex, duration_text(in_seconds(intent.age)), state_text(intent),
                    std::to_string(intent.status.attempt), intent.effect, intent.provider, intent.record.scope.handler,
                    printable(intent.record.key.text()), printable(intent.reference)});
  }
  std::cout << (intents->empty() ? std::string("no intents\n") : table(rows));
  if (intents->size() == options.count_max) note("there may be more: --after " + intents->back().id.hex);
  if (*waiting && !options.waiting) note("some wait for an operator: --waiting lists them");
  return code;
}

void add_outcome(std::vector<std::vector<std::string>>& rows, const std::string& name, const CallOutcome& outcome,
                 bool body) {
  std::string text = outcome.answer.status == 0 ? "" : std::to_string(outcome.answer.status);
  if (!outcome.reference.empty()) text += (text.empty() ? "" : ", ") + printable(outcome.reference);
  if (!outcome.detail.empty()) text += (text.empty() ? "" : ", ") + printable(outcome.detail);
  rows.push_back({name, text});
  if (outcome.answer.body.empty()) return;
  rows.push_back(
      {"", body ? printable(outcome.answer.body) : "body sha256 " + hex_encode(sha256(outcome.answer.body))});
}

void print_history(const std::vector<IntentEvent>& history, const Redactor& redactor, bool body) {
  std::vector<std::vector<std::string>> rows = {{"at", "what", "attempt", "by", "detail"}};
  for (const auto& event : history) {
    rows.push_back({time_text(event.at), event.kind, std::to_string(event.attempt), printable(event.by),
                    printable(redactor.clean(event.detail))});
    if (!event.evidence) continue;
    std::vector<std::vector<std::string>> evidence;
    add_outcome(evidence, "", *event.evidence, body);
    for (const auto& row : evidence) rows.push_back({"", "", "", "", "evidence: " + row[1]});
  }
  std::cout << "\n" << table(rows);
}

void print_intent(const Intent& intent, const std::vector<IntentEvent>& history, const Redactor& redactor, bool body) {
  std::vector<std::vector<std::string>> rows = {{"id", intent.id.hex},
                                                {"state", state_text(intent)},
                                                {"attempt", std::to_string(intent.status.attempt)},
                                                {"effect", intent.effect},
                                                {"provider", intent.provider},
                                                {"reference", printable(intent.reference)},
                                                {"idempotency key", printable(intent.idempotency_key)},
                                                {"handler", intent.record.scope.handler},
                                                {"key", printable(intent.record.key.text())},
                                                {"step", std::to_string(intent.step)},
                                                {"intended", time_text(intent.created_at)}};
  if (intent.compensates) rows.push_back({"undoes", intent.compensates->hex});
  rows.push_back({"request", body ? printable(intent.request) : "sha256 " + hex_encode(sha256(intent.request))});
  if (intent.outcome) add_outcome(rows, "outcome", *intent.outcome, body);
  if (intent.compensation) {
    rows.push_back({"compensation", intent.compensation->effect + ", should a later step fail for good"});
  }
  std::cout << table(rows);
  print_history(history, redactor, body);
}

Result<IntentId> id_of(const std::string& written, Store& store) {
  auto id = find_id("intent", written, [&](const std::string& after) -> Result<std::vector<std::string>> {
    const auto page = store.intents({.after_id = after, .count_max = 1'000});
    if (!page) return page.error();
    std::vector<std::string> ids;
    for (const auto& intent : *page) ids.push_back(intent.id.hex);
    return ids;
  });
  if (!id) return id.error();
  return IntentId{*std::move(id)};
}

Result<std::optional<Intent>> find(const IntentId& id, Store& store) {
  auto session = store.open_session();
  if (!session) return std::move(session).error();
  if (auto begun = (*session)->begin(); !begun) return begun.error();
  auto found = (*session)->ledger().find(id);
  (*session)->rollback();
  return found;
}

/// Attempts as they were begun. The first one has no line where it started with its intent: that is one commit, and so
/// is its time.
std::vector<IntentEvent> with_first_start(const Intent& intent, std::vector<IntentEvent> history) {
  const bool told = std::any_of(history.begin(), history.end(),
                                [](const IntentEvent& event) { return event.kind == "started" && event.attempt == 1; });
  if (intent.status.attempt == 0 || told) return history;
  history.insert(history.begin(),
                 {.kind = "started", .attempt = 1, .detail = "with its intent", .at = intent.created_at});
  return history;
}

int show(const IntentOptions& options, const Config& config, Store& store) {
  const auto id = id_of(options.id, store);
  if (!id) return report(id.error(), config.redactor), failure;
  const auto intent = find(*id, store);
  if (!intent) return report(intent.error(), config.redactor);
  if (!*intent) return report(not_found("intent", options.id)), failure;
  auto kept = store.intent_history(*id);
  if (!kept) return report(kept.error(), config.redactor);
  const auto history = with_first_start(**intent, *std::move(kept));
  const auto advice = advice_of(**intent, config);
  if (options.json) {
    auto object = whole_json(**intent, history, config.redactor, options.body);
    object["provider_advice"] = advice;
    print_json(object);
  } else {
    print_intent(**intent, history, config.redactor, options.body);
    if (!advice.empty()) std::cout << "\n" << printable((*intent)->provider) << ": " << advice << "\n";
  }
  return waits(**intent) ? waits_for_operator : done;
}

/// A record that is closed by this lives as long as its handler says.
std::chrono::seconds retention_of(const std::string& handler, const Config& config) {
  for (const auto& one : config.handlers)
    if (one.options.name == handler) return one.options.retention;
  for (const auto& one : config.gateways)
    if (one.name == handler) return one.retention;
  return ResolutionRequest{}.retention;
}

int resolve_one(const IntentOptions& options, const Config& config, Store& store) {
  const auto id = id_of(options.id, store);
  if (!id) return report(id.error(), config.redactor), failure;
  const auto intent = find(*id, store);
  if (!intent) return report(intent.error(), config.redactor);
  ResolutionRequest request{.id = *id, .reference = options.happened, .by = options.by, .why = options.why};
  if (!options.happened.empty()) request.resolution = Resolution::happened;
  if (options.did_not_happen) request.resolution = Resolution::did_not_happen;
  if (*intent) request.retention = retention_of((*intent)->record.scope.handler, config);
  const auto status = resolve(store, request);
  if (!status) return report(status.error(), config.redactor);
  const auto state = std::string(intent_state_name(status->state));
  if (options.json) {
    print_json(boost::json::object{{"id", id->hex}, {"state", state}, {"settled", status->settled}});
    return done;
  }
  std::cout << id->hex << " " << state;
  if (status->state == IntentState::pending) std::cout << ": it is called again by the next `semel run` that is free";
  if (!is_open(status->state) && !status->settled) std::cout << ": `semel run` writes what follows";
  std::cout << "\n";
  return done;
}

using IntentCommand = int (*)(const IntentOptions&, const Config&, Store&);

void run_as(CLI::App& sub, const std::shared_ptr<IntentOptions>& options, Action& chosen, IntentCommand command) {
  sub.add_flag("--json", options->json, "Print JSON");
  sub.callback([options, &chosen, command] {
    chosen = [options, command] {
      return with_store(options->config, [&](const Config& config, const AnyStore& store) {
        return command(*options, config, store_of(store));
      });
    };
  });
}

void add_list(CLI::App& parent, const std::shared_ptr<IntentOptions>& options, Action& chosen) {
  auto* sub = parent.add_subcommand("list", "List them, oldest first");
  sub->add_option("--state", options->states, "Only in this state; may be repeated")->allow_extra_args(false);
  sub->add_option("--provider", options->provider, "Only to this provider");
  sub->add_option("--effect", options->effect, "Only of this effect");
  sub->add_option("--older-than", options->older_than, "Only those intended so long ago: 90s, 10m, 12h, 30d");
  sub->add_flag("--waiting", options->waiting, "Only those that wait for an operator");
  sub->add_option("--limit", options->count_max, "At most so many")->check(CLI::Range(1, 1'000'000));
  sub->add_option("--after", options->after, "Continue after this id");
  sub->footer(
      "Ends with 4 where any intent waits for an operator, listed or not.\n"
      "Example:\n"
      "  semel intents semel.yaml list --waiting");
  run_as(*sub, options, chosen, list);
}

void add_show(CLI::App& parent, const std::shared_ptr<IntentOptions>& options, Action& chosen) {
  auto* sub = parent.add_subcommand("show", "Show one with its history");
  sub->add_option("ID", options->id, "The intent; its first six digits or more will do")->required();
  sub->add_flag("--body", options->body, "The request and the answers whole, not only their SHA-256");
  sub->footer(
      "Ends with 4 where the intent waits for an operator.\n"
      "Example:\n"
      "  semel intents semel.yaml show 5f0c7e9ab1d24c3388e6f1027d9b4a65");
  run_as(*sub, options, chosen, show);
}

/// A variable that a script left empty says nothing, and what is resolved stays so.
CLI::Validator something() {
  return {[](const std::string& text) { return text.empty() ? std::string("must not be empty") : std::string(); }, ""};
}

void add_resolve(CLI::App& parent, const std::shared_ptr<IntentOptions>& options, Action& chosen) {
  auto* sub = parent.add_subcommand("resolve", "Say what became of a call that nobody else can tell");
  sub->add_option("ID", options->id, "The intent; its first six digits or more will do")->required();
  auto* found = sub->add_option_group("What you found out");
  found->add_option("--happened", options->happened, "It did; with the provider's own id of it")
      ->type_name("REFERENCE")
      ->check(something());
  found->add_flag("--did-not-happen", options->did_not_happen, "It did not; it may run again");
  found->add_flag("--abandoned", options->abandoned, "Nobody will know; it never runs again");
  found->require_option(1);
  sub->add_option("--by", options->by, "Who says so; kept with the intent")->required()->check(something());
  sub->add_option("--why", options->why, "How they know; kept with the intent")->required()->check(something());
  sub->footer(
      "`semel run` then writes what follows from it.\n"
      "Example:\n"
      "  semel intents semel.yaml resolve 5f0c7e --happened ch_17 --by ann --why \"seen in the bank's dashboard\"");
  run_as(*sub, options, chosen, resolve_one);
}

}  // namespace

void add_intents(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<IntentOptions>();
  auto* command = program.add_subcommand("intents", "List, show and resolve calls to the outside");
  command->add_option("CONFIG", options->config, "The configuration file")->required();
  command->require_subcommand(1);
  command->footer(
      "Exit code 4: something waits for an operator.\n"
      "Examples:\n"
      "  semel intents semel.yaml list --waiting\n"
      "  semel intents semel.yaml show 5f0c7e\n"
      "  semel intents semel.yaml resolve 5f0c7e --did-not-happen --by ann --why \"the bank has no such charge\"");
  add_list(*command, options, chosen);
  add_show(*command, options, chosen);
  add_resolve(*command, options, chosen);
}

}  // namespace semel::app
