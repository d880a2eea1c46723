// Errors, their codes, and Result, which carries them.
#include <gtest/gtest.h>

#include <semel/result.hpp>

namespace semel {
namespace {

TEST(Error, ACodeHasAStableName) {
  EXPECT_EQ(code_name(ErrorCode::no_key), "SEMEL-0101");
  EXPECT_EQ(code_name(ErrorCode::commit_unknown), "SEMEL-0203");
  EXPECT_EQ(code_name(ErrorCode::handler_misused), "SEMEL-0502");
}

TEST(Error, TheShortFormsAreCertainThatNothingWasApplied) {
  const auto call = fix_call(ErrorCode::bad_statement, "why");
  EXPECT_EQ(call.remedy, Remedy::fix_call);
  EXPECT_EQ(call.certainty, Certainty::not_applied);
  EXPECT_EQ(call.code, ErrorCode::bad_statement);
  EXPECT_EQ(call.message, "why");
  const auto later = retry_later(ErrorCode::lock_timeout, "when");
  EXPECT_EQ(later.remedy, Remedy::retry_later);
  EXPECT_EQ(later.certainty, Certainty::not_applied);
}

TEST(Result, AMissingValueIsThrownWithItsError) {
  Result<int> none = retry_later(ErrorCode::lock_timeout, "busy");
  EXPECT_FALSE(none);
  try {
    static_cast<void>(none.value());
    FAIL() << "value() returned";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, ErrorCode::lock_timeout);
    EXPECT_STREQ(failure.what(), "busy");
  }
  Result<void> failed = fix_call(ErrorCode::bad_value, "bad");
  EXPECT_THROW(failed.value(), Failure);
  EXPECT_NO_THROW(Result<void>().value());
}

}  // namespace
}  // namespace semel
