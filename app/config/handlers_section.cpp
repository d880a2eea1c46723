// handlers:
//   record-invoice:
//     from: stripe
//     when: { /type: invoice.paid }
//     key: /data/object/id
//     execute: [ … ]
//     answer: { … }
#include <algorithm>
#include <cctype>

#include "config/sections.hpp"

namespace semel::app {
namespace {

/// Attributes that differ between two deliveries of one event, or that two events may share: never a key.
constexpr std::pair<std::string_view, std::string_view> unstable_names[] = {
    {"receipt-handle", "it is another one at every receive"},
    {"receipthandle", "it is another one at every receive"},
    {"delivery-tag", "it counts deliveries on one channel"},
    {"deliverytag", "it counts deliveries on one channel"},
    {"x-amzn-trace-id", "it names an attempt"},
    {"x-amz-cf-id", "it names an attempt"},
    {"traceparent", "it names an attempt"},
    {"x-request-id", "proxies make a new one for every attempt"},
    {"x-correlation-id", "it may be shared by several events"},
    {"date", "it is the time of the attempt"},
    {"x-slack-retry-num", "it counts attempts"},
    {"x-slack-retry-reason", "it names an attempt"},
    {"x-slack-request-timestamp", "it is the time of the attempt"},
    {"x-slack-signature", "it is made anew for every attempt"},
    {"stripe-signature", "it is made anew for every attempt"},
    {"webhook-timestamp", "it is the time of the attempt"},
    {"webhook-signature", "it is made anew for every attempt"},
    {"x-hub-signature-256", "it is the body's, and two events may have one body"},
    {"x-hub-signature", "it is the body's, and two events may have one body"},
    {"x-shopify-hmac-sha256", "it is the body's, and two events may have one body"},
    {"x-shopify-triggered-at", "two events may have one time"},
    {"x-twilio-signature", "it is no event's name"},
    {"paypal-transmission-sig", "it is made anew for every attempt"},
    {"paypal-transmission-time", "it is the time of the attempt"},
    {"approximatereceivecount", "it counts attempts"},
    {"senttimestamp", "two events may have one time"},
    {"content-length", "two events may have one length"},
    {"authorization", "it names the caller, not the event"},
};

std::optional<std::string_view> why_unstable(std::string_view name) {
  const auto same = [&](std::string_view other) {
    return std::equal(name.begin(), name.end(), other.begin(), other.end(),
                      [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
  };
  for (const auto& [unstable, why] : unstable_names) {
    if (same(unstable)) return why;
  }
  return std::nullopt;
}

class HandlerReader {
 public:
  HandlerReader(Reading& reading, Config& config, SqlDialect dialect)
      : reading_(reading), config_(config), dialect_(dialect), call_reader_(reading, config, dialect) {}

  void read(const std::string& name, const Place& place) {
    Fields fields(reading_, place);
    if (!fields) return;
    handler_ = {};
    handler_.options.name = name;
    if (name.empty() || name.size() > 128) {
      reading_.mistake(ErrorCode::config_bad_value, place, "a handler's name has 1 to 128 bytes");
    }
    read_from(fields);
    read_when(fields);
    read_key(fields);
    read_guard(fields);
    read_fingerprint(fields);
    read_effect(fields);
    if (const auto answer = fields.take("answer")) {
      handler_.answer = read_answer(reading_, *answer);
      check_answer(*answer);
    }
    read_after_commit(fields);
    read_rest(fields);
    fields.finish();
    config_.handlers.push_back(std::move(handler_));
  }

 private:
  void read_from(Fields& fields) {
    std::vector<std::string> names;
    for (const auto& source : config_.sources) names.push_back(source.name);
    for (const auto& gateway : config_.gateways) names.push_back(gateway.name);
    const auto place = fields.require("from", "the name of a source, or a list");
    if (!place) return;
    for (const auto& item : reading_.one_or_many(*place)) {
      const auto name = reading_.verbatim(item);
      if (!name) continue;
      if (std::find(names.begin(), names.end(), *name) == names.end()) {
        reading_.mistake(ErrorCode::config_unknown_name, item,
                         "there is no source \"" + *name + "\"" + suggestion(*name, names));
      }
      if (!take_gateway(*name)) handler_.options.from.push_back(*name);
    }
  }

  /// A gateway's name stands for all its routes. False where it is no gateway's.
  bool take_gateway(const std::string& name) {
    const auto gateway = std::find_if(config_.gateways.begin(), config_.gateways.end(),
                                      [&](const GatewayConfig& one) { return one.name == name; });
    if (gateway == config_.gateways.end()) return false;
    for (const auto& route : gateway->gateway.routes) handler_.options.from.push_back(route.name);
    return true;
  }

  void read_when(Fields& fields) {
    const auto place = fields.take("when");
    if (!place) return;
    Fields conditions(reading_, *place);
    for (const auto& [expression, value] : conditions.take_all()) {
      const auto parsed = KeyExpression::parse(expression);
      if (!parsed || parsed->parts().front().from == KeyExpression::From::transport_id) {
        reading_.mistake(
            ErrorCode::config_bad_expression, value,
            "\"" + expression + "\" is no condition: it looks at a JSON Pointer (/type) or at a header (header:Name)");
      }
      if (parsed) expect_kept(value, *parsed);
      const auto equals = value.node.IsNull() ? "null" : reading_.verbatim(value);
      handler_.options.when.push_back({.expression = expression, .equals = equals.value_or("")});
    }
  }

  /// The sources it takes from are all of the kind that brings an Idempotency-Key.
  bool only_requests() const {
    return !handler_.options.from.empty() &&
           std::all_of(handler_.options.from.begin(), handler_.options.from.end(), [&](const std::string& name) {
             return std::any_of(config_.sources.begin(), config_.sources.end(), [&](const SourceConfig& source) {
               return source.name == name && callers_of(source, config_);
             });
           });
  }

  void read_key(Fields& fields) {
    if (only_requests() && !fields.place().node["key"]) {
      handler_.options.key = KeyExpression::attribute("Idempotency-Key");
      fields.take("key");
    } else if (const auto place = fields.require(
                   "key", "what names the event: /json/pointer, header:Name, transport-id, or a list of these")) {
      std::vector<KeyExpression> parts;
      for (const auto& item : reading_.one_or_many(*place)) {
        if (auto part = key_part(item)) parts.push_back(std::move(*part));
      }
      if (parts.size() == 1) handler_.options.key = std::move(parts.front());
      if (parts.size() > 1) handler_.options.key = KeyExpression::all_of(std::move(parts));
    }
    if (const auto place = fields.take("key_is")) {
      handler_.options.key_is_event_id =
          reading_.choice<bool>(*place, {{"business", false}, {"event-id", true}}).value_or(false);
    }
  }

  std::optional<KeyExpression> key_part(const Place& place) {
    const auto text = reading_.verbatim(place);
    if (!text) return std::nullopt;
    auto parsed = KeyExpression::parse(*text);
    if (!parsed) {
      reading_.mistake(ErrorCode::config_bad_expression, place, parsed.error().message);
      return std::nullopt;
    }
    for (const auto& part : parsed->parts()) {
      if (part.from == KeyExpression::From::transport_id) expect_transport_ids(place);
      const auto why = part.from == KeyExpression::From::attribute ? why_unstable(part.name) : std::nullopt;
      if (!why) continue;
      reading_.mistake(ErrorCode::config_unstable_key, place,
                       "\"" + part.name + "\" names no event: " + std::string(*why));
      return std::nullopt;
    }
    expect_kept(place, *parsed);
    return std::move(*parsed);
  }

  /// Why a source's messages never have an id of the transport; nothing where they have.
  std::optional<std::string_view> why_no_transport_id(const SourceConfig& source) const {
    using Scheme = http::Verification::Scheme;
    if (callers_of(source, config_)) return "requests bring an Idempotency-Key instead";
    const auto* http = std::get_if<HttpSource>(&source.kind);
    if (!http) return std::nullopt;
    const auto scheme = std::get<http::Webhook>(http->kind).verify.scheme;
    if (scheme == Scheme::github || scheme == Scheme::shopify || scheme == Scheme::standard_webhooks)
      return std::nullopt;
    return "of the webhooks only github, shopify and standard-webhooks send one";
  }

  void expect_kept(const Place& place, const KeyExpression& expression) {
    for (const auto& part : expression.parts())
      if (part.from == KeyExpression::From::attribute) expect_kept(place, part.name);
  }

  /// Else it would read nothing, and say so to nobody.
  void expect_kept(const Place& place, const std::string& header) {
    const auto& from = handler_.options.from;
    for (const auto& source : config_.sources) {
      if (std::find(from.begin(), from.end(), source.name) == from.end() || !takes_out(source, header, config_))
        continue;
      reading_.mistake(ErrorCode::config_bad_value, place,
                       "\"" + header + "\" holds credentials, which \"" + source.name + "\" takes out of its messages");
      return;
    }
  }

  void expect_transport_ids(const Place& place) {
    const auto& from = handler_.options.from;
    for (const auto& source : config_.sources) {
      const auto why = why_no_transport_id(source);
      if (!why || std::find(from.begin(), from.end(), source.name) == from.end()) continue;
      reading_.mistake(ErrorCode::config_bad_value, place,
                       "messages from \"" + source.name + "\" have no transport id: " + std::string(*why));
    }
  }

  void read_guard(Fields& fields) {
    const auto place = fields.take("guard");
    if (!place) return;
    const auto guard = reading_.choice<Guard>(*place, {{"record", Guard::record},
                                                       {"unique", Guard::unique},
                                                       {"version", Guard::version},
                                                       {"natural", Guard::natural}});
    if (guard) handler_.options.guard = *guard;
  }

  void read_fingerprint(Fields& fields) {
    using Parts = FingerprintPolicy::Parts;
    const auto place = fields.take("fingerprint");
    if (!place) return;
    auto& policy = handler_.options.fingerprint;
    if (!place->node.IsMap()) {
      const auto parts =
          reading_.choice<Parts>(*place, {{"none", Parts::none}, {"body", Parts::body}, {"request", Parts::request}});
      if (parts) policy.parts = *parts;
      return;
    }
    Fields inside(reading_, *place);
    const auto only = inside.take("only");
    const auto except = inside.take("except");
    inside.finish();
    if (!only == !except) {
      reading_.mistake(ErrorCode::config_bad_value, *place, "needs \"only\" or \"except\", and not both");
      return;
    }
    policy.parts = only ? Parts::only : Parts::all_but;
    for (const auto& item : reading_.one_or_many(only ? *only : *except)) {
      const auto pointer = reading_.verbatim(item);
      if (!pointer) continue;
      if (const auto problem = pointer_problem(*pointer)) {
        reading_.mistake(ErrorCode::config_bad_expression, item, *problem);
      }
      policy.pointers.push_back(*pointer);
    }
  }

  void read_effect(Fields& fields) {
    const auto each = fields.take("execute");
    const auto batch = fields.take("execute_batch");
    const auto& node = fields.place().node;
    if (each && batch) {
      reading_.mistake(ErrorCode::config_bad_value, *batch, "either \"execute\" or \"execute_batch\"");
    } else if (!each && !batch && !node["execute"] && !node["execute_batch"] && !node["call"] && !node["publish"]) {
      reading_.mistake(ErrorCode::config_missing_field, fields.place(),
                       "needs \"execute\" (SQL for each message) or \"execute_batch\" (SQL for all at once)");
    }
    if (batch) handler_.execute_batch = statement(*batch);
    if (!each) return;
    for (const auto& item : reading_.one_or_many(*each)) {
      if (auto sql = statement(item)) handler_.execute.push_back(std::move(*sql));
    }
  }

  std::optional<SqlTemplate> statement(const Place& place) {
    auto sql = read_statement(reading_, place, dialect_, false);
    if (!sql) return sql;
    for (const auto& parameter : sql->parameters)
      if (parameter.from == Parameter::From::header) expect_kept(place, parameter.name);
    return sql;
  }

  void check_answer(const Place& place) {
    for (const auto& piece : handler_.answer.body) {
      if (const auto* parameter = std::get_if<Parameter>(&piece)) check_known(reading_, place, *parameter, false);
      if (const auto* inside = std::get_if<InText>(&piece)) check_known(reading_, place, inside->parameter, false);
    }
  }

  void read_after_commit(Fields& fields) {
    const auto call = fields.take("call");
    const auto publish = fields.take("publish");
    if (call) handler_.calls = call_reader_.calls(*call, handler_.options.name);
    if (publish) handler_.publish = call_reader_.publications(*publish, false);
    for (const auto& place : {call, publish}) {
      if (!place || handler_.options.guard == Guard::record) continue;
      reading_.mistake(ErrorCode::config_bad_value, *place,
                       "needs guard record: with another one nothing remembers that it was asked for");
    }
    if (const auto waiting = fields.take("waiting")) read_waiting(reading_, *waiting, handler_.options.waiting);
  }

  void read_rest(Fields& fields) {
    auto& options = handler_.options;
    if (const auto place = fields.take("retention")) {
      const auto value = reading_.duration(*place, std::chrono::seconds(1));
      if (value) options.retention = std::chrono::duration_cast<std::chrono::seconds>(*value);
    }
    if (const auto place = fields.take("keep_answer")) options.keep_answer = reading_.boolean(*place).value_or(true);
    if (const auto place = fields.take("retry")) read_retry(*place);
  }

  void read_retry(const Place& place) {
    Fields fields(reading_, place);
    auto& retry = handler_.options.retry;
    if (const auto attempts = fields.take("attempts")) {
      retry.attempts_max = static_cast<int>(reading_.integer(*attempts, 1, 1'000).value_or(retry.attempts_max));
    }
    if (const auto delay = fields.take("delay")) {
      retry.delay_first = reading_.duration(*delay, std::chrono::milliseconds(1)).value_or(retry.delay_first);
    }
    if (const auto delay = fields.take("delay_max")) {
      retry.delay_max = reading_.duration(*delay, std::chrono::milliseconds(1)).value_or(retry.delay_max);
    }
    fields.finish();
  }

  Reading& reading_;
  Config& config_;
  SqlDialect dialect_;
  CallReader call_reader_;
  HandlerConfig handler_;
};

}  // namespace

void read_handlers(Reading& reading, const Place& place, Config& config, SqlDialect dialect) {
  Fields fields(reading, place);
  if (!fields) return;
  HandlerReader reader(reading, config, dialect);
  const auto all = fields.take_all();
  if (all.empty()) reading.mistake(ErrorCode::config_bad_value, place, "must name at least one handler");
  for (const auto& [name, handler] : all) reader.read(name, handler);
}

}  // namespace semel::app
