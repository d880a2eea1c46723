#include "protocol/next_step.hpp"

#include <gtest/gtest.h>

#include <array>

namespace semel::protocol {
namespace {

using enum Remedy;
using enum Certainty;

constexpr std::array all_codes{ErrorCode::no_key,
                               ErrorCode::key_invalid,
                               ErrorCode::malformed_body,
                               ErrorCode::conflict,
                               ErrorCode::rejected,
                               ErrorCode::attempts_exhausted,
                               ErrorCode::field_missing,
                               ErrorCode::store_unreachable,
                               ErrorCode::connection_lost,
                               ErrorCode::commit_unknown,
                               ErrorCode::serialization_failure,
                               ErrorCode::lock_timeout,
                               ErrorCode::lost_race,
                               ErrorCode::constraint_violated,
                               ErrorCode::bad_statement,
                               ErrorCode::disk_full,
                               ErrorCode::unsafe_durability,
                               ErrorCode::schema_missing,
                               ErrorCode::schema_newer,
                               ErrorCode::store_read_only,
                               ErrorCode::permission_denied,
                               ErrorCode::store_damaged,
                               ErrorCode::bad_value,
                               ErrorCode::handler_failed,
                               ErrorCode::handler_misused};

NextStep step(Remedy remedy, Certainty certainty, ErrorCode code, bool attributed, bool alone, int again = 0) {
  const Error error{remedy, certainty, code, ""};
  return next_step({error, attributed, alone, again});
}

struct Case {
  const char* what;
  Remedy remedy;
  Certainty certainty;
  ErrorCode code;
  bool attributed;
  NextStep in_batch;
  NextStep alone;
};

TEST(NextStep, OfEachKindOfFailure) {
  const Case cases[] = {
      {"lost race", reread, not_applied, ErrorCode::lost_race, false, NextStep::decide_again, NextStep::decide_again},
      {"commit unknown", reread, unknown, ErrorCode::commit_unknown, false, NextStep::decide_again,
       NextStep::decide_again},
      {"deadlock", retry_later, not_applied, ErrorCode::serialization_failure, true, NextStep::decide_again,
       NextStep::decide_again},
      {"lock timeout", retry_later, not_applied, ErrorCode::lock_timeout, true, NextStep::isolate, NextStep::postpone},
      {"connection lost", retry_later, not_applied, ErrorCode::connection_lost, true, NextStep::wait_for_store,
       NextStep::wait_for_store},
      {"disk full", ask_operator, not_applied, ErrorCode::disk_full, true, NextStep::wait_for_store,
       NextStep::wait_for_store},
      {"our table's rights", ask_operator, not_applied, ErrorCode::permission_denied, false, NextStep::wait_for_store,
       NextStep::wait_for_store},
      {"the handler's rights", ask_operator, not_applied, ErrorCode::permission_denied, true, NextStep::isolate,
       NextStep::count_failure},
      {"constraint", fix_call, not_applied, ErrorCode::constraint_violated, true, NextStep::isolate,
       NextStep::count_failure},
      {"deferred constraint, at commit", fix_call, not_applied, ErrorCode::constraint_violated, false,
       NextStep::isolate, NextStep::count_failure},
      {"handler threw", fix_call, not_applied, ErrorCode::handler_failed, true, NextStep::isolate,
       NextStep::count_failure},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(step(c.remedy, c.certainty, c.code, c.attributed, false), c.in_batch) << c.what;
    EXPECT_EQ(step(c.remedy, c.certainty, c.code, c.attributed, true), c.alone) << c.what;
  }
}

TEST(NextStep, DecidingAgainIsBoundedAndNeverCountsAsAFailure) {
  for (const auto code : {ErrorCode::lost_race, ErrorCode::serialization_failure}) {
    EXPECT_EQ(step(reread, not_applied, code, false, false, decide_again_max), NextStep::isolate);
    EXPECT_EQ(step(reread, not_applied, code, false, true, decide_again_max), NextStep::postpone);
  }
}

TEST(NextStep, ACommitThatStaysUnknownIsTheStoresFaultAndNoMessages) {
  for (const auto code : {ErrorCode::commit_unknown, ErrorCode::disk_full})
    for (const bool alone : {false, true})
      EXPECT_EQ(step(ask_operator, unknown, code, false, alone, decide_again_max), NextStep::wait_for_store);
}

// Whatever is unknown may be repeated only through a new claim, and nothing in a batch is blamed before it stands
// alone.
TEST(NextStep, OverEveryErrorAndSituation) {
  for (const auto code : all_codes)
    for (const auto remedy : {fix_call, retry_later, reread, ask_operator})
      for (const auto certainty : {not_applied, unknown})
        for (const bool attributed : {false, true})
          for (const bool alone : {false, true})
            for (const int again : {0, decide_again_max}) {
              const auto next = step(remedy, certainty, code, attributed, alone, again);
              const auto where = testing::Message()
                                 << code_name(code) << " remedy " << static_cast<int>(remedy) << " alone " << alone;
              if (certainty == unknown) {
                EXPECT_NE(next, NextStep::count_failure) << where;
              }
              if (remedy == retry_later) {
                EXPECT_NE(next, NextStep::count_failure) << where;
              }
              if (!alone) {
                EXPECT_TRUE(next != NextStep::count_failure && next != NextStep::postpone) << where;
              }
              if (alone) {
                EXPECT_NE(next, NextStep::isolate) << where;
              }
            }
}

}  // namespace
}  // namespace semel::protocol
