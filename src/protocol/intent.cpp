#include "protocol/intent.hpp"

namespace semel::protocol {

namespace {

using Kind = ProviderPolicy::Kind;
using Effect = Reported::Effect;

bool key_is_remembered(const ProviderPolicy& policy, const Ages& ages) {
  return policy.kind == Kind::idempotent &&
         ages.since_started.value_or(std::chrono::milliseconds(0)) < policy.key_lifetime - policy.margin;
}

bool can_look_up(const ProviderPolicy& policy) { return policy.kind == Kind::lookup || policy.can_look_up; }

/// An attempt may have had its effect.
Need need_in_doubt(const EffectOptions& effect, const Ages& ages) {
  if (key_is_remembered(effect.policy, ages)) return Need::perform;
  const bool time_left = ages.since_doubtful.value_or(std::chrono::milliseconds(0)) < effect.give_up_after;
  return can_look_up(effect.policy) && time_left ? Need::look_up : Need::ask_an_operator;
}

IntentStatus finished(IntentStatus now, IntentState state) {
  return {.state = state, .attempt = now.attempt, .doubtful = false, .settled = false, .flagged = now.flagged};
}

IntentStatus waiting(IntentStatus now, bool doubtful) {
  return {.state = IntentState::pending, .attempt = now.attempt, .doubtful = doubtful, .flagged = now.flagged};
}

IntentStatus unsolvable(IntentStatus now) {
  return {.state = IntentState::ambiguous, .attempt = now.attempt, .doubtful = true, .flagged = now.flagged};
}

/// It may have happened, and is taken up again where something can be done about it.
IntentStatus in_doubt(IntentStatus now, const ProviderPolicy& policy) {
  return policy.kind == Kind::neither ? unsolvable(now) : waiting(now, true);
}

bool has_passed(const ProviderPolicy& policy, const Ages& ages) {
  return ages.since_doubtful.value_or(std::chrono::milliseconds(0)) >= policy.visibility_delay;
}

IntentStatus after_answer(IntentStatus now, CallVerdict verdict, const ProviderPolicy& policy) {
  switch (verdict) {
    case CallVerdict::succeeded:
      return finished(now, IntentState::succeeded);
    case CallVerdict::failed:
      return finished(now, IntentState::failed);
    case CallVerdict::refused:
      // Turned away at the door: of an earlier attempt, which may have got in, this says nothing.
      return now.doubtful ? in_doubt(now, policy) : finished(now, IntentState::failed);
    case CallVerdict::not_done:
      return waiting(now, now.doubtful);
    case CallVerdict::mismatch:
      return unsolvable(now);
    case CallVerdict::unknown:
    case CallVerdict::unfinished:
    case CallVerdict::not_found:
      return in_doubt(now, policy);
  }
  return unsolvable(now);
}

IntentStatus after_lookup(IntentStatus now, CallVerdict verdict, bool visible) {
  switch (verdict) {
    case CallVerdict::succeeded:
      return finished(now, IntentState::succeeded);
    case CallVerdict::failed:
      return finished(now, IntentState::failed);
    case CallVerdict::not_found:
      // Too early, and what is not there yet may still appear.
      return waiting(now, !visible);
    case CallVerdict::mismatch:
      return unsolvable(now);
    case CallVerdict::unknown:
    case CallVerdict::unfinished:
    case CallVerdict::not_done:
    case CallVerdict::refused:
      return waiting(now, true);
  }
  return unsolvable(now);
}

bool is_outcome(CallVerdict verdict) {
  return verdict == CallVerdict::succeeded || verdict == CallVerdict::failed || verdict == CallVerdict::mismatch;
}

/// Whether what came too late does not fit what is known.
bool contradicts(const ReportedCall& call, const ProviderPolicy& policy) {
  const auto verdict = call.report.verdict;
  if (!is_outcome(verdict)) return false;
  if (verdict == CallVerdict::mismatch) return true;
  if (is_open(call.now.state)) return verdict == CallVerdict::succeeded && policy.kind != Kind::idempotent;
  const bool says_done = verdict == CallVerdict::succeeded;
  if (says_done != (call.now.state == IntentState::succeeded)) return says_done || policy.kind == Kind::idempotent;
  // Both say that it was done: twice, where they name two things.
  const auto& one = call.report.outcome.reference;
  const auto other = call.known ? call.known->reference : std::string();
  return says_done && !one.empty() && !other.empty() && one != other;
}

}  // namespace

Ages ages_of(const Intent& intent) { return {intent.age, intent.since_started, intent.since_doubtful}; }

Need need_of(const IntentStatus& status, bool lease_ran_out, const EffectOptions& effect, const Ages& ages) {
  switch (status.state) {
    case IntentState::succeeded:
    case IntentState::failed:
    case IntentState::abandoned:
      return status.settled ? Need::nothing : Need::settle;
    case IntentState::ambiguous:
      return Need::nothing;
    case IntentState::started:
      return lease_ran_out ? need_in_doubt(effect, ages) : Need::nothing;
    case IntentState::pending:
      if (status.doubtful) return need_in_doubt(effect, ages);
      return ages.intended < effect.give_up_after ? Need::perform : Need::give_up;
  }
  return Need::nothing;
}

IntentStatus after_death(IntentStatus status) {
  status.doubtful = true;
  return status;
}

Reported after_report(const ReportedCall& call, const EffectOptions& effect, const Ages& ages) {
  const auto& now = call.now;
  const auto verdict = call.report.verdict;
  const bool current = is_open(now.state) && now.attempt == call.attempt;
  if (!current) {
    if (!contradicts(call, effect.policy)) return {Effect::evidence, now};
    auto flagged = now;
    flagged.flagged = true;
    return {Effect::contradicts, flagged};
  }
  // Its lease was lost, but no other attempt was begun since: what it says is news only where it is an outcome.
  if (now.state != IntentState::started && !is_outcome(verdict)) return {Effect::evidence, now};
  if (call.looked_up) return {Effect::applied, after_lookup(now, verdict, has_passed(effect.policy, ages))};
  return {Effect::applied, after_answer(now, verdict, effect.policy)};
}

std::optional<IntentStatus> after_resolution(IntentStatus status, bool lease_ran_out, Resolution resolution) {
  if (status.state == IntentState::started && !lease_ran_out && !status.flagged) return std::nullopt;
  if (!is_open(status.state)) {
    // What was settled stays settled: the operator has seen the contradiction, and that is kept.
    if (!status.flagged) return std::nullopt;
    status.flagged = false;
    return status;
  }
  status.flagged = false;
  switch (resolution) {
    case Resolution::happened:
      return finished(status, IntentState::succeeded);
    case Resolution::did_not_happen:
      return waiting(status, false);
    case Resolution::abandoned:
      return finished(status, IntentState::abandoned);
  }
  return std::nullopt;
}

}  // namespace semel::protocol
