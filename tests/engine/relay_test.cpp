// Publications from the commit to the confirmation, turn by turn.
#include "engine/relay.hpp"

#include <gtest/gtest.h>

#include "tests/engine/lane_stand.hpp"
#include "tests/engine/told_performer.hpp"

namespace semel::engine {
namespace {

using namespace std::chrono_literals;

class RelayStand : public LaneStand {
 protected:
  void SetUp() override {
    LaneStand::SetUp();
    after_commit_.outside.targets["events"] = {.options = {.name = "events"}, .performer = &performer_};
    after_commit_.outside.targets["jobs"] = {.options = {.name = "jobs"}, .performer = nullptr};
    handle(pay(), [](const Message& m, Work& work) {
      work.publish({.to = m.document()->at("/to") ? m.text("/to") : "events",
                    .body = "body of " + m.text("/id"),
                    .attributes = {{"X-Kind", "paid"}},
                    .order_key = m.document()->at("/order") ? m.text("/order") : ""});
      return Answer{};
    });
  }
  void TearDown() override {
    relay_.reset();
    LaneStand::TearDown();
  }
  Relay& relay() {
    if (!relay_) {
      relay_ = std::make_unique<Relay>(std::make_unique<FaultySession>(store_->open_session().value(), relay_faults_),
                                       options_, after_commit_, relay_bell_, 1);
    }
    return *relay_;
  }
  void turn() {
    relay();
    for (int i = 0; i < 20; ++i) {
      lane().turn();
      after_commit_.tell_relay();
      relay_->turn();
    }
  }
  void restart() {
    relay_.reset();
    performer_.begun.clear();
  }
  void every_lease_runs_out() { sql("UPDATE semel_outbox SET due_at = 0"); }
  std::int64_t waiting() { return store_->outbox_counts().value().waiting; }
  std::string sent() {
    std::string text;
    for (const auto& call : performer_.begun) text += (text.empty() ? "" : ", ") + call.request;
    return text;
  }
  void pay(const std::string& id, const std::string& order = "") {
    script_.deliver("{\"id\":\"" + id + "\",\"order\":\"" + order + "\"}");
  }
  using LaneStand::pay;

  ToldPerformer performer_;
  Doorbell relay_bell_;
  FaultySession::Faults relay_faults_;
  std::unique_ptr<Relay> relay_;
};

TEST_F(RelayStand, APublicationLeavesAfterItsConfirmationAndNotBefore) {
  pay("a");
  turn();
  ASSERT_EQ(performer_.begun.size(), 1u);
  EXPECT_EQ(performer_.begun[0].request, "body of a");
  EXPECT_EQ(performer_.begun[0].attributes.find("x-kind"), "paid");
  EXPECT_EQ(waiting(), 1);
  performer_.report_last(CallVerdict::succeeded);
  turn();
  EXPECT_EQ(waiting(), 0);
  EXPECT_EQ(performer_.begun.size(), 1u);
}

TEST_F(RelayStand, AnIdleRelayAsksTheStoreOnlyWhenItIsToldOrHasWaited) {
  relay().turn();
  relay_faults_.begin.push_back(error(Remedy::retry_later, Certainty::not_applied, ErrorCode::store_unreachable));
  for (int i = 0; i < 5; ++i) relay().turn();
  EXPECT_EQ(relay_faults_.begin.size(), 1u) << "no transaction was begun";
  after_commit_.tell_relay();
  relay().turn();
  EXPECT_EQ(relay_faults_.begin.size(), 0u);
}

TEST_F(RelayStand, AReplayPublishesNothingNew) {
  pay("a");
  pay("a");
  turn();
  pay("a");
  turn();
  EXPECT_EQ(performer_.begun.size(), 1u);
}

TEST_F(RelayStand, ACrashAfterTheSendSendsAgainUnderTheSameId) {
  pay("a");
  turn();
  const auto id = performer_.begun.at(0).id;
  restart();
  turn();
  EXPECT_EQ(performer_.begun.size(), 0u) << "its lease has not run out";
  every_lease_runs_out();
  turn();
  ASSERT_EQ(performer_.begun.size(), 1u);
  EXPECT_EQ(performer_.begun[0].id, id);
}

TEST_F(RelayStand, OfOneOrderKeyOneIsUnderWayAtATime) {
  pay("a1", "a");
  pay("a2", "a");
  pay("b1", "b");
  turn();
  EXPECT_EQ(sent(), "body of a1, body of b1");
  performer_.report(0, {.verdict = CallVerdict::succeeded});
  turn();
  EXPECT_EQ(sent(), "body of a1, body of b1, body of a2");
}

TEST_F(RelayStand, WhatFailsHoldsBackWhatIsBehindItAndNobodyElse) {
  pay("a1", "a");
  pay("a2", "a");
  pay("b1", "b");
  turn();
  performer_.report(0, {.verdict = CallVerdict::unknown});
  turn();
  pay("a3", "a");
  turn();
  EXPECT_EQ(sent(), "body of a1, body of b1");
  every_lease_runs_out();
  clock_.advance(1s);
  turn();
  EXPECT_EQ(sent(), "body of a1, body of b1, body of a1");
  performer_.report_last(CallVerdict::succeeded);
  turn();
  performer_.report_last(CallVerdict::succeeded);
  turn();
  EXPECT_EQ(sent(), "body of a1, body of b1, body of a1, body of a2, body of a3");
}

TEST_F(RelayStand, WhatIsTurnedAwayForGoodWaitsForAnOperator) {
  pay("a1", "a");
  pay("a2", "a");
  turn();
  performer_.report(0, {.verdict = CallVerdict::failed, .outcome = {.detail = "410 Gone"}});
  turn();
  every_lease_runs_out();
  turn();
  EXPECT_EQ(sent(), "body of a1");
  const auto held = store_->outbox({.held_only = true}).value();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].last_error, "410 Gone");
  EXPECT_TRUE(store_->release(held[0].id).value());
  turn();
  EXPECT_EQ(sent(), "body of a1, body of a1");
}

TEST_F(RelayStand, ALostCommitReplyOfTheConfirmationTakesItOutOnce) {
  pay("a");
  turn();
  relay_faults_.commit_after.push_back(error(Remedy::retry_later, Certainty::unknown, ErrorCode::commit_unknown));
  performer_.report_last(CallVerdict::succeeded);
  turn();
  clock_.advance(10s);
  turn();
  EXPECT_EQ(waiting(), 0);
  EXPECT_EQ(performer_.begun.size(), 1u);
}

TEST_F(RelayStand, AQueueInTheStoreNeedsNoRelay) {
  script_.deliver(R"({"id":"a","to":"jobs"})");
  turn();
  EXPECT_EQ(performer_.begun.size(), 0u);
  const auto taken = store_->take_queued("jobs", 10, 10s).value();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].body, "body of a");
}

TEST_F(RelayStand, StoppingItSleepsWhileASendIsUnderWay) {
  pay("a1", "a");
  turn();
  relay().end(Ending::stop);
  clock_.advance(2s);  // the outbox would be asked now
  relay().turn();
  const auto stopping = relay().turn();
  EXPECT_FALSE(stopping.worked);
  EXPECT_FALSE(stopping.finished);
  EXPECT_GT(stopping.wake_at, clock_.now());
}

TEST_F(RelayStand, StoppingGivesBackWhatWasNotSent) {
  pay("a1", "a");
  pay("a2", "a");
  turn();
  relay().end(Ending::stop);
  relay().turn();
  EXPECT_FALSE(relay().turn().finished);
  performer_.report_last(CallVerdict::succeeded);
  relay().turn();
  EXPECT_TRUE(relay().turn().finished);
  restart();
  turn();
  EXPECT_EQ(sent(), "body of a2");
}

}  // namespace
}  // namespace semel::engine
