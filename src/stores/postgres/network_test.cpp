// What a network and a server's operator can do to the PostgreSQL store: lost replies, cut connections, ended backends.
#include <array>
#include <functional>

#include "stores/postgres/live_server.hpp"
#include "testing/tcp_gate.hpp"

namespace semel::postgres {
namespace {

using testing::CommitFault;
using testing::TcpGate;

class PostgresNetwork : public LiveServer {
 protected:
  PostgresNetwork() : gate_(live_server_part("host"), static_cast<std::uint16_t>(std::stoi(live_server_part("port")))) {
    migrated();
    bystander_.run("CREATE TABLE " + in_schema("effects") + " (id text)");
    options_.connection = live_server_at(std::to_string(gate_.port())) + "sslmode=disable";
    options_.connect_timeout = std::chrono::milliseconds(2'000);
    store_ = opened(options_);
    session_ = session_of(*store_);
  }

  /// Everything up to COMMIT.
  void prepare_transaction() {
    session_->begin().value();
    EXPECT_FALSE(session_->claim(std::vector{id("k")}).value()[0]);
    session_->execute("INSERT INTO " + in_schema("effects") + " VALUES ('k')", {}).value();
    const auto record = fresh(id("k"));
    session_->record({&record, 1}).value();
  }

  void expect_effects(const std::string& expected) {
    EXPECT_EQ(count("effects"), expected);
    EXPECT_EQ(count("records"), expected);
  }

  /// What the engine does after an error: roll back, claim again.
  bool replays() {
    session_->rollback();
    session_->begin().value();
    const bool found = session_->claim(std::vector{id("k")}).value()[0].has_value();
    session_->rollback();
    return found;
  }

  /// Waits until the server has noticed that its client is gone.
  void wait_for_backends_to_end() {
    while (bystander_.run("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'semel'") != "0") {
    }
  }

  TcpGate gate_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<SqlSession> session_;
};

TEST_F(PostgresNetwork, CallsALostCommitReplyUnknownAndFindsTheRecordAtTheNextClaim) {
  prepare_transaction();
  gate_.on_next_commit(CommitFault::lose_reply);
  const auto committed = session_->commit();
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().certainty, Certainty::unknown);
  EXPECT_EQ(committed.error().code, ErrorCode::commit_unknown);
  EXPECT_EQ(gate_.commits_struck(), 1);
  expect_effects("1");
  EXPECT_TRUE(replays());
  expect_effects("1");
}

TEST_F(PostgresNetwork, CallsACommitThatNeverArrivedUnknownTooAndFindsNothing) {
  prepare_transaction();
  gate_.on_next_commit(CommitFault::cut_before);
  const auto committed = session_->commit();
  ASSERT_FALSE(committed);
  // From here the two cannot be told apart.
  EXPECT_EQ(committed.error().certainty, Certainty::unknown);
  EXPECT_EQ(gate_.commits_struck(), 1);
  wait_for_backends_to_end();
  expect_effects("0");
  EXPECT_FALSE(replays());
}

TEST_F(PostgresNetwork, IsCertainThatNothingHappenedWhereTheConnectionWentBeforeCommit) {
  prepare_transaction();
  session_->synchronise().value();
  gate_.cut_all();
  const auto committed = session_->commit();
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().certainty, Certainty::not_applied);
  EXPECT_EQ(committed.error().code, ErrorCode::connection_lost);
  EXPECT_EQ(committed.error().remedy, Remedy::retry_later);
  wait_for_backends_to_end();
  expect_effects("0");
  EXPECT_FALSE(replays());
}

TEST_F(PostgresNetwork, SurvivesACutAtEveryCallBeforeCommit) {
  const auto calls = std::array<std::function<bool()>, 4>{
      [&] { return session_->claim(std::vector{id("k")}).has_value(); },
      [&] { return session_->query("SELECT 1", {}).has_value(); },
      [&] { return session_->execute("SELECT 1", {}).has_value() && session_->synchronise().has_value(); },
      [&] { return session_->execute_counted("SELECT 1", {}).has_value(); },
  };
  for (const auto& call : calls) {
    prepare_transaction();
    gate_.cut_all();
    EXPECT_FALSE(call());
    const auto committed = session_->commit();
    ASSERT_FALSE(committed);
    EXPECT_EQ(committed.error().certainty, Certainty::not_applied);
    EXPECT_FALSE(replays());
  }
  expect_effects("0");
}

TEST_F(PostgresNetwork, SaysThatAKilledBackendAppliedNothing) {
  prepare_transaction();
  const auto pid = session_->query("SELECT pg_backend_pid()", {}).value().rows[0][0];
  bystander_.run("SELECT pg_terminate_backend(" + std::to_string(std::get<std::int64_t>(pid)) + ", 10000)");
  const auto committed = session_->commit();
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().certainty, Certainty::not_applied);
  EXPECT_EQ(committed.error().remedy, Remedy::retry_later);
  expect_effects("0");
  EXPECT_FALSE(replays());
}

TEST_F(PostgresNetwork, ConnectsAgainAtBeginWhereTheServerEndedAnIdleSession) {
  prepare_transaction();
  session_->commit().value();
  gate_.cut_all();
  EXPECT_TRUE(replays());
}

TEST_F(PostgresNetwork, SaysThatTheServerIsAwayAndComesBackWithIt) {
  gate_.refuse_new(true);
  const auto begun = session_->begin();
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, ErrorCode::store_unreachable);
  EXPECT_EQ(begun.error().remedy, Remedy::retry_later);
  EXPECT_EQ(begun.error().certainty, Certainty::not_applied);
  EXPECT_EQ(store_->check().error().code, ErrorCode::store_unreachable);
  gate_.refuse_new(false);
  EXPECT_FALSE(replays());
  EXPECT_TRUE(store_->check().has_value());
}

TEST_F(PostgresNetwork, ConnectsTheOperatorsConnectionAgain) {
  EXPECT_EQ(store_->purge(1).value(), 0u);
  gate_.cut_all();
  EXPECT_EQ(store_->purge(1).value(), 0u);
}

TEST_F(PostgresNetwork, TakesItsTimeWhereRepliesAreHeldAndLosesNone) {
  prepare_transaction();
  gate_.hold_replies(true);
  session_->execute("INSERT INTO " + in_schema("effects") + " VALUES ('more')", {}).value();
  gate_.hold_replies(false);
  session_->commit().value();
  EXPECT_EQ(count("effects"), "2");
}

}  // namespace
}  // namespace semel::postgres
