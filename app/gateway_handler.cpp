#include "gateway_handler.hpp"

#include <algorithm>
#include <cctype>

#include "net/problem.hpp"
#include "values/body_not_kept.hpp"

namespace semel::app {
namespace {

using http::AnswerRule;
using http::Meaning;

/// A first caller gets an answer of any length below this; what is longer than a stored answer may be is not replayed.
constexpr std::size_t response_bytes_max = 16u << 20;
constexpr std::size_t calls_max = 512;

/// A service's own answers, rather than a payment API's: whatever it says below 500 it has said, and a redirect is
/// meant for the client.
std::vector<AnswerRule> rules_of_a_service() {
  return {{.status_from = 409, .status_to = 409, .header = "retry-after", .meaning = Meaning::unfinished},
          {.status_from = 409, .status_to = 409, .meaning = Meaning::failed},
          {.status_from = 300, .status_to = 399, .meaning = Meaning::succeeded}};
}

bool is_our_own(std::string_view name) {
  constexpr std::string_view own[] = {":method", ":path", "idempotency-key", "content-length"};
  const auto same = [&](std::string_view other) {
    return std::ranges::equal(name, other, {}, [](unsigned char c) { return std::tolower(c); });
  };
  return std::ranges::any_of(own, same);
}

std::string text_of(const Attributes& attributes, std::string_view name) {
  return std::string(attributes.find(name).value_or(""));
}

/// Without the slash at the end: a target begins with one.
std::string base_of(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

Answer as_answer(net::Response response) {
  return {.status = response.status, .headers = std::move(response.headers), .body = std::move(response.body)};
}

/// It has not done it, and says that another time it might.
bool is_busy(int status) { return status == 408 || status == 425 || status == 429 || status == 503; }

/// Half a body must not pass for a whole one, and the status alone not for an answer without a body.
Answer as_too_long(int status) {
  return as_answer(net::problem_response(
      net::Problem::answer_no_longer_kept,
      {.detail = "the service answered " + std::to_string(status) + ", with a body that is too long to be kept"}));
}

/// What the service answered is not known, only that it did it.
Answer as_an_operator_says(const CallOutcome& outcome) {
  return {.headers = {{"Content-Type", "application/json"}},
          .body = "{\"state\":\"succeeded\",\"reference\":" + net::json_string(outcome.reference) + "}\n"};
}

}  // namespace

const ProviderConfig* provider_of(const GatewayConfig& gateway, const Config& config) {
  const auto found = std::ranges::find(config.providers, gateway.provider, &ProviderConfig::name);
  return gateway.provider.empty() || found == config.providers.end() ? nullptr : &*found;
}

EffectOptions effect_of(const GatewayConfig& gateway, const ProviderConfig* provider) {
  EffectOptions effect{.name = gateway.name + " upstream"};
  effect.provider = effect.name;
  effect.timeout = gateway.gateway.upstream.timeout;
  // While the client still waits, so that it is told that the service is away, and may come again with its key.
  effect.give_up_after = std::max(std::chrono::seconds(1),
                                  std::chrono::duration_cast<std::chrono::seconds>(gateway.waiting.deadline * 3 / 4));
  effect.limits.calls_max = calls_max;
  effect.limits.breaker_failures = 0;  // the service's own clients see whether it is there
  effect.delay_first = std::chrono::milliseconds(100);
  effect.delay_max = std::chrono::milliseconds(5'000);
  // One commit less for each request; a crash in the moment between the commit and the call looks like one after it.
  effect.start_at_once = true;
  if (provider) effect.policy = provider->performer.profile.policy;
  return effect;
}

http::PerformerOptions performer_of(const GatewayConfig& gateway, const ProviderConfig* provider) {
  http::PerformerOptions options;
  options.profile.key.size_max = Key::size_max;  // of a service of which nothing is said
  if (provider) options = provider->performer;
  auto& rules = options.profile.rules;
  for (auto& rule : rules_of_a_service()) rules.push_back(std::move(rule));
  const auto& upstream = gateway.gateway.upstream;
  if (!upstream.ca_file.empty()) options.ca_file = upstream.ca_file;
  options.proxy = options.proxy.value_or("");
  options.connect_timeout = upstream.connect_timeout;
  options.response_bytes_max = response_bytes_max;
  options.calls_max = calls_max;
  return options;
}

std::size_t key_size_max_of(const GatewayConfig& gateway, const ProviderConfig* provider) {
  const auto& carrier = performer_of(gateway, provider).profile.key;
  const bool carries_none = carrier.in == http::KeyCarrier::In::none;
  return carries_none ? Key::size_max : std::min<std::size_t>(carrier.size_max, Key::size_max);
}

HandlerOptions handler_of(const GatewayConfig& gateway) {
  HandlerOptions options{.name = gateway.name, .key = KeyExpression::attribute("Idempotency-Key")};
  for (const auto& route : gateway.gateway.routes) options.from.push_back(route.name);
  options.retention = gateway.retention;
  options.waiting = gateway.waiting;
  return options;
}

Intention call_to_service(const GatewayConfig& gateway, const Message& message) {
  const auto& delivery = message.delivery();
  http::StoredRequest request{.method = text_of(delivery.attributes, ":method"),
                              .url = base_of(gateway.gateway.upstream.url) + text_of(delivery.attributes, ":path"),
                              .headers = {},
                              .body = delivery.body};
  for (const auto& [name, value] : delivery.attributes.entries())
    if (!is_our_own(name)) request.headers.add(name, value);
  return {.effect = gateway.name + " upstream",
          .request = http::encode_request(request).value(),
          .reference = message.key().bytes(),
          .idempotency_key = text_of(delivery.attributes, "idempotency-key"),
          .credentials = delivery.credentials};
}

Answer answer_of_service(const Settled& settled, SettleWork<SqlSession>& work) {
  const auto& outcome = settled.outcome();
  const int status = outcome.answer.status;
  const auto state = settled.intent().status.state;
  if (state == IntentState::abandoned)
    return as_answer(net::problem_response(net::Problem::failed, {.detail = "an operator gave this request up"}));
  if (state == IntentState::succeeded && status == 0) return as_an_operator_says(outcome);
  if (state == IntentState::failed && outcome.answer.status == 504 && outcome.answer.body.empty()) {
    work.forget();
    return as_answer(net::problem_response(net::Problem::not_done, {.detail = outcome.detail}));
  }
  if (state == IntentState::failed && is_busy(status)) work.forget();
  // Turned away at the door: with the right credentials the same request may come again.
  if (state == IntentState::failed && (status == 401 || status == 403 || status == 404 || status == 407)) work.forget();
  if (lacks_body(outcome)) return as_too_long(status);
  return outcome.answer;
}

}  // namespace semel::app
