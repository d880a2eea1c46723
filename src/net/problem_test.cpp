#include "net/problem.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/json.hpp"

namespace semel::net {
namespace {

TEST(Problem, EveryKindHasARowAndATypeOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Problem::failed); ++i) {
    const ProblemKind& kind = kind_of(static_cast<Problem>(i));
    EXPECT_GE(kind.status, 400);
    EXPECT_LT(kind.status, 600);
    EXPECT_FALSE(kind.title.empty());
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
  }
}

TEST(Problem, IsProblemJsonWithAStableType) {
  const auto response =
      problem_response(Problem::overloaded, {.detail = "10 wait", .code = ErrorCode::overloaded, .retry_after = {}});
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.headers.find("content-type"), "application/problem+json");
  EXPECT_EQ(response.body,
            "{\"type\":\"urn:semel:problem:overloaded\",\"title\":\"Too many requests are waiting\",\"status\":503,"
            "\"detail\":\"10 wait\",\"code\":\"SEMEL-0308\"}\n");
}

TEST(Problem, RetryAfterIsRoundedUpToSeconds) {
  const std::pair<int, const char*> cases[] = {{0, "1"}, {1, "1"}, {1'000, "1"}, {1'001, "2"}, {30'000, "30"}};
  for (const auto& [milliseconds, seconds] : cases)
    EXPECT_EQ(problem_response(Problem::try_again, {.retry_after = std::chrono::milliseconds(milliseconds)})
                  .headers.find("retry-after"),
              seconds);
}

TEST(Problem, WhateverTheDetailHoldsTheBodyIsJson) {
  for (const std::string& detail : {std::string("\"\\\b\n\x01", 5), std::string("\xff\xfe"), std::string("a\0b", 3)}) {
    const auto parsed = json::parse(problem_response(Problem::failed, {.detail = detail}).body);
    EXPECT_EQ(parsed.index(), 0u) << detail;
  }
}

}  // namespace
}  // namespace semel::net
