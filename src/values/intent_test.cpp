#include <gtest/gtest.h>

#include <semel/intent.hpp>
#include <semel/outbox.hpp>
#include <semel/performer.hpp>
#include <set>

namespace semel {
namespace {

RecordId record(std::string handler, std::string principal, std::string key) {
  return {{std::move(handler), std::move(principal)}, Key::from_bytes(key).value()};
}

TEST(Intent, AnIdIsTheSameInEveryAttemptAndNoOtherHasIt) {
  const auto one = record("charge", "", "k");
  const auto first = derive_intent_id(one, std::nullopt, 1);
  EXPECT_EQ(first, derive_intent_id(record("charge", "", "k"), std::nullopt, 1));
  std::set<std::string> ids{first.hex};
  for (const auto& other : {record("charge", "", "k2"), record("charge", "p", "k"), record("refund", "", "k")})
    EXPECT_TRUE(ids.insert(derive_intent_id(other, std::nullopt, 1).hex).second);
  EXPECT_TRUE(ids.insert(derive_intent_id(one, std::nullopt, 2).hex).second);
  EXPECT_TRUE(ids.insert(derive_intent_id(one, first, 1).hex).second);
  EXPECT_TRUE(ids.insert(derive_compensation_id(first).hex).second);
  EXPECT_TRUE(ids.insert(derive_publication_id(one, "", 1)).second);
  EXPECT_TRUE(ids.insert(derive_publication_id(one, first.hex, 1)).second);
}

/// Written down: another derivation would give a provider a second key for a call that is under way.
TEST(Intent, TheDerivationNeverChanges) {
  const auto id = derive_intent_id(record("charge", "", "order-1"), std::nullopt, 1);
  EXPECT_EQ(id.hex, "0b39cf12058ead33f346cbfa95b84d69");
  EXPECT_EQ(idempotency_key_of(id), "0b39cf12-058e-ad33-f346-cbfa95b84d69");
  EXPECT_EQ(derive_compensation_id(id).hex, "96e2d4a28c1dfe33f4057302dc7f488d");
  EXPECT_EQ(derive_publication_id(record("charge", "", "order-1"), "", 1), "66d08f4a5f5ac38742d12d62d6108bba");
}

TEST(Intent, EveryStateAndVerdictHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const auto state : all_intent_states) EXPECT_TRUE(names.insert(intent_state_name(state)).second);
  EXPECT_EQ(names.count(""), 0u);
  names.clear();
  for (const auto verdict :
       {CallVerdict::succeeded, CallVerdict::failed, CallVerdict::refused, CallVerdict::not_done, CallVerdict::unknown,
        CallVerdict::not_found, CallVerdict::unfinished, CallVerdict::mismatch})
    EXPECT_TRUE(names.insert(call_verdict_name(verdict)).second);
  EXPECT_EQ(names.count(""), 0u);
}

TEST(Intent, OpenIsWhatHasNoOutcome) {
  for (const auto state : all_intent_states)
    EXPECT_EQ(is_open(state),
              state != IntentState::succeeded && state != IntentState::failed && state != IntentState::abandoned);
}

}  // namespace
}  // namespace semel
