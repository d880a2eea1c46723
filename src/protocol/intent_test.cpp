#include "protocol/intent.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace semel::protocol {
namespace {

using namespace std::chrono_literals;
using Kind = ProviderPolicy::Kind;

constexpr std::array all_verdicts{CallVerdict::succeeded,  CallVerdict::failed,  CallVerdict::refused,
                                  CallVerdict::not_done,   CallVerdict::unknown, CallVerdict::not_found,
                                  CallVerdict::unfinished, CallVerdict::mismatch};
constexpr std::array all_kinds{Kind::idempotent, Kind::lookup, Kind::neither};

EffectOptions effect(Kind kind, bool can_look_up = false) {
  return {
      .name = "charge",
      .policy = {.kind = kind, .key_lifetime = 24h, .margin = 1h, .can_look_up = can_look_up, .visibility_delay = 60s},
      .give_up_after = 48h};
}

/// "started 2", "pending 1 doubtful", "failed 1 settled flagged".
std::string text(const IntentStatus& status) {
  return std::string(intent_state_name(status.state)) + " " + std::to_string(status.attempt) +
         (status.doubtful ? " doubtful" : "") + (status.settled ? " settled" : "") + (status.flagged ? " flagged" : "");
}

std::string text(const Reported& reported) {
  switch (reported.effect) {
    case Reported::Effect::applied:
      return text(reported.to);
    case Reported::Effect::evidence:
      return "evidence";
    case Reported::Effect::contradicts:
      return "contradicts, " + text(reported.to);
  }
  return "";
}

std::string text(Need need) {
  switch (need) {
    case Need::nothing:
      return "nothing";
    case Need::perform:
      return "perform";
    case Need::look_up:
      return "look up";
    case Need::settle:
      return "settle";
    case Need::give_up:
      return "give up";
    case Need::ask_an_operator:
      return "ask an operator";
  }
  return "";
}

struct Given {
  IntentStatus now{.state = IntentState::started, .attempt = 1};
  Kind kind = Kind::idempotent;
  CallVerdict verdict = CallVerdict::succeeded;
  bool looked_up = false;
  int attempt = 1;
  std::string reference{};
  std::optional<CallOutcome> known{};
  Ages ages{.intended = 10s, .since_started = 10s, .since_doubtful = 10s};
};

std::string reported(const Given& given) {
  const CallReport report{.verdict = given.verdict, .outcome = {.reference = given.reference}};
  return text(
      after_report({given.now, given.attempt, given.looked_up, report, given.known}, effect(given.kind), given.ages));
}

TEST(Intent, AReportOfTheCurrentAttemptMovesItByVerdictAndPolicy) {
  struct Row {
    CallVerdict verdict;
    const char* idempotent;
    const char* lookup;
    const char* neither;
  };
  const Row rows[] = {
      {CallVerdict::succeeded, "succeeded 1", "succeeded 1", "succeeded 1"},
      {CallVerdict::failed, "failed 1", "failed 1", "failed 1"},
      {CallVerdict::refused, "failed 1", "failed 1", "failed 1"},
      {CallVerdict::not_done, "pending 1", "pending 1", "pending 1"},
      {CallVerdict::unknown, "pending 1 doubtful", "pending 1 doubtful", "ambiguous 1 doubtful"},
      {CallVerdict::unfinished, "pending 1 doubtful", "pending 1 doubtful", "ambiguous 1 doubtful"},
      {CallVerdict::not_found, "pending 1 doubtful", "pending 1 doubtful", "ambiguous 1 doubtful"},
      {CallVerdict::mismatch, "ambiguous 1 doubtful", "ambiguous 1 doubtful", "ambiguous 1 doubtful"},
  };
  ASSERT_EQ(std::size(rows), all_verdicts.size());
  for (const auto& row : rows) {
    EXPECT_EQ(reported({.kind = Kind::idempotent, .verdict = row.verdict}), row.idempotent);
    EXPECT_EQ(reported({.kind = Kind::lookup, .verdict = row.verdict}), row.lookup);
    EXPECT_EQ(reported({.kind = Kind::neither, .verdict = row.verdict}), row.neither);
  }
}

TEST(Intent, ARepeatThatWasTurnedAwaySaysNothingOfTheFirstAttempt) {
  const IntentStatus now{.state = IntentState::started, .attempt = 2, .doubtful = true};
  EXPECT_EQ(reported({.now = now, .verdict = CallVerdict::refused, .attempt = 2}), "pending 2 doubtful");
  EXPECT_EQ(reported({.now = now, .verdict = CallVerdict::not_done, .attempt = 2}), "pending 2 doubtful");
  EXPECT_EQ(reported({.now = now, .verdict = CallVerdict::failed, .attempt = 2}), "failed 2");
}

TEST(Intent, ALookupSettlesOrRepeatsOnlyOnceItWouldBeVisible) {
  const IntentStatus now{.state = IntentState::started, .attempt = 1, .doubtful = true};
  const auto looked_up = [&](CallVerdict verdict, std::chrono::seconds since) {
    return reported({.now = now,
                     .kind = Kind::lookup,
                     .verdict = verdict,
                     .looked_up = true,
                     .ages = {.intended = 1h, .since_started = 1h, .since_doubtful = since}});
  };
  EXPECT_EQ(looked_up(CallVerdict::succeeded, 1s), "succeeded 1");
  EXPECT_EQ(looked_up(CallVerdict::failed, 1s), "failed 1");
  EXPECT_EQ(looked_up(CallVerdict::not_found, 59s), "pending 1 doubtful");
  EXPECT_EQ(looked_up(CallVerdict::not_found, 60s), "pending 1") << "now it may run again";
  EXPECT_EQ(looked_up(CallVerdict::mismatch, 60s), "ambiguous 1 doubtful");
  for (const auto verdict :
       {CallVerdict::unknown, CallVerdict::unfinished, CallVerdict::not_done, CallVerdict::refused})
    EXPECT_EQ(looked_up(verdict, 2h), "pending 1 doubtful") << call_verdict_name(verdict);
}

TEST(Intent, NothingThatIsNotTheCurrentAttemptMovesIt) {
  for (const auto state : all_intent_states)
    for (const auto kind : all_kinds)
      for (const auto verdict : all_verdicts)
        for (const bool looked_up : {false, true}) {
          const IntentStatus now{.state = state, .attempt = 2, .settled = !is_open(state)};
          const CallReport report{.verdict = verdict};
          const auto after = after_report({now, 1, looked_up, report, {}}, effect(kind), {});
          EXPECT_NE(after.effect, Reported::Effect::applied);
          EXPECT_EQ(after.to.state, now.state);
          EXPECT_EQ(after.to.attempt, now.attempt);
          EXPECT_EQ(after.to.settled, now.settled);
        }
}

TEST(Intent, AnOutcomeIsNeverReplacedByAReport) {
  for (const auto state : {IntentState::succeeded, IntentState::failed, IntentState::abandoned})
    for (const auto verdict : all_verdicts) {
      const IntentStatus now{.state = state, .attempt = 1, .settled = true};
      const CallReport report{.verdict = verdict};
      const auto after = after_report({now, 1, false, report, {}}, effect(Kind::neither), {});
      EXPECT_NE(after.effect, Reported::Effect::applied);
      EXPECT_EQ(after.to.state, state);
    }
}

TEST(Intent, ALateOutcomeOfTheAttemptThatIsStillCurrentIsNews) {
  for (const auto state : {IntentState::pending, IntentState::ambiguous}) {
    const IntentStatus now{.state = state, .attempt = 1, .doubtful = true};
    EXPECT_EQ(reported({.now = now, .kind = Kind::neither}), "succeeded 1");
    EXPECT_EQ(reported({.now = now, .kind = Kind::neither, .verdict = CallVerdict::failed}), "failed 1");
    for (const auto verdict : {CallVerdict::unknown, CallVerdict::not_done, CallVerdict::refused,
                               CallVerdict::unfinished, CallVerdict::not_found})
      EXPECT_EQ(reported({.now = now, .kind = Kind::neither, .verdict = verdict}), "evidence");
  }
}

TEST(Intent, ALateOutcomeThatContradictsIsFlagged) {
  struct Row {
    IntentState state;
    Kind kind;
    CallVerdict verdict;
    const char* expected;
  };
  const Row rows[] = {
      {IntentState::failed, Kind::lookup, CallVerdict::succeeded, "contradicts, failed 2 settled flagged"},
      {IntentState::abandoned, Kind::neither, CallVerdict::succeeded, "contradicts, abandoned 2 settled flagged"},
      {IntentState::succeeded, Kind::idempotent, CallVerdict::failed, "contradicts, succeeded 2 settled flagged"},
      {IntentState::succeeded, Kind::lookup, CallVerdict::failed, "evidence"},
      {IntentState::succeeded, Kind::lookup, CallVerdict::unknown, "evidence"},
      {IntentState::abandoned, Kind::neither, CallVerdict::failed, "evidence"},
      {IntentState::succeeded, Kind::idempotent, CallVerdict::mismatch, "contradicts, succeeded 2 settled flagged"},
  };
  for (const auto& row : rows) {
    const IntentStatus now{.state = row.state, .attempt = 2, .settled = true};
    EXPECT_EQ(reported({.now = now, .kind = row.kind, .verdict = row.verdict}), row.expected);
  }
}

TEST(Intent, TwoReferencesAreTwoEffects) {
  const IntentStatus now{.state = IntentState::succeeded, .attempt = 2, .settled = true};
  const CallOutcome known{.reference = "ch_1"};
  EXPECT_EQ(reported({.now = now, .reference = "ch_1", .known = known}), "evidence");
  EXPECT_EQ(reported({.now = now, .reference = "ch_2", .known = known}), "contradicts, succeeded 2 settled flagged");
}

TEST(Intent, AnotherAttemptUnderWayAndTheOldOneSucceededIsTwoEffectsUnlessTheKeyMakesThemOne) {
  const IntentStatus now{.state = IntentState::started, .attempt = 2};
  EXPECT_EQ(reported({.now = now, .kind = Kind::lookup}), "contradicts, started 2 flagged");
  EXPECT_EQ(reported({.now = now, .kind = Kind::idempotent}), "evidence");
}

std::string needed(IntentStatus status, const EffectOptions& options, Ages ages = {}, bool ran_out = false) {
  return text(need_of(status, ran_out, options, ages));
}

TEST(Intent, WhatEachStateNeeds) {
  struct Row {
    IntentStatus status;
    bool ran_out;
    const char* idempotent;
    const char* lookup;
    const char* neither;
  };
  const Row rows[] = {
      {{.state = IntentState::pending}, false, "perform", "perform", "perform"},
      {{.state = IntentState::pending, .attempt = 1, .doubtful = true}, false, "perform", "look up", "ask an operator"},
      {{.state = IntentState::started, .attempt = 1}, false, "nothing", "nothing", "nothing"},
      {{.state = IntentState::started, .attempt = 1}, true, "perform", "look up", "ask an operator"},
      {{.state = IntentState::succeeded}, false, "settle", "settle", "settle"},
      {{.state = IntentState::failed}, false, "settle", "settle", "settle"},
      {{.state = IntentState::abandoned}, false, "settle", "settle", "settle"},
      {{.state = IntentState::succeeded, .settled = true}, false, "nothing", "nothing", "nothing"},
      {{.state = IntentState::failed, .settled = true}, false, "nothing", "nothing", "nothing"},
      {{.state = IntentState::abandoned, .settled = true}, false, "nothing", "nothing", "nothing"},
      {{.state = IntentState::ambiguous, .attempt = 1, .doubtful = true}, false, "nothing", "nothing", "nothing"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(needed(row.status, effect(Kind::idempotent), {}, row.ran_out), row.idempotent) << text(row.status);
    EXPECT_EQ(needed(row.status, effect(Kind::lookup), {}, row.ran_out), row.lookup) << text(row.status);
    EXPECT_EQ(needed(row.status, effect(Kind::neither), {}, row.ran_out), row.neither) << text(row.status);
  }
}

TEST(Intent, PastTheProvidersMemoryNothingIsRepeated) {
  const IntentStatus doubtful{.state = IntentState::pending, .attempt = 1, .doubtful = true};
  const Ages just_in{.intended = 23h, .since_started = 23h - 1s, .since_doubtful = 1h};
  const Ages past{.intended = 23h, .since_started = 23h, .since_doubtful = 1h};
  EXPECT_EQ(needed(doubtful, effect(Kind::idempotent), just_in), "perform");
  EXPECT_EQ(needed(doubtful, effect(Kind::idempotent), past), "ask an operator");
  EXPECT_EQ(needed(doubtful, effect(Kind::idempotent, true), past), "look up");
  auto forgetful = effect(Kind::idempotent);
  forgetful.policy.key_lifetime = 1h;
  EXPECT_EQ(needed(doubtful, forgetful), "ask an operator") << "a lifetime that the margin eats up is none";
}

TEST(Intent, GivesUpOnlyWhatCertainlyDidNotHappen) {
  const Ages old{.intended = 48h, .since_started = 48h, .since_doubtful = 48h};
  EXPECT_EQ(needed({.state = IntentState::pending}, effect(Kind::neither), old), "give up");
  const IntentStatus doubtful{.state = IntentState::pending, .attempt = 1, .doubtful = true};
  for (const auto kind : all_kinds) EXPECT_EQ(needed(doubtful, effect(kind), old), "ask an operator");
  EXPECT_EQ(needed(doubtful, effect(Kind::lookup), {.intended = 100h, .since_started = 100h, .since_doubtful = 47h}),
            "look up")
      << "the question is asked as long as the call would have been tried";
}

std::string resolved(IntentStatus status, Resolution resolution, bool ran_out = false) {
  const auto after = after_resolution(status, ran_out, resolution);
  return after ? text(*after) : "refused";
}

TEST(Intent, AnOperatorResolvesWhatIsOpenAndNoCallIsUnderWay) {
  struct Row {
    IntentStatus status;
    bool ran_out;
    const char* happened;
    const char* did_not_happen;
    const char* abandoned;
  };
  const Row rows[] = {
      {{.state = IntentState::ambiguous, .attempt = 3, .doubtful = true},
       false,
       "succeeded 3",
       "pending 3",
       "abandoned 3"},
      {{.state = IntentState::pending, .attempt = 1, .doubtful = true},
       false,
       "succeeded 1",
       "pending 1",
       "abandoned 1"},
      {{.state = IntentState::pending}, false, "succeeded 0", "pending 0", "abandoned 0"},
      {{.state = IntentState::started, .attempt = 1}, true, "succeeded 1", "pending 1", "abandoned 1"},
      {{.state = IntentState::started, .attempt = 1}, false, "refused", "refused", "refused"},
      {{.state = IntentState::succeeded, .attempt = 1, .settled = true}, false, "refused", "refused", "refused"},
      {{.state = IntentState::failed, .attempt = 1}, false, "refused", "refused", "refused"},
      {{.state = IntentState::abandoned, .attempt = 1, .settled = true}, false, "refused", "refused", "refused"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(resolved(row.status, Resolution::happened, row.ran_out), row.happened) << text(row.status);
    EXPECT_EQ(resolved(row.status, Resolution::did_not_happen, row.ran_out), row.did_not_happen) << text(row.status);
    EXPECT_EQ(resolved(row.status, Resolution::abandoned, row.ran_out), row.abandoned) << text(row.status);
  }
}

TEST(Intent, SeeingAContradictionUnflagsAndUnsettlesNothing) {
  for (const auto resolution : {Resolution::happened, Resolution::did_not_happen, Resolution::abandoned})
    EXPECT_EQ(resolved({.state = IntentState::failed, .attempt = 2, .settled = true, .flagged = true}, resolution),
              "failed 2 settled");
}

}  // namespace
}  // namespace semel::protocol
