// call:
//   effect: charge-card
//   provider: bank
//   url: "https://bank.example/charges"
//   body: { amount: ":/amount", currency: EUR }
//   reference: /id
//   settle:
//     execute: UPDATE orders SET charge = :outcome_reference WHERE id = :/id
//     answer: { status: 201 }
//     on_failure: { execute: …, answer: … }
//     call: { … }
//   compensate: { effect: void-charge, url: "https://bank.example/charges/:{outcome:/id}/void" }
// publish: { to: events, body: { … }, order_key: /customer }
#include <algorithm>

#include "config/sections.hpp"

namespace semel::app {
namespace {

constexpr std::string_view stored_advice =
    "what is called with is stored until it is done, and holds no secret; credentials stand at providers.NAME.headers";

/// Where scheme and host end; the size of `url` where nothing follows them.
std::size_t authority_end(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return 0;
  return std::min(url.find_first_of("/?#", scheme + 3), url.size());
}

/// RFC 9110, 7.2 and 7.6.1; RFC 9112, 6.
bool is_of_the_connection(const std::string& name) {
  constexpr const char* names[] = {"Content-Length", "Transfer-Encoding", "Host",
                                   "Connection",     "Keep-Alive",        "Upgrade"};
  return std::ranges::any_of(names, [&](const char* one) { return Attributes{{name, ""}}.count(one) > 0; });
}

}  // namespace

void check_known(Reading& reading, const Place& place, const Parameter& parameter, bool settles) {
  if (settles || !is_of_outcome(parameter)) return;
  reading.mistake(ErrorCode::config_bad_expression, place,
                  "\"" + parameter_text(parameter) +
                      "\" is known only once the call has ended: in settle, in the call "
                      "that follows it, and in compensate");
}

std::optional<SqlTemplate> read_statement(Reading& reading, const Place& place, SqlDialect dialect, bool settles) {
  const auto text = reading.verbatim(place);
  if (!text) return std::nullopt;
  auto parsed = parse_sql_template(*text, dialect);
  if (!parsed) {
    reading.mistake(parsed.error().code, place, parsed.error().message);
    return std::nullopt;
  }
  for (const auto& parameter : parsed->parameters) check_known(reading, place, parameter, settles);
  return std::move(*parsed);
}

std::vector<CallConfig> CallReader::calls(const Place& place, const std::string& effect) {
  std::vector<CallConfig> all;
  const auto items = reading_.one_or_many(place);
  for (const auto& item : items) {
    if (auto one = call(item, items.size() == 1 ? effect : "", false)) all.push_back(*std::move(one));
  }
  return all;
}

std::optional<CallConfig> CallReader::call(const Place& place, const std::string& effect, bool settles) {
  Fields fields(reading_, place);
  if (!fields) return std::nullopt;
  CallConfig made;
  read_effect(fields, effect, made.options, "");
  made.gives_up_as_stated = read_times(fields, made.options);
  read_request(fields, made.request, settles);
  if (const auto reference = fields.take("reference")) made.reference = expression(*reference, settles);
  if (const auto settle = fields.take("settle")) read_settle(*settle, made);
  if (const auto compensate = fields.take("compensate")) read_compensation(*compensate, made);
  const auto& policy = made.options.policy;
  const bool looks_up = policy.kind == ProviderPolicy::Kind::lookup;
  if (looks_up && !made.reference && !place.node["reference"]) {
    reading_.mistake(ErrorCode::config_missing_field, place,
                     "\"reference\" is missing: \"" + made.options.provider +
                         "\" is asked by it whether a call happened; such as reference: /id");
  }
  fields.finish();
  return made;
}

ProviderConfig* provider_named(Reading& reading, Config& config, const Place& place, const std::string& name) {
  std::vector<std::string> names;
  for (auto& provider : config.providers) {
    if (provider.name == name) return &provider;
    names.push_back(provider.name);
  }
  const auto advice = http::built_in_profile(name)
                          ? "; write providers: { " + name + ": { profile: " + name + ", headers: { … } } }"
                          : suggestion(name, names);
  reading.mistake(ErrorCode::config_unknown_name, place, "there is no provider \"" + name + "\"" + advice);
  return nullptr;
}

void read_waiting(Reading& reading, const Place& place, Waiting& waiting) {
  Fields fields(reading, place);
  if (const auto deadline = fields.take("deadline")) {
    waiting.deadline = reading.duration(*deadline, std::chrono::milliseconds(0)).value_or(waiting.deadline);
  }
  if (const auto late = fields.take("late")) {
    waiting.accepted_when_late =
        reading.choice<bool>(*late, {{"202", true}, {"409", false}}).value_or(waiting.accepted_when_late);
  }
  if (const auto again = fields.take("again")) {
    waiting.wait_again = reading.choice<bool>(*again, {{"refuse", false}, {"wait", true}}).value_or(waiting.wait_again);
  }
  if (fields) fields.finish();
}

void CallReader::read_effect(Fields& fields, const std::string& name, EffectOptions& options,
                             const std::string& provider) {
  const auto effect =
      name.empty() ? fields.require("effect", "a name of its own, such as charge-card") : fields.take("effect");
  options.name = effect ? reading_.verbatim(*effect).value_or("") : name;
  const auto& place = effect ? *effect : fields.place();
  if (effect && (options.name.empty() || options.name.size() > 128)) {
    reading_.mistake(ErrorCode::config_bad_value, place, "an effect's name has 1 to 128 bytes");
  }
  if (!options.name.empty() && !effects_.insert(options.name).second) {
    reading_.mistake(ErrorCode::config_bad_value, place, "there is another effect \"" + options.name + "\"");
  }
  const auto named = provider.empty() ? fields.require("provider", "a name from providers") : fields.take("provider");
  options.provider = named ? reading_.verbatim(*named).value_or("") : provider;
  if (!named) return;
  auto* found = provider_named(reading_, config_, *named, options.provider);
  if (!found) return;
  found->used = true;
  options.policy = found->policy();
  options.limits = found->limits;
}

bool CallReader::read_times(Fields& fields, EffectOptions& options) {
  if (const auto place = fields.take("timeout")) {
    options.timeout = reading_.duration(*place, std::chrono::milliseconds(1)).value_or(options.timeout);
  }
  if (const auto place = fields.take("lease")) {
    options.lease = reading_.duration(*place, std::chrono::milliseconds(500)).value_or(options.lease);
  }
  const auto place = fields.take("give_up_after");
  if (!place) return false;
  const auto value = reading_.duration(*place, std::chrono::seconds(1));
  if (value) options.give_up_after = std::chrono::duration_cast<std::chrono::seconds>(*value);
  return true;
}

/// False where there is a secret in it, or something that would be taken for one; this is reported.
bool CallReader::stored(const Place& place, const std::string& written) {
  if (written.find("${") == std::string::npos) return true;
  reading_.mistake(ErrorCode::config_bad_value, place, std::string(stored_advice));
  return false;
}

std::optional<TextTemplate> CallReader::text(const Place& place, bool settles) {
  const auto written = reading_.verbatim(place);
  if (!written || !stored(place, *written)) return std::nullopt;
  auto made = parse_text_template(*written);
  if (!made) {
    reading_.mistake(made.error().code, place, made.error().message);
    return std::nullopt;
  }
  for (const auto& piece : made->pieces)
    if (const auto* parameter = std::get_if<Parameter>(&piece)) check(place, *parameter, settles);
  return *std::move(made);
}

std::optional<TextTemplate> CallReader::expression(const Place& place, bool settles) {
  const auto written = place.node.IsScalar() ? place.node.Scalar() : std::string();
  if (!written.starts_with('/') && !written.starts_with("header:")) return text(place, settles);
  Parameter parameter{Parameter::From::pointer, written};
  if (written.starts_with("header:")) parameter = {Parameter::From::header, written.substr(7)};
  const auto problem = written.starts_with('/') ? pointer_problem(written) : std::nullopt;
  if (problem) reading_.mistake(ErrorCode::config_bad_expression, place, *problem);
  check(place, parameter, settles);
  return TextTemplate{{parameter}};
}

void CallReader::check(const Place& place, const Parameter& parameter, bool settles) {
  check_known(reading_, place, parameter, settles);
  if (parameter.from == Parameter::From::header && names_credentials(parameter.name)) {
    reading_.mistake(ErrorCode::config_bad_value, place, std::string(stored_advice));
  }
}

void CallReader::check(const Place& place, const BodyTemplate& body, bool settles) {
  for (const auto& piece : body) {
    if (const auto* text = std::get_if<std::string>(&piece)) {
      if (!stored(place, *text)) return;
    } else if (const auto* parameter = std::get_if<Parameter>(&piece)) {
      check(place, *parameter, settles);
    } else {
      check(place, std::get<InText>(piece).parameter, settles);
    }
  }
}

void CallReader::read_request(Fields& fields, RequestTemplate& request, bool settles) {
  if (const auto place = fields.take("method")) {
    const auto method = reading_.choice<std::string>(
        *place, {{"POST", "POST"}, {"PUT", "PUT"}, {"PATCH", "PATCH"}, {"DELETE", "DELETE"}, {"GET", "GET"}});
    request.method = method.value_or("POST");
  }
  if (const auto place = fields.require("url", "where the call goes")) read_url(*place, request.url, settles);
  if (const auto place = fields.take("headers")) read_request_headers(*place, request.headers, settles);
  const auto has_type = [&] {
    return std::any_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
      return Attributes{{header.first, ""}}.count("Content-Type") > 0;
    });
  };
  const auto add_type = [&](std::string type) {
    if (!has_type()) request.headers.emplace_back("Content-Type", TextTemplate{{std::move(type)}});
  };
  const auto body = fields.take("body");
  const auto form = fields.take("form");
  if (body && form) reading_.mistake(ErrorCode::config_bad_value, *form, "either \"body\" or \"form\"");
  if (body) {
    add_type(read_body(reading_, *body, request.body));
    check(*body, request.body, settles);
  }
  if (form) {
    Fields named(reading_, *form);
    for (const auto& [name, value] : named.take_all()) read_form(value, name, request.form, settles);
    add_type("application/x-www-form-urlencoded");
  }
}

void CallReader::read_url(const Place& place, TextTemplate& url, bool settles) {
  auto made = text(place, settles);
  if (!made) return;
  const auto* first = made->pieces.empty() ? nullptr : std::get_if<std::string>(&made->pieces.front());
  const bool http = first && (first->starts_with("https://") || first->starts_with("http://"));
  // A message must not choose whom the credentials are sent to.
  const bool host = http && (authority_end(*first) < first->size() || made->pieces.size() == 1);
  if (!host) {
    reading_.mistake(ErrorCode::config_bad_value, place,
                     http ? "the host is written out: a message does not choose where calls go"
                          : "must begin with https:// or http://");
  } else if (first->substr(0, authority_end(*first)).find('@') != std::string::npos) {
    reading_.mistake(ErrorCode::config_bad_value, place, std::string(stored_advice));
  }
  url = *std::move(made);
}

void CallReader::read_request_headers(const Place& place, FormTemplate& headers, bool settles) {
  Fields fields(reading_, place);
  for (const auto& [name, value] : fields.take_all()) {
    if (!is_header(reading_, name, value)) continue;
    if (names_credentials(name)) {
      reading_.mistake(ErrorCode::config_bad_value, value, std::string(stored_advice));
      continue;
    }
    if (is_of_the_connection(name)) {
      reading_.mistake(ErrorCode::config_bad_value, value,
                       "frames the message or belongs to one connection; whoever sends the request sets it");
      continue;
    }
    if (Attributes{{name, ""}}.count("Idempotency-Key") > 0) {
      reading_.mistake(ErrorCode::config_bad_value, value,
                       "the key is Semel's own, the same in every attempt; where it goes stands at providers.NAME.key");
      continue;
    }
    if (auto made = text(value, settles)) headers.emplace_back(name, *std::move(made));
  }
}

/// Members of members are named as most providers want it: `metadata[order]`, `items[0][price]`.
void CallReader::read_form(const Place& place, const std::string& name, FormTemplate& form, bool settles) {
  if (place.node.IsMap()) {
    Fields fields(reading_, place);
    for (const auto& [inner, value] : fields.take_all()) read_form(value, name + "[" + inner + "]", form, settles);
  } else if (place.node.IsSequence()) {
    int number = 0;
    for (const auto& item : reading_.list(place))
      read_form(item, name + "[" + std::to_string(number++) + "]", form, settles);
  } else if (auto made = text(place, settles)) {
    form.emplace_back(name, *std::move(made));
  }
}

StepConfig CallReader::read_step(Fields& fields) {
  StepConfig step;
  if (const auto place = fields.take("execute")) {
    for (const auto& item : reading_.one_or_many(*place))
      if (auto sql = read_statement(reading_, item, dialect_, true)) step.execute.push_back(*std::move(sql));
  }
  if (const auto place = fields.take("answer")) step.answer = read_answer(reading_, *place);
  if (const auto place = fields.take("publish")) step.publish = publications(*place, true);
  return step;
}

void CallReader::read_settle(const Place& place, CallConfig& call_read) {
  Fields fields(reading_, place);
  if (!fields) return;
  call_read.settle = read_step(fields);
  if (const auto failure = fields.take("on_failure")) {
    Fields inside(reading_, *failure);
    if (inside) call_read.on_failure = read_step(inside);
    inside.finish();
  }
  if (const auto next = fields.take("call")) {
    for (const auto& item : reading_.one_or_many(*next))
      if (auto one = call(item, "", true)) call_read.next.push_back(*std::move(one));
  }
  fields.finish();
}

void CallReader::read_compensation(const Place& place, CallConfig& call_read) {
  Fields fields(reading_, place);
  if (!fields) return;
  CompensationConfig made{.options = {.policy = call_read.options.policy, .limits = call_read.options.limits}};
  read_effect(fields, "", made.options, call_read.options.provider);
  // It has the reference of what it undoes, by which the provider would name that.
  auto& policy = made.options.policy;
  policy.can_look_up = false;
  if (policy.kind == ProviderPolicy::Kind::lookup) policy.kind = ProviderPolicy::Kind::neither;
  made.gives_up_as_stated = read_times(fields, made.options);
  read_request(fields, made.request, true);
  fields.finish();
  call_read.compensate = std::move(made);
}

std::vector<PublishConfig> CallReader::publications(const Place& place, bool settles) {
  std::vector<PublishConfig> all;
  for (const auto& item : reading_.one_or_many(place)) {
    if (auto one = publication(item, settles)) all.push_back(*std::move(one));
  }
  return all;
}

std::optional<PublishConfig> CallReader::publication(const Place& place, bool settles) {
  Fields fields(reading_, place);
  if (!fields) return std::nullopt;
  PublishConfig made;
  if (const auto to = fields.require("to", "a name from targets")) {
    const auto written = reading_.verbatim(*to).value_or("");
    std::vector<std::string> names;
    for (const auto& target : config_.targets) names.push_back(target.options.name);
    const auto found = std::find(names.begin(), names.end(), written);
    if (found == names.end()) {
      reading_.mistake(ErrorCode::config_unknown_name, *to,
                       "there is no target \"" + written + "\"" + suggestion(written, names));
    } else {
      auto& target = config_.targets[static_cast<std::size_t>(found - names.begin())];
      target.used = true;
      made.to = target.name();
    }
  }
  if (const auto body = fields.take("body")) {
    read_body(reading_, *body, made.body.emplace());
    check(*body, *made.body, settles);
  }
  if (const auto headers = fields.take("headers")) read_request_headers(*headers, made.attributes, settles);
  if (const auto key = fields.take("order_key")) made.order_key = expression(*key, settles);
  fields.finish();
  return made;
}

}  // namespace semel::app
