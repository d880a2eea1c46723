#include "sources/http/answers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.hpp"

namespace semel::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(Answers, DoneIsTheAnswerExactlyAndAReplayIsMarked) {
  const Answer answer{
      .status = 201, .headers = {{"Location", "/c/1"}, {"Content-Type", "text/x"}}, .body = std::string("\0ok", 3)};
  for (const auto sender : {Sender::message, Sender::caller}) {
    const auto first = response_of(Done{.answer = answer}, sender);
    EXPECT_EQ(first.status, 201);
    EXPECT_EQ(first.headers.entries(), answer.headers.entries());
    EXPECT_EQ(first.body, answer.body);
    const auto replay = response_of(Done{.answer = answer, .replayed = true}, sender);
    EXPECT_EQ(replay.status, 201);
    EXPECT_EQ(replay.body, answer.body);
    EXPECT_EQ(replay.headers.find("location"), "/c/1");
    EXPECT_EQ(replay.headers.find("idempotent-replayed"), "true");
  }
}

TEST(Answers, AnAnswerNoLongerKeptIsToldToCallersAndASuccessToWebhooks) {
  const Done done{.answer = {}, .replayed = true, .answer_kept = false};
  EXPECT_EQ(response_of(done, Sender::message).status, 200);
  const auto caller = response_of(done, Sender::caller);
  EXPECT_EQ(caller.status, 410);
  EXPECT_EQ(caller.headers.find("idempotent-replayed"), "true");
  EXPECT_THAT(caller.body, HasSubstr("urn:semel:problem:answer-no-longer-kept"));
}

TEST(Answers, AStatusThatIsNoFinalAnswerBecomesAFailure) {
  for (const int status : {-1, 0, 100, 199, 600})
    EXPECT_EQ(response_of(Done{.answer = {.status = status}}, Sender::caller).status, 500) << status;
}

TEST(Answers, SetAsideIsAcceptedWithItsReason) {
  const auto response =
      response_of(SetAside{.why = fix_call(ErrorCode::no_key, "there is no /id in \"x\"")}, Sender::message);
  EXPECT_EQ(response.status, 202);
  EXPECT_EQ(response.body,
            "{\"set_aside\":true,\"code\":\"SEMEL-0101\",\"reason\":\"there is no /id in \\\"x\\\"\"}\n");
}

struct RefusedCase {
  ErrorCode code;
  int status;
};

TEST(Answers, ARefusalIsTheProblemOfItsCode) {
  const RefusedCase cases[] = {
      {ErrorCode::no_key, 400},
      {ErrorCode::key_invalid, 400},
      {ErrorCode::malformed_body, 400},
      {ErrorCode::idempotency_key_missing, 400},
      {ErrorCode::conflict, 422},
      {ErrorCode::idempotency_key_invalid, 400},
      {ErrorCode::rejected, 422},
      {ErrorCode::field_missing, 422},
      {ErrorCode::principal_missing, 401},
      {ErrorCode::signature_invalid, 401},
  };
  for (const auto& [code, status] : cases) {
    const auto response = response_of(Refused{.why = fix_call(code, "said")}, Sender::caller);
    EXPECT_EQ(response.status, status) << code_name(code);
    EXPECT_THAT(response.body, HasSubstr("\"detail\":\"said\"")) << code_name(code);
    EXPECT_THAT(response.body, HasSubstr(code_name(code)));
    EXPECT_EQ(json::parse(response.body).index(), 0u);
  }
}

TEST(Answers, WhatWasHandedBackIsToBeAskedAgainOrFailed) {
  const auto later = response_of(HandedBack{retry_later(ErrorCode::store_unreachable, "…"), 2'500ms}, Sender::caller);
  EXPECT_EQ(later.status, 503);
  EXPECT_EQ(later.headers.find("retry-after"), "3");
  const Error full{Remedy::ask_operator, Certainty::not_applied, ErrorCode::disk_full, "…"};
  EXPECT_EQ(response_of(HandedBack{full}, Sender::message).status, 503);
  const auto failed = response_of(HandedBack{fix_call(ErrorCode::handler_failed, "…")}, Sender::caller);
  EXPECT_EQ(failed.status, 500);
  EXPECT_FALSE(failed.headers.find("retry-after"));
}

TEST(Answers, ACallerWhoseKeyIsInOtherHandsIsToldThatItIsInFlight) {
  const HandedBack held{retry_later(ErrorCode::lock_timeout, "…"), 2'500ms};
  const auto caller = response_of(held, Sender::caller);
  EXPECT_EQ(caller.status, 409);
  EXPECT_EQ(caller.headers.find("retry-after"), "3");
  EXPECT_THAT(caller.body, HasSubstr("urn:semel:problem:in-flight"));
  EXPECT_EQ(response_of(held, Sender::message).status, 503);
}

TEST(Answers, WhatIsInProgressIsToBeAskedAgainWithTheSameKey) {
  const auto why = retry_later(ErrorCode::in_progress, "…");
  for (const auto& response :
       {response_of(Refused{why}, Sender::caller), response_of(HandedBack{why}, Sender::caller)}) {
    EXPECT_EQ(response.status, 409);
    EXPECT_EQ(response.headers.find("retry-after"), "1");
    EXPECT_THAT(response.body, HasSubstr("urn:semel:problem:in-flight"));
    EXPECT_THAT(response.body, HasSubstr("SEMEL-0109"));
  }
  EXPECT_EQ(response_of(HandedBack{why, 4'200ms}, Sender::caller).headers.find("retry-after"), "5");
}

TEST(Answers, WhoseOutcomeIsUnknownIsNotToBeRetried) {
  const Error why{Remedy::ask_operator, Certainty::unknown, ErrorCode::ambiguous, "attempt 3 at the bank"};
  for (const auto& response :
       {response_of(Refused{why}, Sender::caller), response_of(HandedBack{why}, Sender::caller)}) {
    EXPECT_EQ(response.status, 409);
    EXPECT_FALSE(response.headers.find("retry-after"));
    EXPECT_THAT(response.body, HasSubstr("urn:semel:problem:outcome-unknown"));
    EXPECT_THAT(response.body, HasSubstr("Do not retry, and do not mint a new key"));
    EXPECT_THAT(response.body, HasSubstr("operator is resolving it"));
    EXPECT_THAT(response.body, Not(HasSubstr("bank"))) << "the engine's words are for the operator";
  }
}

TEST(Answers, AStoresOrHandlersMessageIsForTheOperatorOnly) {
  for (const ErrorCode code : {ErrorCode::bad_statement, ErrorCode::constraint_violated, ErrorCode::handler_failed,
                               ErrorCode::store_unreachable, ErrorCode::attempts_exhausted, ErrorCode::bad_value})
    for (const auto remedy : {Remedy::fix_call, Remedy::retry_later, Remedy::reread, Remedy::ask_operator}) {
      const Error error{remedy, Certainty::unknown, code, "INSERT INTO secrets"};
      for (const auto& response :
           {response_of(SetAside{error}, Sender::message), response_of(Refused{error}, Sender::caller),
            response_of(HandedBack{error}, Sender::caller)}) {
        EXPECT_THAT(response.body, Not(HasSubstr("INSERT")));
        EXPECT_THAT(response.body, HasSubstr(code_name(code)));
      }
    }
}

}  // namespace
}  // namespace semel::http
