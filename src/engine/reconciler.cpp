#include "engine/reconciler.hpp"

#include <algorithm>

#include "engine/throttle.hpp"
#include "values/body_not_kept.hpp"

namespace semel::engine {

namespace {

using protocol::Need;

constexpr std::string_view tried_enough = "tried for long enough; it did not happen";

Entry entry_of(const Intent& intent, const Effect& effect) {
  return {.intent = intent,
          .effect = &effect,
          .to = intent.status,
          .failures = intent.failures,
          .was_flagged = intent.status.flagged};
}

/// What is kept of an outcome, by the rules of stored answers.
CallOutcome kept_outcome(CallOutcome outcome) {
  outcome.answer.headers = replayable_headers(outcome.answer.headers);
  if (outcome.answer.body.size() > Answer::body_size_max) {
    outcome.answer.body.clear();
    outcome.detail.append(outcome.detail.empty() ? "" : "; ").append(body_not_kept);
  }
  return outcome;
}

IntentEvent event_of(std::string kind, int attempt, const std::string& process, std::string detail = {}) {
  return {.kind = std::move(kind), .attempt = attempt, .by = process, .detail = std::move(detail)};
}

void finish(Entry& entry, IntentState state) {
  entry.to = {.state = state,
              .attempt = entry.to.attempt,
              .settled = true,
              // A compensation that failed leaves the world half undone.
              .flagged = entry.to.flagged || (state == IntentState::failed && entry.intent.compensates)};
  entry.settles = true;
}

Entry begin_call(Entry entry, bool looks_up, const std::string& process) {
  entry.to.state = IntentState::started;
  if (!looks_up) ++entry.to.attempt;
  entry.looked_up = looks_up;
  entry.lease = entry.effect->options.lease;
  entry.event = event_of(looks_up ? "asked" : "started", entry.to.attempt, process);
  entry.calls = true;
  return entry;
}

/// No call can begin: whoever is behind it in the ledger must not wait for it.
Entry put_off(Entry entry, std::chrono::milliseconds pause) {
  entry.to.state = IntentState::pending;
  entry.due_in = pause;
  return entry;
}

Entry ask_an_operator(Entry entry, const std::string& process) {
  entry.to.state = IntentState::ambiguous;
  entry.to.doubtful = true;
  entry.event = event_of("ambiguous", entry.to.attempt, process, "an attempt ended without an outcome");
  return entry;
}

CallOutcome without_an_answer() { return {.answer = {.status = 504}, .detail = std::string(tried_enough)}; }

/// The provider's own answer, where there is one: it says why.
CallOutcome last_outcome(const CallReport& report) {
  if (is_unanswered(report)) return without_an_answer();
  auto outcome = report.outcome;
  outcome.detail = std::string(tried_enough).append(outcome.detail.empty() ? "" : ": ").append(outcome.detail);
  return outcome;
}

Entry give_up(Entry entry, CallOutcome outcome, const std::string& process) {
  finish(entry, IntentState::failed);
  entry.failures = 0;
  entry.due_in = {};
  entry.event = event_of("given_up", entry.to.attempt, process, outcome.detail);
  entry.outcome = kept_outcome(outcome);
  // What the settle step is told.
  if (entry.report) {
    entry.report->outcome = std::move(outcome);
  } else {
    entry.intent.outcome = entry.outcome;
  }
  return entry;
}

/// It certainly did not happen, and when it is due again it has been tried for long enough.
bool is_hopeless(const Entry& entry, const protocol::Ages& ages) {
  return !entry.to.doubtful && !entry.looked_up && ages.intended + entry.due_in >= entry.effect->options.give_up_after;
}

Entry settle(Entry entry, const std::string& process) {
  entry.to.settled = true;
  entry.settles = true;
  // It may have been flagged because this step failed again and again.
  if (entry.failures > 0) entry.to.flagged = entry.to.state == IntentState::failed && entry.intent.compensates;
  entry.event = event_of("settled", entry.to.attempt, process);
  return entry;
}

}  // namespace

std::optional<Entry> plan_for(const Intent& intent, const Effect& effect, bool room, std::chrono::milliseconds pause,
                              const std::string& process) {
  const auto need = protocol::need_of(intent.status, intent.lease_ran_out, effect.options, protocol::ages_of(intent));
  auto entry = entry_of(intent, effect);
  if (intent.status.state == IntentState::started) entry.to = protocol::after_death(entry.to);
  switch (need) {
    case Need::nothing:
      return std::nullopt;
    case Need::perform:
    case Need::look_up:
      return room ? begin_call(std::move(entry), need == Need::look_up, process) : put_off(std::move(entry), pause);
    case Need::settle:
      return settle(std::move(entry), process);
    case Need::give_up:
      return give_up(std::move(entry), without_an_answer(), process);
    case Need::ask_an_operator:
      return ask_an_operator(std::move(entry), process);
  }
  return std::nullopt;
}

Entry entry_for_report(const Intent& intent, const Effect& effect, const CallReport& report, bool looked_up,
                       const protocol::Ages& ages, std::chrono::milliseconds backoff, const std::string& process) {
  auto entry = entry_of(intent, effect);
  entry.looked_up = looked_up;
  entry.report = report;
  entry.asked_since_doubtful = ages.since_doubtful;
  const std::optional<CallOutcome> none;
  const auto reported =
      protocol::after_report({intent.status, intent.status.attempt, looked_up, report, none}, effect.options, ages);
  entry.to = reported.to;
  if (!is_open(entry.to.state)) {
    finish(entry, entry.to.state);
    entry.failures = 0;
    entry.outcome = kept_outcome(report.outcome);
  } else if (entry.to.state == IntentState::pending) {
    ++entry.failures;
    entry.due_in = std::max(backoff, report.retry_after.value_or(std::chrono::milliseconds(0)));
    // The question has an answer, and nothing stands against a new attempt.
    if (looked_up && !entry.to.doubtful) entry.due_in = std::chrono::milliseconds(0), entry.failures = 0;
    if (is_hopeless(entry, ages)) return give_up(std::move(entry), last_outcome(report), process);
  }
  entry.event =
      event_of(std::string(call_verdict_name(report.verdict)), intent.status.attempt, process, report.outcome.detail);
  // An outcome is kept with the intent; here it would be kept twice.
  if (!entry.outcome) entry.event->evidence = kept_outcome(report.outcome);
  return entry;
}

}  // namespace semel::engine
