// What the engine promises of a message, shown on a real SQLite store with a clock set by hand.

#include "tests/engine/lane_stand.hpp"

namespace semel::engine {
namespace {

using enum Remedy;
using enum Certainty;

// ---- one message, one effect

TEST_F(LaneStand, SameMessageTwiceInARowHasOneEffectAndTheFirstAnswer) {
  handle_payments();
  script_.deliver(R"({"id":"a","cents":1})");
  run();
  script_.deliver(R"({"cents":1.0,"id":"a"})");
  run();
  EXPECT_EQ(effects(), "a:1");
  EXPECT_EQ(script_.verdicts, (std::vector<std::string>{"done 201 run 1", "replay 201 run 1"}));
}

TEST_F(LaneStand, FiftyDeliveriesOfOneMessageInOneBatchHaveOneEffect) {
  handle_payments();
  for (int i = 0; i < 50; ++i) script_.deliver(R"({"id":"a","cents":1})");
  run();
  EXPECT_EQ(effects(), "a:1");
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(script_.verdicts[0], "done 201 run 1");
  for (std::size_t i = 1; i < 50; ++i) EXPECT_EQ(script_.verdicts[i], "replay 201 run 1");
}

TEST_F(LaneStand, TheSameEventHasOneEffectInEachHandler) {
  handle_payments();
  auto second = pay();
  second.name = "mail";
  handle_payments(second);
  script_.deliver(R"({"id":"a","cents":1})");
  script_.deliver(R"({"id":"a","cents":1})");
  run();
  EXPECT_EQ(effects(), "a:1 a:1");
  EXPECT_EQ(lane().summary().fresh, 2u);
  EXPECT_EQ(lane().summary().replays, 2u);
}

TEST_F(LaneStand, AnAnswerThatIsNotKeptIsSaidToBeGoneAndNothingRuns) {
  auto options = pay();
  options.keep_answer = false;
  handle_payments(options);
  script_.deliver(R"({"id":"a","cents":1})");
  run();
  script_.deliver(R"({"id":"a","cents":1})");
  run();
  EXPECT_EQ(script_.verdicts, (std::vector<std::string>{"done 201 run 1", "replay 200 (not kept)"}));
  EXPECT_EQ(runs_, 1);
}

TEST_F(LaneStand, AnAnswerTooLongToKeepIsGivenOnceAndTheEffectStaysOne) {
  handle(pay(), [&](const Message& m, Work& work) {
    work.execute("INSERT INTO effects (id) VALUES ($1)", m.text("/id"));
    return Answer{.status = 200, .body = std::string(Answer::body_size_max + 1, 'x')};
  });
  script_.deliver(R"({"id":"a"})");
  run();
  script_.deliver(R"({"id":"a"})");
  run();
  EXPECT_EQ(effects(), "a");
  EXPECT_EQ(script_.verdicts[1], "replay 200 (not kept)");
}

TEST_F(LaneStand, CredentialsInAnAnswerAreNotKept) {
  handle(pay(), [&](const Message&, Work&) {
    Answer answer{.status = 201, .body = "made"};
    answer.headers.add("Set-Cookie", "session=secret; expires=Mon, 21 Oct 2030 07:28:00 GMT");
    answer.headers.add("Location", "/payments/a");
    return answer;
  });
  script_.deliver(R"({"id":"a"})");
  run();
  const auto record = store_->find_record({{"pay", ""}, Key::from_bytes("a").value()}).value().value();
  EXPECT_EQ(record.answer->headers.find("location"), "/payments/a");
  EXPECT_FALSE(record.answer->headers.find("set-cookie").has_value());
}

TEST_F(LaneStand, AReplayWithinOneBatchIsAnsweredAsALaterOneIs) {
  auto keeping = pay();
  keeping.from = {"script"};
  handle(keeping, [&](const Message& m, Work&) {
    Answer answer{.status = 201};
    answer.headers.add("Set-Cookie", "session=secret");
    answer.headers.add("Location", "/payments/a");
    if (m.text("/id") == "long") answer.body.assign(Answer::body_size_max + 1, 'x');
    return answer;
  });
  auto forgetful = pay();
  forgetful.name = "forgetful";
  forgetful.from = {"other"};
  forgetful.keep_answer = false;
  handle_payments(forgetful);
  for (const auto* body : {R"({"id":"a"})", R"({"id":"long"})"})
    for (int i = 0; i < 2; ++i) script_.deliver(body);
  for (int i = 0; i < 2; ++i) script_.deliver(Script::Line{.body = R"({"id":"a"})", .source = "other"});
  run();
  EXPECT_EQ(script_.verdicts[0], "done 201 Set-Cookie Location");
  EXPECT_EQ(script_.verdicts[1], "replay 201 Location");
  EXPECT_EQ(script_.verdicts[3], "replay 200 (not kept)");
  EXPECT_EQ(script_.verdicts[5], "replay 200 (not kept)");
}

// ---- what is no duplicate

TEST_F(LaneStand, AConflictIsQuarantinedWithBothFingerprintsAndNeverRun) {
  handle_payments();
  script_.deliver(R"({"id":"a","cents":1})");
  run();
  script_.deliver(R"({"id":"a","cents":1000})");
  script_.deliver(R"({"id":"a","cents":1000})");  // delivered again: the same letter
  run();
  EXPECT_EQ(effects(), "a:1");
  EXPECT_EQ(script_.verdicts[1], "set aside SEMEL-0105");
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters()[0].reason, SetAsideReason::conflict);
  EXPECT_EQ(letters()[0].times, 2);
  EXPECT_FALSE(letters()[0].fingerprint.empty());
  EXPECT_FALSE(letters()[0].recorded_fingerprint.empty());
  EXPECT_NE(letters()[0].fingerprint, letters()[0].recorded_fingerprint);
}

TEST_F(LaneStand, AConflictWithinOneBatchIsSeenToo) {
  handle_payments();
  script_.deliver(R"({"id":"a","cents":1})");
  script_.deliver(R"({"id":"a","cents":2})");
  run();
  EXPECT_EQ(effects(), "a:1");
  EXPECT_EQ(script_.verdicts[1], "set aside SEMEL-0105");
}

TEST_F(LaneStand, ACallersConflictIsRefusedAndKeepsNothing) {
  handle_payments();
  script_.deliver(R"({"id":"a","cents":1})");
  run();
  script_.deliver({R"({"id":"a","cents":2})", Sender::caller});
  run();
  EXPECT_EQ(script_.verdicts[1], "refused SEMEL-0105");
  EXPECT_TRUE(letters().empty());
}

// ---- what cannot be processed

TEST_F(LaneStand, NoKeyAndMalformedAreSetAsideWithTheirBytes) {
  handle_payments();
  const std::vector<std::string> bodies{R"({"cents":1})", R"({"id":null})", R"({"id":1.5})", "{",
                                        std::string("\xff\0x", 3)};
  for (std::size_t i = 0; i < bodies.size(); ++i)
    script_.deliver({bodies[i], Sender::message, "m" + std::to_string(i)});
  run();
  EXPECT_EQ(effects(), "");
  auto set_aside = letters();
  ASSERT_EQ(set_aside.size(), bodies.size());
  for (const auto& letter : set_aside) {
    const auto number = static_cast<std::size_t>(letter.transport_id[1] - '0');
    EXPECT_EQ(letter.body, bodies[number]);
    EXPECT_EQ(letter.reason, number < 3 ? SetAsideReason::no_key : SetAsideReason::malformed);
    EXPECT_EQ(script_.verdicts[number], number < 3 ? "set aside SEMEL-0101" : "set aside SEMEL-0103");
  }
}

TEST_F(LaneStand, TwoMessagesWithoutKeyOrIdAreNeverMerged) {
  handle_payments();
  script_.deliver(R"({"cents":1})");
  script_.deliver(R"({"cents":1})");
  run();
  EXPECT_EQ(letters().size(), 2u);
}

TEST_F(LaneStand, ACallerIsToldAndNothingIsKept) {
  handle_payments();
  script_.deliver({R"({"cents":1})", Sender::caller});
  script_.deliver({"{", Sender::caller});
  run();
  EXPECT_EQ(script_.verdicts, (std::vector<std::string>{"refused SEMEL-0101", "refused SEMEL-0103"}));
  EXPECT_TRUE(letters().empty());
}

TEST_F(LaneStand, WhatNoHandlerWantsIsAcknowledgedAndCounted) {
  auto options = pay();
  options.when = {{"/type", "paid"}};
  handle_payments(options);
  script_.deliver(R"({"id":"a","type":"other"})");
  run();
  EXPECT_EQ(script_.verdicts[0], "done 200");
  EXPECT_EQ(lane().summary().unmatched, 1u);
}

// ---- rejections

TEST_F(LaneStand, ARejectionUndoesItsWritesIsReplayedAndDeadLetteredOnce) {
  handle(pay(), [&](const Message& m, Work& work) -> Outcome {
    ++runs_;
    work.execute("INSERT INTO effects (id, cents) VALUES ($1, $2)", m.text("/id"), m.integer("/cents"));
    if (m.integer("/cents") < 0) return Rejection{"negative amount", {.status = 422, .body = "no"}};
    return Answer{};
  });
  script_.deliver(R"({"id":"a","cents":1})");
  script_.deliver(R"({"id":"b","cents":-1})");
  script_.deliver(R"({"id":"c","cents":3})");
  run();
  EXPECT_EQ(effects(), "a:1 c:3");
  EXPECT_EQ(script_.verdicts[1], "done 422 no");
  const auto runs = runs_;
  script_.deliver(R"({"id":"b","cents":-1})");
  run();
  EXPECT_EQ(script_.verdicts[3], "replay 422 no");
  EXPECT_EQ(runs_, runs);
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters()[0].reason, SetAsideReason::rejected);
  EXPECT_EQ(letters()[0].detail, "negative amount");
  EXPECT_EQ(letters()[0].times, 1);
}

// ---- failures

TEST_F(LaneStand, AFailureRollsBackItsMessageAloneAndTheRedeliveryStartsClean) {
  handle_payments();
  broken_ = {"m7"};
  for (int i = 0; i < 20; ++i) script_.deliver(R"({"id":"m)" + std::to_string(i) + R"(","cents":1})");
  run();
  EXPECT_EQ(effects().find("m7"), std::string::npos);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(script_.verdicts[i].substr(0, 4), i == 7 ? "hand" : "done") << i;
  EXPECT_EQ(lane().summary().fresh, 19u);
  broken_.clear();
  script_.deliver(R"({"id":"m7","cents":1})");
  run();
  EXPECT_EQ(script_.verdicts[20].substr(0, 8), "done 201");
}

TEST_F(LaneStand, AFailingSqlStatementIsItsOwnMessagesFault) {
  handle(pay(), [&](const Message& m, Work& work) {
    work.execute("INSERT INTO effects (id, cents) VALUES ($1, $2)", m.text("/id"), m.integer("/cents"));
    if (m.text("/id") == "b") work.execute("INSERT INTO no_such_table VALUES (1)");
    return Answer{};
  });
  for (const auto* id : {"a", "b", "c"}) script_.deliver(std::string(R"({"id":")") + id + R"(","cents":1})");
  run();
  EXPECT_EQ(effects(), "a:1 c:1");
  EXPECT_EQ(script_.verdicts[1], "handed back SEMEL-0208");
}

TEST_F(LaneStand, WhereTheSourceDoesNotRedeliverTheLaneTriesAgainThenSetsAside) {
  traits_ = {.redelivers = false, .ends = true, .ordered = true};
  auto options = pay();
  options.retry = {
      .attempts_max = 4, .delay_first = std::chrono::milliseconds(10), .delay_max = std::chrono::milliseconds(40)};
  handle_payments(options);
  broken_ = {"b"};
  for (const auto* id : {"a", "b", "c"}) script_.deliver(std::string(R"({"id":")") + id + R"(","cents":1})");
  run();
  EXPECT_EQ(effects(), "a:1 c:1");
  EXPECT_EQ(script_.verdicts[1], "set aside SEMEL-0501");
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters()[0].reason, SetAsideReason::exhausted);
  EXPECT_EQ(letters()[0].attempts, 4);
}

TEST_F(LaneStand, AKeysLaterMessagesWaitForItsEarlierOne) {
  traits_ = {.redelivers = false, .ends = true, .ordered = true};
  int failures = 2;
  handle(pay(Guard::natural), [&](const Message& m, Work& work) {
    if (m.integer("/cents") == 1 && failures-- > 0) throw std::runtime_error("not yet");
    work.execute("INSERT INTO effects (id, cents) VALUES ($1, $2)", m.text("/id"), m.integer("/cents"));
    return Answer{};
  });
  script_.deliver(R"({"id":"a","cents":1})");
  script_.deliver(R"({"id":"a","cents":2})");
  script_.deliver(R"({"id":"b","cents":9})");
  run();
  EXPECT_EQ(effects(), "b:9 a:1 a:2");
}

TEST_F(LaneStand, TheHandlersNoAndTheThrowAreToldApartFromTheStoreBeingAway) {
  handle_payments();
  const auto away = error(retry_later, not_applied, ErrorCode::store_unreachable);
  faults_.begin = {away, away};
  script_.deliver(R"({"id":"a","cents":1})");
  run();
  EXPECT_EQ(script_.verdicts[0], "handed back SEMEL-0201");
  EXPECT_EQ(runs_, 0);
}

TEST_F(LaneStand, WhileTheStoreIsAwayNothingIsCountedAsFailedAndNothingIsLost) {
  traits_ = {.redelivers = false, .ends = true, .ordered = true};
  auto options = pay();
  options.retry.attempts_max = 1;
  handle_payments(options);
  for (int i = 0; i < 30; ++i) faults_.begin.push_back(error(retry_later, not_applied, ErrorCode::store_unreachable));
  script_.deliver(R"({"id":"a","cents":1})");
  script_.deliver(R"({"id":"b","cents":2})");
  run();
  EXPECT_EQ(effects(), "a:1 b:2");
  EXPECT_TRUE(letters().empty());
}

TEST_F(LaneStand, ALostCommitReplyIsResolvedByTheNextClaim) {
  const auto unknown_commit = error(reread, unknown, ErrorCode::commit_unknown);
  for (const bool applied : {true, false}) {
    SCOPED_TRACE(applied ? "applied" : "not applied");
    const std::string id = applied ? "a" : "b";
    if (handlers_.empty()) handle_payments();
    (applied ? faults_.commit_after : faults_.commit_before) = {unknown_commit};
    script_.deliver(R"({"id":")" + id + R"(","cents":1})");
    run();
    EXPECT_EQ(script_.verdicts.back().substr(0, 6), applied ? "replay" : "done 2");
  }
  EXPECT_EQ(effects(), "a:1 b:1");
}

TEST_F(LaneStand, ADeadlockVictimIsDecidedAgainAsAWhole) {
  handle_payments();
  const auto deadlock = error(retry_later, not_applied, ErrorCode::serialization_failure);
  faults_.commit_before = {deadlock, deadlock};
  for (int i = 0; i < 5; ++i) script_.deliver(R"({"id":"m)" + std::to_string(i) + R"(","cents":1})");
  run();
  EXPECT_EQ(lane().summary().fresh, 5u);
  for (const auto& verdict : script_.verdicts) EXPECT_EQ(verdict.substr(0, 4), "done");
}

TEST_F(LaneStand, ALockThatIsNotFreedSendsTheMessageBackUncounted) {
  handle_payments();
  const auto locked = error(retry_later, not_applied, ErrorCode::lock_timeout);
  faults_.commit_before = {locked};
  script_.deliver(R"({"id":"a","cents":1})");
  run();
  EXPECT_EQ(script_.verdicts[0], "handed back SEMEL-0205");
  EXPECT_EQ(effects(), "");
}

TEST_F(LaneStand, AFailureAtCommitThatNamesNobodyIsFoundByHalving) {
  // As a deferred constraint does: only the commit fails, and the store cannot say whose fault it is.
  handle_payments();
  faults_.commit_if = [](SqlSession& session) -> std::optional<Error> {
    if (session.query("SELECT 1 FROM effects WHERE id = 'm11'", {}).value().rows.empty()) return std::nullopt;
    return error(fix_call, not_applied, ErrorCode::constraint_violated);
  };
  for (int i = 0; i < 16; ++i) script_.deliver(R"({"id":"m)" + std::to_string(i) + R"("})");
  run();
  EXPECT_EQ(lane().summary().fresh, 15u);
  EXPECT_EQ(script_.verdicts[11], "handed back SEMEL-0207");
}

// ---- the other guards

TEST_F(LaneStand, UniqueGuardAppliesOnceByTheUsersOwnConstraint) {
  sql("CREATE UNIQUE INDEX one ON effects (id)");
  handle(pay(Guard::unique), [&](const Message& m, Work& work) {
    const bool first = work.apply("INSERT INTO effects (id, cents) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                                  m.text("/id"), m.integer("/cents"));
    return Answer{.status = first ? 201 : 200};
  });
  script_.deliver(R"({"id":"a","cents":1})");
  script_.deliver(R"({"id":"a","cents":1})");
  run();
  EXPECT_EQ(effects(), "a:1");
  EXPECT_EQ(script_.verdicts, (std::vector<std::string>{"done 201", "replay 200"}));
  EXPECT_FALSE(store_->find_record({{"pay", ""}, Key::from_bytes("a").value()}).value().has_value());
}

TEST_F(LaneStand, VersionGuardKeepsTheNewestWhateverTheOrder) {
  sql("CREATE TABLE state (id TEXT PRIMARY KEY, cents INTEGER, version INTEGER)");
  handle(pay(Guard::version), [&](const Message& m, Work& work) {
    (void)work.apply(
        "INSERT INTO state VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET cents = excluded.cents, "
        "version = excluded.version WHERE excluded.version > state.version",
        m.text("/id"), m.integer("/cents"), m.integer("/v"));
    return Answer{};
  });
  script_.deliver(R"({"id":"a","cents":20,"v":2})");
  script_.deliver(R"({"id":"a","cents":10,"v":1})");
  script_.deliver(R"({"id":"a","cents":20,"v":2})");
  run();
  EXPECT_EQ(script_.verdicts, (std::vector<std::string>{"done 200", "replay 200", "replay 200"}));
  EXPECT_EQ(std::get<std::int64_t>(sql("SELECT cents FROM state").rows.at(0).at(0)), 20);
}

TEST_F(LaneStand, AGuardingStatementThatNeverRanIsTheHandlersFault) {
  handle(pay(Guard::unique), [&](const Message& m, Work& work) {
    work.execute("INSERT INTO effects (id) VALUES ($1)", m.text("/id"));
    return Answer{};
  });
  script_.deliver(R"({"id":"a"})");
  run();
  EXPECT_EQ(script_.verdicts[0], "handed back SEMEL-0502");
  EXPECT_EQ(effects(), "");
}

// ---- batch handlers

TEST_F(LaneStand, ABatchHandlerSeesNoKeyTwiceInOneCall) {
  std::vector<std::size_t> sizes;
  handle_batch(pay(Guard::natural), [&](std::span<const Message> messages, BatchWork& work) {
    sizes.push_back(messages.size());
    std::vector<std::vector<Value>> columns(2);
    for (const auto& m : messages) columns[0].push_back(m.at("/id")), columns[1].push_back(m.at("/cents"));
    work.execute_set("INSERT INTO effects (id, cents) VALUES ($1, $2)", columns);
    return std::vector<Outcome>{};
  });
  for (const auto* id : {"a", "b", "a", "a", "c"}) script_.deliver(std::string(R"({"id":")") + id + R"(","cents":1})");
  run();
  EXPECT_EQ(sizes, (std::vector<std::size_t>{3, 1, 1}));
  EXPECT_EQ(lane().summary().fresh, 5u);
}

TEST_F(LaneStand, ABrokenMessageInABatchHandlerIsFoundByHalving) {
  traits_ = {.redelivers = false, .ends = true, .ordered = true};
  auto options = pay();
  options.retry.attempts_max = 1;
  handle_batch(options, [&](std::span<const Message> messages, BatchWork& work) {
    std::vector<std::vector<Value>> columns(2);
    for (const auto& m : messages) {
      if (m.text("/id") == "m13") throw std::runtime_error("broken");
      columns[0].push_back(m.at("/id")), columns[1].push_back(m.at("/cents"));
    }
    work.execute_set("INSERT INTO effects (id, cents) VALUES ($1, $2)", columns);
    return std::vector<Outcome>{};
  });
  for (int i = 0; i < 40; ++i) script_.deliver(R"({"id":"m)" + std::to_string(i) + R"(","cents":1})");
  run();
  EXPECT_EQ(lane().summary().fresh, 39u);
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters()[0].key, "m13");
  EXPECT_EQ(std::get<std::int64_t>(sql("SELECT count(*) FROM effects").rows.at(0).at(0)), 39);
}

TEST_F(LaneStand, ARejectionInABatchHandlerLeavesTheOthersWritten) {
  handle_batch(pay(), [&](std::span<const Message> messages, BatchWork& work) {
    std::vector<std::vector<Value>> columns(1);
    std::vector<Outcome> outcomes;
    for (const auto& m : messages) {
      columns[0].push_back(m.at("/id"));
      if (m.text("/id") == "b")
        outcomes.emplace_back(Rejection{"no b", {.status = 422}});
      else
        outcomes.emplace_back(Answer{});
    }
    work.execute_set("INSERT INTO effects (id) VALUES ($1)", columns);
    return outcomes;
  });
  for (const auto* id : {"a", "b", "c"}) script_.deliver(std::string(R"({"id":")") + id + R"("})");
  run();
  EXPECT_EQ(effects(), "a c");
  EXPECT_EQ(script_.verdicts, (std::vector<std::string>{"done 200", "done 422", "done 200"}));
}

// ---- stopping

TEST_F(LaneStand, StoppingHandsBackWhatWaitsToBeTriedAgain) {
  traits_ = {.redelivers = false, .ends = true, .ordered = true};
  handle_payments();
  broken_ = {"a"};
  script_.deliver(R"({"id":"a","cents":1})");
  lane().turn();
  EXPECT_EQ(script_.verdicts[0], "");
  lane().stop();
  EXPECT_TRUE(lane().turn().finished);
  EXPECT_TRUE(script_.stopped);
  EXPECT_EQ(script_.verdicts[0].substr(0, 11), "handed back");
  EXPECT_EQ(effects(), "");
}

}  // namespace
}  // namespace semel::engine
