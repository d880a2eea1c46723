#include "protocol/claim.hpp"

#include <gtest/gtest.h>

namespace semel::protocol {
namespace {

Record record(std::string fingerprint, RecordState state = RecordState::completed) {
  return {.scope = {"pay", ""},
          .key = Key::from_bytes("k").value(),
          .fingerprint = Fingerprint::from_bytes(std::move(fingerprint)),
          .state = state,
          .answer = Answer{.status = 201, .body = "first"},
          .source = "",
          .transport_id = ""};
}

TEST(Claim, NothingCommittedIsFresh) {
  for (const bool resend : {false, true}) {
    const auto claim = decide(std::nullopt, Fingerprint::from_bytes("a"), resend);
    ASSERT_TRUE(std::holds_alternative<Fresh>(claim));
    EXPECT_FALSE(std::get<Fresh>(claim).replaces_rejection);
  }
}

TEST(Claim, SameFingerprintReplaysTheFirstAnswer) {
  const auto claim = decide(record("a"), Fingerprint::from_bytes("a"), false);
  ASSERT_TRUE(std::holds_alternative<Replay>(claim));
  EXPECT_EQ(std::get<Replay>(claim).answer->status, 201);
  EXPECT_EQ(std::get<Replay>(claim).answer->body, "first");
}

TEST(Claim, OtherFingerprintIsAConflictOnEveryPath) {
  for (const auto state : {RecordState::completed, RecordState::rejected}) {
    for (const bool resend : {false, true}) {
      const auto claim = decide(record("a", state), Fingerprint::from_bytes("b"), resend);
      ASSERT_TRUE(std::holds_alternative<Conflict>(claim));
      EXPECT_EQ(std::get<Conflict>(claim).recorded.bytes(), "a");
    }
  }
}

TEST(Claim, NoFingerprintOnEitherSideComparesNothing) {
  EXPECT_TRUE(std::holds_alternative<Replay>(decide(record(""), Fingerprint::from_bytes("b"), false)));
  EXPECT_TRUE(std::holds_alternative<Replay>(decide(record("a"), Fingerprint(), false)));
}

TEST(Claim, RejectionIsReplayedUnlessAnOperatorSendsAgain) {
  const auto rejected = record("a", RecordState::rejected);
  const auto delivered = decide(rejected, Fingerprint::from_bytes("a"), false);
  ASSERT_TRUE(std::holds_alternative<Replay>(delivered));
  EXPECT_EQ(std::get<Replay>(delivered).state, RecordState::rejected);
  const auto resent = decide(rejected, Fingerprint::from_bytes("a"), true);
  ASSERT_TRUE(std::holds_alternative<Fresh>(resent));
  EXPECT_TRUE(std::get<Fresh>(resent).replaces_rejection);
}

TEST(Claim, CompletedRecordIsNeverRunAgainByResending) {
  EXPECT_TRUE(std::holds_alternative<Replay>(decide(record("a"), Fingerprint::from_bytes("a"), true)));
}

TEST(Claim, AnswerNoLongerKeptIsStillAReplay) {
  auto kept_short = record("a");
  kept_short.answer.reset();
  const auto claim = decide(kept_short, Fingerprint::from_bytes("a"), false);
  ASSERT_TRUE(std::holds_alternative<Replay>(claim));
  EXPECT_FALSE(std::get<Replay>(claim).answer.has_value());
}

}  // namespace
}  // namespace semel::protocol
