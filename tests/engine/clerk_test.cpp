// Outside calls from intent to settled answer, turn by turn: real SQLite, a performer that says what the test tells it
// to.
#include <gtest/gtest.h>

#include <semel/resolve.hpp>

#include "engine/clerk.hpp"
#include "tests/engine/lane_stand.hpp"
#include "tests/engine/told_performer.hpp"

namespace semel::engine {
namespace {

using namespace std::chrono_literals;

class ClerkStand : public LaneStand {
 protected:
  void TearDown() override {
    clerk_.reset();
    LaneStand::TearDown();
  }

  static EffectOptions effect(ProviderPolicy::Kind kind) {
    return {.name = "charge",
            .policy = {.kind = kind, .key_lifetime = 24h, .margin = 1h, .visibility_delay = 0s},
            .delay_first = 100ms,
            .delay_max = 100ms};
  }
  using Settle = std::function<std::optional<Answer>(const Settled&, SettleWork<SqlSession>&)>;
  void know(EffectOptions options, Settle settle = {}) {
    Effect known{.options = std::move(options), .performer = &performer_, .settle = {}};
    if (settle)
      known.settle = [settle](const Settled& settled, Session& session, WorkLog& log) {
        SettleWork<SqlSession> work(dynamic_cast<SqlSession&>(session), log);
        return settle(settled, work);
      };
    const auto name = known.options.name;
    after_commit_.outside.effects.insert_or_assign(name, std::move(known));
  }
  /// One row, one charge, an answer for the time being.
  void handle_charges(std::string effect = "charge") {
    handle(pay(), [effect](const Message& m, Work& work) {
      work.execute("INSERT INTO effects (id, cents) VALUES ($1, $2)", m.text("/id"), m.at("/cents"));
      work.intend({.effect = effect, .request = m.text("/id"), .reference = m.text("/id")});
      return Answer{.status = 202, .body = "taken"};
    });
  }
  /// The settle step that most tests use.
  Settle row_and_answer() {
    return [](const Settled& settled, SettleWork<SqlSession>& work) {
      work.execute("INSERT INTO effects (id) VALUES ($1)",
                   std::string(intent_state_name(settled.intent().status.state)) + " " + settled.outcome().reference);
      return std::optional<Answer>(
          Answer{.status = settled.succeeded() ? 201 : 402, .body = settled.outcome().reference});
    };
  }

  Clerk& clerk() {
    if (!clerk_) {
      for (const auto& handler : handlers_) handler_options_[handler.options.name] = &handler.options;
      clerk_ = std::make_unique<Clerk>(std::make_unique<FaultySession>(store_->open_session().value(), clerk_faults_),
                                       handler_options_, options_, after_commit_, clerk_bell_, 1);
    }
    return *clerk_;
  }
  /// A process dies, and another one starts: what was only in memory is gone.
  void restart() {
    clerk_.reset();
    lane_.reset();
    performer_.begun.clear();
    after_commit_.handover.take();
  }
  /// Lane and clerk until neither has anything to do now.
  void turn() {
    clerk();
    for (int i = 0; i < 20; ++i) {
      lane().turn();
      clerk_->turn();
    }
  }
  void after(std::chrono::milliseconds time) {
    clock_.advance(time);
    turn();
  }
  void every_lease_runs_out() { sql("UPDATE semel_intents SET due_at = 0 WHERE state = 2"); }
  void everything_is_due() { sql("UPDATE semel_intents SET due_at = 0 WHERE due_at IS NOT NULL"); }

  void pay_order(Sender sender = Sender::message) { script_.deliver({R"({"id":"a","cents":7})", sender}); }
  std::vector<Intent> intents() { return store_->intents({}).value(); }
  std::string states() {
    std::string text;
    for (const auto& intent : intents()) {
      const auto& status = intent.status;
      text += (text.empty() ? "" : ", ") + intent.effect + " " + std::string(intent_state_name(status.state)) + " " +
              std::to_string(status.attempt) + (status.doubtful ? " doubtful" : "") +
              (status.settled ? " settled" : "") + (status.flagged ? " flagged" : "");
    }
    return text;
  }
  std::string history() {
    std::string text;
    for (const auto& event : store_->intent_history(intents().at(0).id).value())
      text += (text.empty() ? "" : ", ") + event.kind + " " + std::to_string(event.attempt);
    return text;
  }

  ToldPerformer performer_;
  Doorbell clerk_bell_;
  Handlers handler_options_;
  FaultySession::Faults clerk_faults_;
  std::unique_ptr<Clerk> clerk_;
};

using Kind = ProviderPolicy::Kind;

TEST_F(ClerkStand, ACallIsMadeOnceAfterTheCommitAndSettledWithItsOutcome) {
  know(effect(Kind::idempotent), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  EXPECT_EQ(script_.verdicts[0], "done 200") << "a message is acknowledged once its intent is durable";
  ASSERT_EQ(performer_.begun.size(), 1u);
  EXPECT_EQ(performer_.begun[0].request, "a");
  EXPECT_EQ(performer_.begun[0].idempotency_key, idempotency_key_of(intents().at(0).id));
  EXPECT_EQ(states(), "charge started 1");
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  turn();
  EXPECT_EQ(states(), "charge succeeded 1 settled");
  EXPECT_EQ(effects(), "a:7 succeeded ch_1");
  EXPECT_EQ(performer_.begun.size(), 1u);
}

TEST_F(ClerkStand, ACallerGetsTheSettledAnswerAndAReplayTheSame) {
  know(effect(Kind::idempotent), row_and_answer());
  handle_charges();
  pay_order(Sender::caller);
  turn();
  EXPECT_EQ(script_.verdicts[0], "") << "it waits, and no transaction and no thread waits with it";
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  turn();
  EXPECT_EQ(script_.verdicts[0], "done 201 ch_1");
  pay_order(Sender::caller);
  turn();
  EXPECT_EQ(script_.verdicts[1], "replay 201 ch_1");
  EXPECT_EQ(performer_.begun.size(), 1u);
}

TEST_F(ClerkStand, ADeclinedCardIsAnAnswerLikeAnyOther) {
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  pay_order(Sender::caller);
  turn();
  performer_.report_last(CallVerdict::failed, "declined");
  turn();
  EXPECT_EQ(script_.verdicts[0], "done 402 declined");
  pay_order(Sender::caller);
  turn();
  EXPECT_EQ(script_.verdicts[1], "replay 402 declined");
  EXPECT_EQ(performer_.begun.size(), 1u);
}

TEST_F(ClerkStand, WhoComesAgainMeanwhileIsToldSo) {
  know(effect(Kind::idempotent), row_and_answer());
  handle_charges();
  pay_order(Sender::caller);
  turn();
  pay_order(Sender::caller);
  pay_order(Sender::message);
  turn();
  EXPECT_EQ(script_.verdicts[1], "refused SEMEL-0109");
  EXPECT_EQ(script_.verdicts[2], "replay 200") << "what is left to do is durable: nobody needs the message";
  EXPECT_EQ(performer_.begun.size(), 1u);
}

TEST_F(ClerkStand, WhoWaitsTooLongIsToldWhatIsKnown) {
  for (const bool accepted : {true, false}) {
    handlers_.clear();
    auto options = pay();
    options.name = accepted ? "accepts" : "refuses";
    options.waiting = {.deadline = 5s, .accepted_when_late = accepted};
    know(effect(Kind::idempotent));
    handle(options, [](const Message&, Work& work) {
      work.intend({.effect = "charge"});
      return Answer{};
    });
    restart();
    pay_order(Sender::caller);
    turn();
    after(4'999ms);
    EXPECT_EQ(script_.verdicts.back(), "");
    after(1ms);
    EXPECT_EQ(script_.verdicts.back(),
              accepted ? "done 202 Content-Type Retry-After {\"state\":\"in_progress\"}" : "refused SEMEL-0109");
    handler_options_.clear();
    restart();
  }
}

TEST_F(ClerkStand, TheStartOfACallThatMustNotBeRepeatedIsCommittedBeforeIt) {
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  performer_.set_room(0);
  pay_order();
  turn();
  EXPECT_EQ(states(), "charge pending 0");
  performer_.set_room(1);
  turn();
  EXPECT_EQ(states(), "charge started 1");
  EXPECT_EQ(performer_.begun.size(), 1u);
}

TEST_F(ClerkStand, ADeadAttemptIsRepeatedWithTheSameKeyWhereTheProviderTakesOne) {
  know(effect(Kind::idempotent), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  const auto key = performer_.begun.at(0).idempotency_key;
  restart();
  turn();
  EXPECT_EQ(performer_.begun.size(), 0u) << "its lease has not run out";
  every_lease_runs_out();
  after(1s);
  ASSERT_EQ(performer_.begun.size(), 1u);
  EXPECT_EQ(performer_.begun[0].idempotency_key, key);
  EXPECT_EQ(performer_.begun[0].attempt, 2);
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  turn();
  EXPECT_EQ(states(), "charge succeeded 2 settled");
}

TEST_F(ClerkStand, ADeadAttemptIsLookedUpWhereTheProviderCanBeAsked) {
  know(effect(Kind::lookup), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  restart();
  every_lease_runs_out();
  after(1s);
  ASSERT_EQ(performer_.begun.size(), 1u);
  EXPECT_TRUE(performer_.begun[0].look_up);
  EXPECT_EQ(performer_.begun[0].reference, "a");
  performer_.report_last(CallVerdict::not_found);
  turn();
  after(1s);
  ASSERT_EQ(performer_.begun.size(), 2u);
  EXPECT_FALSE(performer_.begun[1].look_up) << "not found, and visible: it may run again";
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  turn();
  EXPECT_EQ(states(), "charge succeeded 2 settled");
}

/// The provider shows what it did after a minute. It is asked at once, and the process stands still with the answer.
TEST_F(ClerkStand, ALookupTellsOfTheMomentAtWhichItWasAsked) {
  auto options = effect(Kind::lookup);
  options.policy.visibility_delay = 60s;
  know(options, row_and_answer());
  handle_charges();
  pay_order();
  turn();
  restart();
  every_lease_runs_out();
  after(1s);
  ASSERT_EQ(performer_.begun.size(), 1u);
  performer_.report_last(CallVerdict::not_found);
  after(100s);
  EXPECT_EQ(states(), "charge pending 1 doubtful") << "when it was asked, nothing could be seen yet";
  everything_is_due();
  after(1s);
  ASSERT_EQ(performer_.begun.size(), 2u);
  EXPECT_TRUE(performer_.begun[1].look_up);
}

TEST_F(ClerkStand, ADeadAttemptIsAmbiguousWhereNothingMakesARepeatSafe) {
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  restart();
  every_lease_runs_out();
  after(1s);
  EXPECT_EQ(states(), "charge ambiguous 1 doubtful");
  after(1h);
  EXPECT_EQ(performer_.begun.size(), 0u) << "never called twice";
  pay_order(Sender::caller);
  turn();
  EXPECT_EQ(script_.verdicts.back(), "refused SEMEL-0110");
}

TEST_F(ClerkStand, ACrashBeforeTheCallIsKnownToHaveCalledNobody) {
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  pay_order();
  lane().turn();  // no clerk has had its turn
  EXPECT_EQ(states(), "charge pending 0");
  restart();
  turn();
  ASSERT_EQ(performer_.begun.size(), 1u) << "pending: it is made, and is no ambiguity";
}

TEST_F(ClerkStand, WhatWasCertainlyNotDoneIsTriedAgainAfterAPause) {
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  performer_.report(0, {.verdict = CallVerdict::not_done, .outcome = {}, .retry_after = 30s});
  turn();
  EXPECT_EQ(states(), "charge pending 1");
  everything_is_due();
  after(30s);
  ASSERT_EQ(performer_.begun.size(), 2u);
  EXPECT_EQ(performer_.begun[1].idempotency_key, performer_.begun[0].idempotency_key);
  performer_.report_last(CallVerdict::succeeded);
  turn();
  EXPECT_EQ(states(), "charge succeeded 2 settled");
}

/// Whoever waits gets what the provider said, while there is still somebody who waits.
TEST_F(ClerkStand, APauseBeyondTheTimeToTryIsNotWaitedForAndTheLastAnswerIsSettled) {
  auto hasty = effect(Kind::neither);
  hasty.give_up_after = 30s;
  know(hasty, [](const Settled& call, SettleWork<SqlSession>&) { return std::optional(call.outcome().answer); });
  handle_charges();
  pay_order(Sender::caller);
  turn();
  const CallOutcome busy{.answer = {.status = 503, .body = "busy"}, .detail = "asked to come later"};
  performer_.report(0, {.verdict = CallVerdict::not_done, .outcome = busy, .retry_after = 10s});
  turn();
  EXPECT_EQ(states(), "charge pending 1");
  everything_is_due();
  after(10s);
  performer_.report(1, {.verdict = CallVerdict::not_done, .outcome = busy, .retry_after = 30s});
  turn();
  EXPECT_EQ(states(), "charge failed 2 settled");
  EXPECT_EQ(script_.verdicts[0], "done 503 busy");
  EXPECT_EQ(history(), "started 1, not_done 1, started 2, given_up 2");
  EXPECT_EQ(intents().at(0).outcome->detail, "tried for long enough; it did not happen: asked to come later");
}

TEST_F(ClerkStand, WithoutAnyAnswerWhatIsGivenUpIsA504) {
  auto hasty = effect(Kind::neither);
  hasty.give_up_after = 30s;
  know(hasty, [](const Settled& call, SettleWork<SqlSession>&) { return std::optional(call.outcome().answer); });
  handle_charges();
  pay_order(Sender::caller);
  turn();
  performer_.report(0, {.verdict = CallVerdict::not_done, .outcome = {}, .retry_after = 30s});
  turn();
  EXPECT_EQ(states(), "charge failed 1 settled");
  EXPECT_EQ(script_.verdicts[0], "done 504");
}

TEST_F(ClerkStand, LeasesAreRenewedAtAThirdWhileACallIsUnderWay) {
  auto options = effect(Kind::neither);
  options.lease = 9s;
  know(options, row_and_answer());
  handle_charges();
  pay_order();
  turn();
  for (int i = 0; i < 5; ++i) {
    sql("UPDATE semel_intents SET due_at = due_at - 100000000");
    after(3s);
    EXPECT_EQ(sql("SELECT count(*) FROM semel_intents WHERE due_at > CAST(strftime('%s','now') AS INTEGER) * 1000")
                  .rows[0][0],
              Value(std::int64_t{1}));
  }
  EXPECT_EQ(states(), "charge started 1");
  EXPECT_EQ(performer_.begun.size(), 1u);
}

/// Renewing, it could wait until its key is forgotten, or hold on to the lease of who asks about the same attempt.
TEST_F(ClerkStand, WhatWasNotCalledYetIsGivenBackAndNotRenewed) {
  auto options = effect(Kind::idempotent);
  options.limits.calls_max = 1;
  know(options, row_and_answer());
  handle_charges();
  pay_order();
  script_.deliver({R"({"id":"b","cents":7})", Sender::message});
  turn();
  ASSERT_EQ(performer_.begun.size(), 1u);
  EXPECT_EQ(states(), "charge started 1, charge started 1");
  for (int i = 0; i < 3; ++i) after(5s);
  const auto count = sql("SELECT count(*) FROM semel_intent_events WHERE kind = 'not_done'").rows[0][0];
  EXPECT_EQ(count, Value(std::int64_t{1})) << states();
  EXPECT_EQ(performer_.begun.size(), 1u);
}

/// Frozen past its lease, taken for dead, and woken: what the zombie says changes nothing that was settled.
TEST_F(ClerkStand, AZombiesOutcomeIsEvidence) {
  know(effect(Kind::lookup), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  // Another process looked it up, did not find it, made it again and settled.
  const auto id = intents().at(0).id.hex;
  sql("UPDATE semel_intents SET state = 3, attempt = 2, settled = 1");
  performer_.report(0, {.verdict = CallVerdict::succeeded, .outcome = {.reference = "ch_other"}});
  turn();
  EXPECT_EQ(intents().at(0).status.state, IntentState::succeeded);
  EXPECT_EQ(intents().at(0).status.attempt, 2);
  EXPECT_NE(history().find("late 1"), std::string::npos) << history();
  EXPECT_EQ(effects(), "a:7") << "its settle step does not run";
}

/// An operator is asked which one is right; the callers' answer is the one that was settled.
TEST_F(ClerkStand, WhatContradictsASettledOutcomeTakesNobodysAnswer) {
  know(effect(Kind::lookup), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  sql("UPDATE semel_intents SET state = 4, attempt = 2, settled = 1");
  performer_.report(0, {.verdict = CallVerdict::succeeded, .outcome = {.reference = "ch_other"}});
  turn();
  EXPECT_EQ(states(), "charge failed 2 settled flagged");
  pay_order(Sender::caller);
  turn();
  EXPECT_EQ(script_.verdicts.back(), "replay 202 taken");
}

TEST_F(ClerkStand, WhatIsAboutToBeHandedOverIsNotTakenFromTheLedger) {
  // The lane has committed and not handed over; the clerk, on its own thread, asks the ledger at that moment.
  struct BetweenThem : Probe {
    void reached(Step step) override {
      if (step == Step::committed && clerk) clerk->turn();
    }
    Clerk* clerk = nullptr;
  } probe;
  options_.probe = &probe;
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  pay_order();
  probe.clerk = &clerk();
  lane().turn();
  EXPECT_TRUE(performer_.begun.empty());
  turn();
  ASSERT_EQ(performer_.begun.size(), 1u);
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  turn();
  EXPECT_EQ(states(), "charge succeeded 1 settled");
}

TEST_F(ClerkStand, WhatIsHandedOverWhileItsCallIsUnderWayChangesNothing) {
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  pay_order();
  clerk();
  lane().turn();
  auto late = after_commit_.handover.take();
  turn();
  ASSERT_EQ(performer_.begun.size(), 1u) << "found in the ledger";
  after_commit_.handover.put(std::move(late));
  turn();
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  turn();
  EXPECT_EQ(performer_.begun.size(), 1u);
  EXPECT_EQ(states(), "charge succeeded 1 settled");
}

/// Frozen between the committed start and the call, past the lease: whoever took it over may have made the call.
TEST_F(ClerkStand, WhoWakesPastItsLeaseCallsNobody) {
  know(effect(Kind::lookup), row_and_answer());
  handle_charges();
  pay_order();
  clerk();
  lane().turn();
  EXPECT_EQ(states(), "charge started 1");
  // Another process asks whether attempt 1 was made: the attempt is the same, and a renewal of it would succeed.
  sql("UPDATE semel_intents SET doubtful = 1");
  clock_.advance(15s);
  clerk_->turn();
  clerk_->turn();
  EXPECT_TRUE(performer_.begun.empty());
  EXPECT_NE(history().find("not_done 1"), std::string::npos) << history();
}

TEST_F(ClerkStand, WhoFreezesInItsOwnTurnPastItsLeaseCallsNobody) {
  struct Freezing : Probe {
    void reached(Step step) override {
      if (step == Step::started && std::exchange(freezes, false)) clock->advance(15s);
    }
    ManualClock* clock = nullptr;
    bool freezes = true;
  } probe;
  probe.clock = &clock_;
  options_.probe = &probe;
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  pay_order();
  clerk();
  lane().turn();
  clerk_->turn();
  EXPECT_FALSE(probe.freezes);
  EXPECT_TRUE(performer_.begun.empty());
  turn();
  EXPECT_EQ(states(), "charge pending 1") << "it is known that nobody was called";
  everything_is_due();
  after(1s);
  EXPECT_EQ(performer_.begun.size(), 1u) << "the next attempt";
}

TEST_F(ClerkStand, ARenewalThatWasNotCommittedIsNone) {
  auto options = effect(Kind::lookup);
  options.lease = 9s;
  know(options, row_and_answer());
  handle_charges();
  performer_.set_room(0);
  pay_order();
  turn();
  EXPECT_EQ(states(), "charge started 1");
  bool away = true;
  clerk_faults_.commit_if = [&](SqlSession&) -> std::optional<Error> {
    if (!away) return std::nullopt;
    return error(Remedy::retry_later, Certainty::not_applied, ErrorCode::store_unreachable);
  };
  after(3s);
  after(3s);
  away = false;
  performer_.set_room(1);
  clock_.advance(4s);
  clerk_->turn();
  EXPECT_TRUE(performer_.begun.empty()) << "somebody else may have asked for it since";
  turn();
  EXPECT_NE(history().find("not_done 1"), std::string::npos) << history();
}

TEST_F(ClerkStand, ASettleStepThatFailsLosesNoOutcomeAndRepeatsNoCall) {
  bool broken = true;
  know(effect(Kind::neither), [&](const Settled& settled, SettleWork<SqlSession>& work) -> std::optional<Answer> {
    work.execute("INSERT INTO effects (id) VALUES ($1)", settled.outcome().reference);
    if (broken) throw std::runtime_error("broken");
    return Answer{.status = 201};
  });
  handle_charges();
  pay_order();
  turn();
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  turn();
  EXPECT_EQ(states(), "charge succeeded 1");
  EXPECT_EQ(effects(), "a:7");
  broken = false;
  everything_is_due();
  after(1h);
  EXPECT_EQ(states(), "charge succeeded 1 settled");
  EXPECT_EQ(effects(), "a:7 ch_1");
  EXPECT_EQ(performer_.begun.size(), 1u);
}

TEST_F(ClerkStand, ASettleStepThatGoesOnFailingIsFlaggedAndItsCallersAreToldToComeLater) {
  bool broken = true;
  know(effect(Kind::neither), [&](const Settled&, SettleWork<SqlSession>&) -> std::optional<Answer> {
    if (broken) throw std::runtime_error("broken");
    return Answer{.status = 201};
  });
  handle_charges();
  pay_order();
  turn();
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  for (int i = 0; i < 10; ++i) {
    everything_is_due();
    after(1h);
  }
  EXPECT_EQ(states(), "charge succeeded 1 flagged");
  pay_order(Sender::caller);
  turn();
  EXPECT_EQ(script_.verdicts.back(), "refused SEMEL-0109") << "it did happen: not finished is not unknown";
  broken = false;
  for (int i = 0; i < 2; ++i) {  // a failure that was met is written down first
    everything_is_due();
    after(1h);
  }
  EXPECT_EQ(states(), "charge succeeded 1 settled");
  pay_order(Sender::caller);
  turn();
  EXPECT_EQ(script_.verdicts.back(), "replay 201");
}

TEST_F(ClerkStand, OneSettleStepThatFailsKeepsNobodyElseWaiting) {
  know(effect(Kind::neither), [&](const Settled& settled, SettleWork<SqlSession>& work) -> std::optional<Answer> {
    work.execute("INSERT INTO effects (id) VALUES ($1)", settled.outcome().reference);
    if (settled.outcome().reference == "bad") throw std::runtime_error("broken");
    return std::nullopt;
  });
  handle_charges();
  script_.deliver(R"({"id":"a"})");
  script_.deliver(R"({"id":"b"})");
  script_.deliver(R"({"id":"c"})");
  turn();
  ASSERT_EQ(performer_.begun.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    performer_.report(i, {.verdict = CallVerdict::succeeded,
                          .outcome = {.reference = performer_.begun[i].request == "b" ? "bad" : "good"}});
  turn();
  EXPECT_EQ(effects(), "a b c good good");
  std::size_t settled = 0;
  for (const auto& intent : intents()) settled += intent.status.settled;
  EXPECT_EQ(settled, 2u);
}

/// The same rule as for a handler: what is missing for its own statement is nobody else's.
TEST_F(ClerkStand, ASettleStepThatMayNotWriteKeepsNobodyElseWaiting) {
  know(effect(Kind::neither), [](const Settled& settled, SettleWork<SqlSession>&) -> std::optional<Answer> {
    if (settled.outcome().reference == "bad")
      throw Failure({Remedy::ask_operator, Certainty::not_applied, ErrorCode::permission_denied, "no right"});
    return std::nullopt;
  });
  handle_charges();
  script_.deliver(R"({"id":"a"})");
  script_.deliver(R"({"id":"b"})");
  turn();
  ASSERT_EQ(performer_.begun.size(), 2u);
  performer_.report(0, {.verdict = CallVerdict::succeeded, .outcome = {.reference = "bad"}});
  performer_.report(1, {.verdict = CallVerdict::succeeded, .outcome = {.reference = "good"}});
  turn();
  EXPECT_EQ(sql("SELECT count(*) FROM semel_intents WHERE state = 3").rows[0][0], Value(std::int64_t{2}));
  EXPECT_EQ(sql("SELECT count(*) FROM semel_intents WHERE settled = 1").rows[0][0], Value(std::int64_t{1}));
}

TEST_F(ClerkStand, WhereNobodyCanBeToldToBeAtFaultEachHasItsTurn) {
  auto one_at_a_time = effect(Kind::neither);
  one_at_a_time.limits.calls_max = 1;
  know(one_at_a_time);
  handle_charges();
  for (const auto* body : {R"({"id":"a","cents":7})", R"({"id":"b","cents":7})", R"({"id":"c","cents":7})"})
    script_.deliver({body, Sender::message});
  lane().turn();
  restart();
  clerk_faults_.commit_before = {error(Remedy::fix_call, Certainty::not_applied, ErrorCode::constraint_violated)};
  for (int i = 0; i < 30; ++i) {
    // The one that has room is the last by its id; the others are put off, again and again.
    sql("UPDATE semel_intents SET due_at = (id < (SELECT max(id) FROM semel_intents)) WHERE state = 1");
    clock_.advance(100ms);
    clerk().turn();
  }
  EXPECT_EQ(performer_.begun.size(), 1u) << states();
}

TEST_F(ClerkStand, ALostCommitReplyOfAnOutcomeSettlesOnce) {
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  clerk_faults_.commit_after.push_back(error(Remedy::retry_later, Certainty::unknown, ErrorCode::commit_unknown));
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  turn();
  after(10s);
  EXPECT_EQ(states(), "charge succeeded 1 settled");
  EXPECT_EQ(effects(), "a:7 succeeded ch_1");
}

TEST_F(ClerkStand, AStoreThatIsAwayLosesNoOutcome) {
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  for (int i = 0; i < 3; ++i)
    clerk_faults_.begin.push_back(error(Remedy::retry_later, Certainty::not_applied, ErrorCode::store_unreachable));
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  turn();
  EXPECT_EQ(states(), "charge started 1");
  for (int i = 0; i < 5; ++i) after(10s);
  EXPECT_EQ(states(), "charge succeeded 1 settled");
}

/// authorise → capture; the capture fails for good, so the authorisation is voided.
class SagaStand : public ClerkStand {
 protected:
  void SetUp() override {
    ClerkStand::SetUp();
    auto step = effect(Kind::idempotent);
    step.name = "authorise";
    know(step, [](const Settled& settled, SettleWork<SqlSession>& work) -> std::optional<Answer> {
      if (!settled.succeeded()) return Answer{.status = 402};
      work.compensate_with({.effect = "void", .request = settled.outcome().reference});
      work.intend({.effect = "reserve", .compensation = Compensation{.effect = "release", .request = "r"}});
      return std::nullopt;
    });
    step.name = "reserve";
    know(step, [](const Settled& settled, SettleWork<SqlSession>& work) -> std::optional<Answer> {
      if (settled.succeeded()) work.intend({.effect = "capture"});
      return std::nullopt;
    });
    step.name = "capture";
    know(step, [](const Settled& settled, SettleWork<SqlSession>&) {
      return std::optional<Answer>(Answer{.status = settled.succeeded() ? 201 : 409, .body = "captured?"});
    });
    for (const auto* name : {"void", "release"}) {
      step.name = name;
      know(step);
    }
    handle_charges("authorise");
  }
  std::string last_call() { return performer_.begun.empty() ? "" : performer_.begun.back().effect; }
  void step(CallVerdict verdict, std::string reference = "") {
    performer_.report_last(verdict, std::move(reference));
    turn();
  }
};

TEST_F(SagaStand, AChainGoesOnFromSettleStepToSettleStep) {
  pay_order(Sender::caller);
  turn();
  step(CallVerdict::succeeded, "auth_1");
  EXPECT_EQ(last_call(), "reserve");
  EXPECT_EQ(script_.verdicts[0], "") << "the chain is not at its end";
  step(CallVerdict::succeeded);
  EXPECT_EQ(last_call(), "capture");
  step(CallVerdict::succeeded);
  EXPECT_EQ(script_.verdicts[0], "done 201 captured?");
  EXPECT_EQ(performer_.begun.size(), 3u) << "nothing is undone";
}

TEST_F(SagaStand, AStepThatFailsForGoodUndoesThoseBeforeItInReverse) {
  pay_order(Sender::caller);
  turn();
  step(CallVerdict::succeeded, "auth_1");
  step(CallVerdict::succeeded);
  step(CallVerdict::failed);
  EXPECT_EQ(last_call(), "release");
  EXPECT_EQ(script_.verdicts[0], "") << "not before everything is undone";
  step(CallVerdict::succeeded);
  EXPECT_EQ(last_call(), "void");
  EXPECT_EQ(performer_.begun.back().request, "auth_1");
  step(CallVerdict::succeeded);
  EXPECT_EQ(script_.verdicts[0], "done 409 captured?");
  EXPECT_EQ(performer_.begun.size(), 5u);
  std::set<std::string> keys;
  for (const auto& call : performer_.begun) EXPECT_TRUE(keys.insert(call.idempotency_key).second) << "a key for each";
}

TEST_F(SagaStand, ACompensationThatFailsIsFlaggedAndTheNextOneRunsNevertheless) {
  pay_order();
  turn();
  step(CallVerdict::succeeded, "auth_1");
  step(CallVerdict::succeeded);
  step(CallVerdict::failed);
  step(CallVerdict::failed);
  EXPECT_EQ(last_call(), "void");
  step(CallVerdict::succeeded);
  EXPECT_NE(states().find("release failed 1 settled flagged"), std::string::npos) << states();
  pay_order(Sender::caller);
  turn();
  EXPECT_EQ(script_.verdicts.back(), "replay 409 captured?") << "an operator is asked, and callers are answered";
}

TEST_F(SagaStand, AFirstStepThatFailsUndoesNothing) {
  pay_order(Sender::caller);
  turn();
  step(CallVerdict::failed);
  EXPECT_EQ(script_.verdicts[0], "done 402");
  EXPECT_EQ(performer_.begun.size(), 1u);
}

TEST_F(ClerkStand, AKeyWhoseSettleStepLetsGoOfItIsFreshAgain) {
  know(effect(Kind::neither), [](const Settled& settled, SettleWork<SqlSession>& work) -> std::optional<Answer> {
    if (!settled.succeeded()) work.forget();
    return Answer{.status = settled.succeeded() ? 201 : 401};
  });
  handle_charges();
  pay_order(Sender::caller);
  turn();
  performer_.report_last(CallVerdict::refused);
  turn();
  EXPECT_EQ(script_.verdicts[0], "done 401");
  pay_order(Sender::caller);
  turn();
  ASSERT_EQ(performer_.begun.size(), 2u);
  performer_.report_last(CallVerdict::succeeded);
  turn();
  EXPECT_EQ(script_.verdicts[1], "done 201");
  pay_order(Sender::caller);
  turn();
  EXPECT_EQ(script_.verdicts[2], "replay 201");
  EXPECT_EQ(performer_.begun.size(), 2u);
}

TEST_F(ClerkStand, AStoredOutcomeHoldsNoCookiesAndWhoWaitsGetsThem) {
  know(effect(Kind::neither), [](const Settled& settled, SettleWork<SqlSession>&) -> std::optional<Answer> {
    return settled.outcome().answer;
  });
  handle_charges();
  pay_order(Sender::caller);
  turn();
  performer_.report(0, {.verdict = CallVerdict::succeeded,
                        .outcome = {.answer = {.status = 201,
                                               .headers = {{"Location", "/charges/1"}, {"Set-Cookie", "s=1"}},
                                               .body = "ok"}}});
  turn();
  EXPECT_EQ(script_.verdicts[0], "done 201 Location Set-Cookie ok");
  EXPECT_FALSE(intents().at(0).outcome->answer.headers.find("set-cookie"));
  for (const auto& event : store_->intent_history(intents().at(0).id).value()) {
    const auto evidence = event.evidence.value_or(CallOutcome{});
    EXPECT_FALSE(evidence.answer.headers.find("set-cookie"));
  }
  pay_order(Sender::caller);
  turn();
  EXPECT_EQ(script_.verdicts[1], "replay 201 Location ok");
}

TEST_F(ClerkStand, AnAnswerThatIsTooLongToKeepIsGivenOnceAndThenSaidToBeGone) {
  know(effect(Kind::neither), [](const Settled&, SettleWork<SqlSession>&) -> std::optional<Answer> {
    return Answer{.status = 201, .body = std::string(Answer::body_size_max + 1, 'x')};
  });
  handle_charges();
  pay_order(Sender::caller);
  turn();
  performer_.report_last(CallVerdict::succeeded);
  turn();
  EXPECT_EQ(script_.verdicts[0].substr(0, 10), "done 201 x");
  pay_order(Sender::caller);
  turn();
  EXPECT_EQ(script_.verdicts[1], "replay 200 (not kept)");
}

TEST_F(ClerkStand, SeveralIntentsOfOneMessageAreAllSettledBeforeTheAnswer) {
  know(effect(Kind::idempotent), row_and_answer());
  handle(pay(), [](const Message&, Work& work) {
    work.intend({.effect = "charge", .request = "1"});
    work.intend({.effect = "charge", .request = "2"});
    return Answer{.status = 200};
  });
  pay_order(Sender::caller);
  turn();
  ASSERT_EQ(performer_.begun.size(), 2u);
  EXPECT_NE(performer_.begun[0].idempotency_key, performer_.begun[1].idempotency_key);
  performer_.report(0, {.verdict = CallVerdict::succeeded, .outcome = {.reference = "x"}});
  turn();
  EXPECT_EQ(script_.verdicts[0], "");
  performer_.report(1, {.verdict = CallVerdict::succeeded, .outcome = {.reference = "y"}});
  turn();
  EXPECT_EQ(script_.verdicts[0], "done 201 y");
}

TEST_F(ClerkStand, AnEffectThatNobodyKnowsFailsItsMessageAndCallsNobody) {
  know(effect(Kind::idempotent));
  handle_charges("charge-crad");
  traits_.redelivers = false;
  pay_order();
  run();
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters()[0].code, ErrorCode::effect_unknown);
  EXPECT_EQ(effects(), "");
}

TEST_F(ClerkStand, StoppingGivesBackWhatWasNotCalledAndWaitsForWhatWas) {
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  ASSERT_EQ(performer_.begun.size(), 1u);
  clerk().end(Ending::stop);
  EXPECT_FALSE(clerk().turn().finished);
  performer_.report_last(CallVerdict::succeeded);
  clerk().turn();
  EXPECT_TRUE(clerk().turn().finished);
  EXPECT_EQ(states(), "charge succeeded 1 settled");
}

TEST_F(ClerkStand, StoppingItSleepsWhileACallIsUnderWay) {
  know(effect(Kind::neither), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  clerk().end(Ending::stop);
  clock_.advance(6s);  // its lease would be renewed now
  const auto stopping = clerk().turn();
  EXPECT_FALSE(stopping.worked);
  EXPECT_FALSE(stopping.finished);
  EXPECT_GT(stopping.wake_at, clock_.now());
}

TEST_F(ClerkStand, DrainingEndsOnceEverythingThatItKnowsOfIsDoneOrPatienceIsOut) {
  know(effect(Kind::idempotent), row_and_answer());
  handle_charges();
  script_.deliver(R"({"id":"a","cents":7})");
  script_.deliver(R"({"id":"b","cents":8})");
  turn();
  clerk_->end(Ending::drain);
  performer_.report(0, {.verdict = CallVerdict::not_done, .retry_after = 500ms});
  performer_.report(1, {.verdict = CallVerdict::not_done, .retry_after = 5s});
  EXPECT_FALSE(clerk_->turn().finished);
  // The first one's pause is over.
  sql("UPDATE semel_intents SET due_at = 0 WHERE number = (SELECT min(number) FROM semel_intents)");
  clock_.advance(600ms);
  clerk_->turn();
  ASSERT_EQ(performer_.begun.size(), 3u);
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  for (int i = 0; i < 3; ++i) {
    clock_.advance(1s);
    EXPECT_FALSE(clerk_->turn().finished) << "the second one's is not";
  }
  everything_is_due();
  clock_.advance(1500ms);
  EXPECT_FALSE(clerk_->turn().finished);
  performer_.report_last(CallVerdict::succeeded, "ch_2");
  clerk_->turn();
  clock_.advance(1s);
  EXPECT_TRUE(clerk_->turn().finished);
  EXPECT_EQ(states(), "charge succeeded 2 settled, charge succeeded 2 settled");
}

TEST_F(ClerkStand, ACrashLeavesNothingThatIsForgotten) {
  know(effect(Kind::idempotent), row_and_answer());
  handle_charges();
  for (int i = 0; i < 200; ++i) script_.deliver("{\"id\":\"k" + std::to_string(i) + "\"}");
  turn();
  restart();
  every_lease_runs_out();
  for (int i = 0; i < 20; ++i) {
    sql("UPDATE semel_intents SET due_at = 0 WHERE state = 1");
    after(1s);
    for (std::size_t n = 0; n < performer_.begun.size(); ++n)
      performer_.report(n, {.verdict = CallVerdict::succeeded, .outcome = {.reference = performer_.begun[n].request}});
    performer_.begun.clear();
    turn();
  }
  EXPECT_EQ(store_->intent_counts().value().by_state.size(), 0u);
  EXPECT_EQ(sql("SELECT count(*) FROM semel_intents WHERE state = 3 AND settled = 1").rows[0][0],
            Value(std::int64_t{200}));
}

class Resolving : public ClerkStand {
 protected:
  /// One intent that is ambiguous.
  void leave_ambiguous() {
    know(effect(Kind::neither), row_and_answer());
    handle_charges();
    pay_order();
    turn();
    performer_.report_last(CallVerdict::unknown);
    turn();
    ASSERT_EQ(states(), "charge ambiguous 1 doubtful");
  }
  Result<IntentStatus> resolve_first(Resolution resolution, std::string reference = "") {
    return resolve(*store_, {.id = intents().at(0).id,
                             .resolution = resolution,
                             .reference = std::move(reference),
                             .by = "ann",
                             .why = "asked the bank"});
  }
  static std::string refusal(const Result<IntentStatus>& refused) {
    return refused ? "" : code_name(refused.error().code);
  }
};

TEST_F(Resolving, WhatHappenedIsSettledWithTheReferenceThatTheOperatorFound) {
  leave_ambiguous();
  EXPECT_EQ(resolve_first(Resolution::happened, "ch_9").value().state, IntentState::succeeded);
  after(1s);
  EXPECT_EQ(states(), "charge succeeded 1 settled");
  EXPECT_EQ(effects(), "a:7 succeeded ch_9");
  EXPECT_EQ(performer_.begun.size(), 1u);
  const auto history = store_->intent_history(intents().at(0).id).value();
  const auto event = std::find_if(history.begin(), history.end(), [](const auto& e) { return e.kind == "resolved"; });
  ASSERT_NE(event, history.end());
  EXPECT_EQ(event->by + ": " + event->detail, "ann: happened: asked the bank");
  EXPECT_EQ(event->evidence->reference, "ch_9");
}

TEST_F(Resolving, WhatDidNotHappenRunsAgainWithTheSameKey) {
  leave_ambiguous();
  EXPECT_EQ(resolve_first(Resolution::did_not_happen).value().state, IntentState::pending);
  after(1s);
  ASSERT_EQ(performer_.begun.size(), 2u);
  EXPECT_EQ(performer_.begun[1].idempotency_key, performer_.begun[0].idempotency_key);
}

TEST_F(Resolving, WhatIsAbandonedIsSettledAndNeverRunsAgain) {
  leave_ambiguous();
  ASSERT_TRUE(resolve_first(Resolution::abandoned));
  after(1h);
  EXPECT_EQ(states(), "charge abandoned 1 settled");
  EXPECT_EQ(effects(), "a:7 abandoned ");
  EXPECT_EQ(performer_.begun.size(), 1u);
}

TEST_F(Resolving, TakesNoWordAboutWhatIsUnderWayOrKnownOrNotThere) {
  know(effect(Kind::idempotent), row_and_answer());
  handle_charges();
  pay_order();
  turn();
  EXPECT_EQ(refusal(resolve_first(Resolution::did_not_happen)), "SEMEL-0506") << "it is under way";
  performer_.report_last(CallVerdict::succeeded, "ch_1");
  turn();
  EXPECT_EQ(refusal(resolve_first(Resolution::did_not_happen)), "SEMEL-0506") << "it is known";
  EXPECT_EQ(states(), "charge succeeded 1 settled");
  ResolutionRequest request{.id = {std::string(32, 'f')}, .by = "ann", .why = "x"};
  EXPECT_EQ(refusal(resolve(*store_, request)), "SEMEL-0506") << "it is not there";
  request.why = "";
  EXPECT_EQ(refusal(resolve(*store_, request)), "SEMEL-0506") << "it says not why";
}

TEST_F(Resolving, ASeenContradictionTakesTheFlagOffAndKeepsWhatWasSettled) {
  leave_ambiguous();
  ASSERT_TRUE(resolve_first(Resolution::abandoned));
  after(1s);
  sql("UPDATE semel_intents SET flagged = 1");
  ASSERT_TRUE(resolve_first(Resolution::happened, "ch_1"));
  EXPECT_EQ(states(), "charge abandoned 1 settled") << "the flag is off; what was settled stands";
  EXPECT_EQ(intents().at(0).outcome.value_or(CallOutcome{}).reference, "");
}

}  // namespace
}  // namespace semel::engine
