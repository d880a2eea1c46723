#include "call_review.hpp"

#include <algorithm>
#include <map>

#include "configured_calls.hpp"
#include "output.hpp"

namespace semel::app {
namespace {

using Kind = ProviderPolicy::Kind;

/// How long a call without an outcome is repeated with its key.
std::chrono::seconds repeated_for(const ProviderPolicy& policy) { return policy.key_lifetime - policy.margin; }

std::string policy_sentence(const EffectOptions& options) {
  const auto& policy = options.policy;
  const auto visible = policy.visibility_delay.count() > 0 ? ", and repeated once it is not found " +
                                                                 duration_text(policy.visibility_delay) + " after it"
                                                           : ", and repeated where it is not found";
  switch (policy.kind) {
    case Kind::idempotent:
      return options.provider + " remembers the key for " + duration_text(policy.key_lifetime) +
             "; a call without an outcome is repeated with it for " + duration_text(repeated_for(policy)) + ", then " +
             (policy.can_look_up ? "looked up by reference" : "an operator is asked");
    case Kind::lookup:
      return options.provider + " has no keys; a call without an outcome is looked up by reference" + visible;
    case Kind::neither:
      break;
  }
  return options.provider +
         " has neither keys nor a lookup; a call without an outcome is never repeated, and an operator is asked";
}

class CallReviewer {
 public:
  CallReviewer(const HandlerConfig& handler, const Config& config) : handler_(handler), config_(config) {}

  CallReview review() {
    for (const auto* call : all_calls(handler_)) {
      say(call->options.name + ": " + policy_sentence(call->options));
      warn_of_lifetime(call->options);
      warn_of_neither(call->options);
      warn_of_missing_reference(*call);
      warn_of_answer(*call);
      if (!call->compensate) continue;
      const auto& undo = call->compensate->options;
      say(undo.name + ": undoes " + call->options.name + " should a later step fail for good; " +
          policy_sentence(undo));
      warn_of_neither(undo);
    }
    for (const auto& publish : handler_.publish) say("publishes to " + publish.to + " at least once");
    warn_of_waiting();
    return std::move(review_);
  }

 private:
  void say(std::string sentence) { review_.sentences.push_back(std::move(sentence)); }
  void warn(const std::string& effect, const std::string& message) {
    review_.findings.push_back({.severity = Finding::Severity::warning,
                                .message = "handlers." + handler_.options.name + ": " + effect + ": " + message});
  }

  void warn_of_lifetime(const EffectOptions& options) {
    const auto& policy = options.policy;
    if (policy.kind != Kind::idempotent || policy.can_look_up) return;
    if (options.give_up_after <= repeated_for(policy)) return;
    warn(options.name, "give_up_after is " + duration_text(options.give_up_after) + ", but " + options.provider +
                           "'s key may be used for " + duration_text(repeated_for(policy)) +
                           " only and it has no lookup: what is in doubt then waits for an operator");
  }

  void warn_of_neither(const EffectOptions& options) {
    if (options.policy.kind != Kind::neither) return;
    warn(options.name,
         "after a timeout or a crash an operator has to look at " + options.provider +
             " and say what happened (semel intents resolve); state its key or its lookup where it has one");
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
      if (handler_.options.waiting.deadline < deadline) continue;
      warn("waiting.deadline", "a caller of " + source.name + " is answered 503 after its answer_deadline (" +
                                   duration_text(deadline) + ") and never sees the " +
                                   (handler_.options.waiting.accepted_when_late ? "202" : "409") +
                                   "; make the deadline shorter");
    }
  }

  const HandlerConfig& handler_;
  const Config& config_;
  CallReview review_;
};

}  // namespace

CallReview review_calls(const HandlerConfig& handler, const Config& config) {
  return CallReviewer(handler, config).review();
}

std::vector<Finding> review_outside(const Config& config) {
  std::vector<Finding> findings;
  const auto warn = [&](std::string message) {
    findings.push_back({.severity = Finding::Severity::warning, .message = std::move(message)});
  };
  std::map<std::string, std::string> looked_up;  // a provider's effects
  for (const auto& handler : config.handlers) {
    for (const auto* call : all_calls(handler)) {
      const auto& policy = call->options.policy;
      if (!call->reference || !(policy.can_look_up || policy.kind == Kind::lookup)) continue;
      auto& names = looked_up[call->options.provider];
      if (!names.empty()) {
        warn("providers." + call->options.provider + ".lookup: asked about " + names + " and " + call->options.name +
             "; one is taken for the other where they have one reference: give each its own");
      }
      names += (names.empty() ? "" : ", ") + call->options.name;
    }
  }
  for (const auto& provider : config.providers)
    if (!provider.used) warn("providers." + provider.name + ": no handler calls it");
  for (const auto& target : config.targets)
    if (!target.used) warn("targets." + target.options.name + ": no handler publishes to it");
  return findings;
}

}  // namespace semel::app
