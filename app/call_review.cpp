#include "call_review.hpp"

#include <algorithm>
#include <map>

#include "configured_calls.hpp"
#include "gateway_handler.hpp"
#include "output.hpp"

namespace semel::app {
namespace {

using Kind = ProviderPolicy::Kind;

/// How long a call without an outcome is repeated with its key.
std::chrono::seconds repeated_for(const ProviderPolicy& policy) { return policy.key_lifetime - policy.margin; }

/// What becomes of `what` ("call", "request") without an outcome.
std::string policy_sentence(const ProviderPolicy& policy, const std::string& provider, const std::string& what) {
  const auto visible = policy.visibility_delay.count() > 0 ? ", and repeated once it is not found " +
                                                                 duration_text(policy.visibility_delay) + " after it"
                                                           : ", and repeated where it is not found";
  switch (policy.kind) {
    case Kind::idempotent:
      return provider + " remembers the key for " + duration_text(policy.key_lifetime) + "; a " + what +
             " without an outcome is repeated with it for " + duration_text(repeated_for(policy)) + ", then " +
             (policy.can_look_up ? "looked up by reference" : "an operator is asked");
    case Kind::lookup:
      return provider + " has no keys; a " + what + " without an outcome is looked up by reference" + visible;
    case Kind::neither:
      break;
  }
  return provider + " has neither keys nor a lookup; a " + what +
         " without an outcome is never repeated, and an operator is asked";
}

/// Empty where there is time for one repeat at least, begun when the first attempt is known to be lost.
std::string short_lifetime(const EffectOptions& options, const std::string& provider) {
  const auto& policy = options.policy;
  if (policy.kind != Kind::idempotent || policy.can_look_up) return "";
  const auto lost = std::chrono::ceil<std::chrono::seconds>(std::max(options.timeout, options.lease));
  const auto repeat = std::chrono::ceil<std::chrono::seconds>(options.timeout);
  if (lost + repeat <= repeated_for(policy)) return "";
  return provider + "'s key may be used for " + duration_text(repeated_for(policy)) +
         " only, but that an attempt is lost is known after " + duration_text(lost) + ", and a repeat takes up to " +
         duration_text(repeat) + ": what is in doubt then waits for an operator";
}

std::string ends_at_an_operator(const std::string& provider) {
  return "after a timeout or a crash an operator has to look at " + provider +
         " and say what happened (semel intents resolve); state its key or its lookup where it has one";
}

/// Empty where callers are told what `waiting` says.
std::string late_for_its_source(const Waiting& waiting, const std::string& source, std::chrono::seconds deadline) {
  if (waiting.deadline < deadline) return "";
  return "a caller of " + source + " is answered 503 after its answer_deadline (" + duration_text(deadline) +
         ") and never sees the " + (waiting.accepted_when_late ? "202" : "409") + "; make the deadline shorter";
}

class CallReviewer {
 public:
  CallReviewer(const HandlerConfig& handler, const Config& config) : handler_(handler), config_(config) {}

  CallReview review() {
    for (const auto* call : all_calls(handler_)) {
      say(call->options.name + ": " + policy_sentence(call->options));
      warn_of_lifetime(call->options, call->gives_up_as_stated);
      warn_of_neither(call->options);
      warn_of_missing_reference(*call);
      warn_of_answer(*call);
      if (!call->compensate) continue;
      const auto& undo = call->compensate->options;
      say(undo.name + ": undoes " + call->options.name + " should a later step fail for good; " +
          policy_sentence(undo));
      warn_of_lifetime(undo, call->compensate->gives_up_as_stated);
      warn_of_neither(undo);
    }
    for (const auto& publish : handler_.publish) say("publishes to " + publish.to + " at least once");
    warn_of_waiting();
    return std::move(review_);
  }

 private:
  static std::string policy_sentence(const EffectOptions& options) {
    return app::policy_sentence(options.policy, options.provider, "call");
  }
  void say(std::string sentence) { review_.sentences.push_back(std::move(sentence)); }
  void warn(const std::string& effect, const std::string& message) {
    review_.findings.push_back({.severity = Finding::Severity::warning,
                                .message = "handlers." + handler_.options.name + ": " + effect + ": " + message});
  }

  void warn_of_lifetime(const EffectOptions& options, bool gives_up_as_stated) {
    const auto& policy = options.policy;
    if (const auto why = short_lifetime(options, options.provider); !why.empty()) return warn(options.name, why);
    // By default what certainly did not happen is tried for longer than most keys live, and needs no key for that.
    if (!gives_up_as_stated || policy.kind != Kind::idempotent || policy.can_look_up) return;
    if (options.give_up_after <= repeated_for(policy)) return;
    warn(options.name, "give_up_after is " + duration_text(options.give_up_after) + ", but " + options.provider +
                           "'s key may be used for " + duration_text(repeated_for(policy)) +
                           " only and it has no lookup: what is in doubt then waits for an operator");
  }

  void warn_of_neither(const EffectOptions& options) {
    if (options.policy.kind == Kind::neither) warn(options.name, ends_at_an_operator(options.provider));
  }

  /// A provider that could be asked, about a call that has no name.
  void warn_of_missing_reference(const CallConfig& call) {
    if (call.options.policy.kind != Kind::idempotent || !call.options.policy.can_look_up || call.reference) return;
    warn(call.options.name, "has no reference, so it cannot be looked up once the key is forgotten");
  }

  void warn_of_answer(const CallConfig& call) {
    if (!call.settle.answer || call.on_failure) return;
    warn(call.options.name, "settle.answer is given also where the call has failed; write on_failure for that");
  }

  void warn_of_waiting() {
    if (handler_.calls.empty()) return;
    for (const auto& source : config_.sources) {
      const auto* http = std::get_if<HttpSource>(&source.kind);
      const auto& from = handler_.options.from;
      if (std::find(from.begin(), from.end(), source.name) == from.end()) continue;
      if (!http || !std::holds_alternative<http::Requests>(http->kind)) continue;
      const auto deadline = config_.listeners[http->listener].answer_deadline;
      const auto late = late_for_its_source(handler_.options.waiting, source.name, deadline);
      if (!late.empty()) warn("waiting.deadline", late);
    }
  }

  const HandlerConfig& handler_;
  const Config& config_;
  CallReview review_;
};

/// "POST /payments: needs a key; callers are told apart by the header X-User".
std::string route_sentence(const http::GuardedRoute& route) {
  using From = http::Principal::From;
  std::string methods;
  for (const auto& method : route.methods) methods += (methods.empty() ? "" : ",") + method;
  auto text = methods + " " + route.path +
              (route.key == http::GuardedRoute::Key::required ? ": needs a key" : ": is guarded where it has a key");
  switch (route.principal.from) {
    case From::none:
      return text + "; callers are not told apart";
    case From::header:
      return text + "; callers are told apart by the header " + route.principal.header;
    case From::credential_digest:
      break;
  }
  return text + "; callers are told apart by their credentials";
}

}  // namespace

CallReview review_calls(const HandlerConfig& handler, const Config& config) {
  return CallReviewer(handler, config).review();
}

CallReview review_gateway(const GatewayConfig& gateway, const Config& config) {
  CallReview review;
  const auto* provider = provider_of(gateway, config);
  const auto effect = effect_of(gateway, provider);
  const auto service = provider ? provider->name : "the service";
  const auto warn = [&](const std::string& message) {
    if (message.empty()) return;
    review.findings.push_back(
        {.severity = Finding::Severity::warning, .message = "sources." + gateway.name + ": " + message});
  };
  for (const auto& route : gateway.gateway.routes)
    review.sentences.push_back(route_sentence(route) + "; " + policy_sentence(effect.policy, service, "request"));
  review.sentences.push_back("a key is known for " + duration_text(gateway.retention) + "; a client waits " +
                             duration_text(std::chrono::ceil<std::chrono::seconds>(gateway.waiting.deadline)) +
                             " for the answer, then it gets " + (gateway.waiting.accepted_when_late ? "202" : "409"));
  review.sentences.push_back("all else passes through to " + gateway.gateway.upstream.url);
  warn(short_lifetime(effect, service));
  if (effect.policy.kind == Kind::neither) warn(ends_at_an_operator(service));
  warn(late_for_its_source(gateway.waiting, gateway.name, config.listeners[gateway.listener].answer_deadline));
  return review;
}

std::vector<Finding> review_outside(const Config& config) {
  std::vector<Finding> findings;
  const auto warn = [&](std::string message) {
    findings.push_back({.severity = Finding::Severity::warning, .message = std::move(message)});
  };
  std::map<std::string, std::string> looked_up;  // a provider's effects
  const auto asked_about = [&](const std::string& provider, const ProviderPolicy& policy, const std::string& effect) {
    if (!policy.can_look_up && policy.kind != Kind::lookup) return;
    auto& names = looked_up[provider];
    if (!names.empty()) {
      warn("providers." + provider + ".lookup: asked about " + names + " and " + effect +
           "; one is taken for the other where they have one reference: give each its own");
    }
    names += (names.empty() ? "" : ", ") + effect;
  };
  for (const auto& handler : config.handlers)
    for (const auto* call : all_calls(handler))
      if (call->reference) asked_about(call->options.provider, call->options.policy, call->options.name);
  for (const auto& gateway : config.gateways)
    if (const auto* provider = provider_of(gateway, config))
      asked_about(provider->name, provider->policy(), gateway.name);
  for (const auto& provider : config.providers)
    if (!provider.used) warn("providers." + provider.name + ": no handler calls it");
  for (const auto& target : config.targets)
    if (!target.used) warn("targets." + target.options.name + ": no handler publishes to it");
  return findings;
}

}  // namespace semel::app
