#include "performers/http/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "values/body_not_kept.hpp"

namespace semel::http {
namespace {

using testing::HasSubstr;
using testing::Not;
using Ask = Judgement::Ask;
using Reach = net::Returned::Reach;

net::Returned answer(int status, std::string body = "", Attributes headers = {}) {
  return {.reach = Reach::answered, .status = status, .headers = std::move(headers), .body = std::move(body)};
}

Judgement judge(const ProviderProfile& profile, const net::Returned& returned, std::string request = "",
                std::string reference = "") {
  const Body body(request, "");
  return judge_answer(profile, {body, std::move(reference)}, returned, {});
}

CallVerdict verdict(const ProviderProfile& profile, const net::Returned& returned) {
  return judge(profile, returned).report.verdict;
}

TEST(JudgeAnswer, WithoutAProfileTheStatusTells) {
  const std::pair<int, CallVerdict> cases[] = {
      {200, CallVerdict::succeeded},  {201, CallVerdict::succeeded}, {204, CallVerdict::succeeded},
      {301, CallVerdict::refused},    {302, CallVerdict::unknown},   {303, CallVerdict::unknown},
      {304, CallVerdict::unknown},    {307, CallVerdict::refused},   {308, CallVerdict::refused},
      {400, CallVerdict::failed},     {401, CallVerdict::refused},   {402, CallVerdict::failed},
      {403, CallVerdict::refused},    {404, CallVerdict::refused},   {408, CallVerdict::not_done},
      {409, CallVerdict::unfinished}, {410, CallVerdict::failed},    {422, CallVerdict::failed},
      {425, CallVerdict::not_done},   {429, CallVerdict::not_done},  {500, CallVerdict::unknown},
      {502, CallVerdict::unknown},    {503, CallVerdict::unknown},   {504, CallVerdict::unknown},
      {599, CallVerdict::unknown},
  };
  for (const auto& [status, expected] : cases) EXPECT_EQ(verdict({}, answer(status)), expected) << status;
  EXPECT_EQ(verdict({}, answer(503, "", {{"retry-after", "1"}})), CallVerdict::not_done);
  EXPECT_EQ(verdict({}, answer(500, "", {{"retry-after", "1"}})), CallVerdict::unknown);
}

TEST(JudgeAnswer, WithoutAnAnswerItTellsWhetherTheRequestCanHaveLeft) {
  const auto not_sent = judge({}, {.reach = Reach::not_sent, .detail = "refused"}).report;
  EXPECT_EQ(not_sent.verdict, CallVerdict::not_done);
  EXPECT_EQ(not_sent.outcome.answer.status, 0);
  EXPECT_EQ(not_sent.outcome.detail, "refused");
  EXPECT_EQ(verdict({}, {.reach = Reach::unknown}), CallVerdict::unknown);
}

TEST(JudgeAnswer, GivesTheAnswerOnWithAllThatIsNotOneConnections) {
  const auto report = judge({}, answer(429, "slow down",
                                       {{"Retry-After", "3"},
                                        {"Connection", "X-Mine, close"},
                                        {"Set-Cookie", "a=1; expires=Mon, 21 Oct 2030 07:28:00 GMT"},
                                        {"x-mine", "dropped"},
                                        {"Keep-Alive", "timeout=5"},
                                        {"Proxy-Authenticate", "Basic"},
                                        {"Transfer-Encoding", "chunked"},
                                        {"Trailer", "Digest"},
                                        {"Upgrade", "h2c"},
                                        {"content-length", "9"},
                                        {"Set-Cookie", "b=2"},
                                        {"X-Custom", "y"}}))
                          .report;
  EXPECT_EQ(report.retry_after, std::chrono::seconds(3));
  EXPECT_EQ(report.outcome.answer.status, 429);
  EXPECT_EQ(report.outcome.answer.body, "slow down");
  EXPECT_EQ(report.outcome.answer.headers.entries(),
            (Attributes{{"Retry-After", "3"},
                        {"Set-Cookie", "a=1; expires=Mon, 21 Oct 2030 07:28:00 GMT"},
                        {"Set-Cookie", "b=2"},
                        {"X-Custom", "y"}}
                 .entries()));
}

TEST(JudgeAnswer, OneThatBreaksOffTellsNothing) {
  const ProviderProfile ruled{.rules = {{.meaning = Meaning::succeeded}}};
  for (const int status : {200, 201, 307, 400, 402, 404, 409, 429}) {
    auto returned = answer(status, R"({"id": "7"})", {{"Retry-After", "3"}});
    returned.cut = true;
    returned.detail = "it broke off";
    for (const auto& profile : {ProviderProfile{}, ruled}) {
      const auto report = judge(profile, returned).report;
      EXPECT_EQ(report.verdict, CallVerdict::unknown) << status;
      EXPECT_EQ(report.outcome.reference, "") << "what is not whole is not read";
      EXPECT_EQ(report.outcome.answer.body, "") << "nor handed out";
      EXPECT_EQ(report.retry_after, std::chrono::seconds(3));
      EXPECT_THAT(report.outcome.detail, HasSubstr("not whole: it broke off"));
    }
  }
}

TEST(JudgeAnswer, ABodyThatIsTooLongIsNotTakenAndTheStatusTells) {
  auto returned = answer(201, std::string(8, 'x'));
  returned.cut = true;
  const Body asked("", "");
  const auto told = [&](const ProviderProfile& profile) {
    return judge_answer(profile, {asked, "", 8}, returned, {}).report;
  };
  const auto report = told({});
  EXPECT_EQ(report.verdict, CallVerdict::succeeded);
  EXPECT_EQ(report.outcome.answer.status, 201);
  EXPECT_EQ(report.outcome.answer.body, "");
  EXPECT_TRUE(lacks_body(report.outcome)) << report.outcome.detail;
  EXPECT_EQ(told({.answer = {.status = "/status"}}).verdict, CallVerdict::unknown);
}

TEST(JudgeAnswer, ASuccessThatIsToldInTheBodyMustBeReadThere) {
  const Shape shapes[] = {{.status = "/status", .failed = {"declined"}},
                          {.id = "/no"},
                          {.object = "/payment"},
                          {.compared = {{Comparison::As::decimal, "/amount", "/amount"}}}};
  for (const auto& shape : shapes) {
    for (const auto* body : {"", "<html>", R"({"status": "decl)"})
      EXPECT_EQ(verdict({.answer = shape}, answer(200, body)), CallVerdict::unknown) << body;
    EXPECT_EQ(verdict({.answer = shape}, answer(204)), CallVerdict::unknown);
    EXPECT_EQ(verdict({.answer = shape}, answer(402, "<html>")), CallVerdict::failed);
    const std::vector<AnswerRule> rules{{.status_from = 200, .status_to = 299, .meaning = Meaning::succeeded}};
    EXPECT_EQ(verdict({.rules = rules, .answer = shape}, answer(200)), CallVerdict::unknown);
    EXPECT_EQ(verdict({.rules = rules, .answer = shape}, answer(204)), CallVerdict::succeeded);
  }
  EXPECT_EQ(verdict({}, answer(200, "<html>")), CallVerdict::succeeded) << "nothing is to be read";
}

TEST(JudgeAnswer, TakesTheProvidersIdOfWhatItMade) {
  EXPECT_EQ(judge({}, answer(200, R"({"id": "ch_7"})")).report.outcome.reference, "ch_7");
  EXPECT_EQ(judge({.answer = {.object = "/payment", .id = "/no"}}, answer(200, R"({"payment": {"no": 8}})"))
                .report.outcome.reference,
            "8");
}

TEST(JudgeAnswer, RulesAreReadFromTheTopAndEveryConditionMustHold) {
  const ProviderProfile profile{
      .rules = {
          {.status_from = 400,
           .status_to = 499,
           .header = "X-Again",
           .header_value = "TRUE",
           .meaning = Meaning::not_done},
          {.status_from = 400, .status_to = 499, .header = "X-There", .meaning = Meaning::unfinished},
          {.pointer = "/errors/*/code", .values = {"A", "7", "true"}, .meaning = Meaning::mismatch},
          {.pointer = "/done/0", .meaning = Meaning::succeeded},
          {.status_from = 418, .status_to = 418, .meaning = Meaning::refused},
      }};
  EXPECT_EQ(verdict(profile, answer(400, "", {{"x-again", "true"}})), CallVerdict::not_done);
  EXPECT_EQ(verdict(profile, answer(400, "", {{"x-again", "false"}})), CallVerdict::failed);
  EXPECT_EQ(verdict(profile, answer(500, "", {{"x-again", "true"}})), CallVerdict::unknown);
  EXPECT_EQ(verdict(profile, answer(499, "", {{"x-there", "?"}})), CallVerdict::unfinished);
  EXPECT_EQ(verdict(profile, answer(400, R"({"errors": [{"code": "B"}, {"code": "A"}]})")), CallVerdict::mismatch);
  EXPECT_EQ(verdict(profile, answer(200, R"({"errors": [{"code": 7}]})")), CallVerdict::mismatch);
  EXPECT_EQ(verdict(profile, answer(200, R"({"errors": [{"code": true}]})")), CallVerdict::mismatch);
  EXPECT_EQ(verdict(profile, answer(400, R"({"errors": [{"code": "B"}]})")), CallVerdict::failed);
  EXPECT_EQ(verdict(profile, answer(400, R"({"done": [1]})")), CallVerdict::succeeded);
  EXPECT_EQ(verdict(profile, answer(400, R"({"done": [null]})")), CallVerdict::failed);
  EXPECT_EQ(verdict(profile, answer(418)), CallVerdict::refused);
  auto cut = answer(400, R"({"errors": [{"code": "A"}]})");
  cut.cut = true;
  EXPECT_EQ(verdict(profile, cut), CallVerdict::unknown) << "a body that is cut matches no pointer";
}

TEST(JudgeAnswer, ConflictsAskForWhatIsThere) {
  ProviderProfile profile{
      .rules = {{.status_from = 409, .status_to = 409, .meaning = Meaning::existing, .id = "/made/*/id"},
                {.status_from = 500, .status_to = 500, .meaning = Meaning::look_up}}};
  EXPECT_EQ(judge(profile, answer(409, R"({"made": [{"id": "7"}]})")).ask, Ask::nothing) << "it cannot be asked by id";
  profile.by_id = Lookup{.url = "/{id}"};
  const auto named = judge(profile, answer(409, R"({"made": [{"id": "7"}]})"));
  EXPECT_EQ(named.ask, Ask::by_id);
  EXPECT_EQ(named.id, "7");
  EXPECT_EQ(named.report.verdict, CallVerdict::unknown);
  const auto unnamed = judge(profile, answer(409, "{}"));
  EXPECT_EQ(unnamed.ask, Ask::nothing);
  EXPECT_EQ(unnamed.report.verdict, CallVerdict::unknown);

  EXPECT_EQ(judge(profile, answer(500)).report.verdict, CallVerdict::mismatch) << "nobody can be asked: an operator is";
  profile.by_reference = Lookup{.url = "/?r={reference}", .is_list = true};
  EXPECT_EQ(judge(profile, answer(500)).ask, Ask::by_reference);
  EXPECT_EQ(judge(profile, answer(500)).report.verdict, CallVerdict::unknown);
}

TEST(JudgeAnswer, ComparesWhatWasMadeWithWhatWasAsked) {
  ProviderProfile profile{
      .answer = {.reference = "/order", .compared = {{Comparison::As::decimal, "/amount", "/amount"}}}};
  const std::string request = R"({"amount": "10.00"})";
  const auto judged = [&](std::string body) {
    return judge(profile, answer(200, std::move(body)), request, "o1").report;
  };
  EXPECT_EQ(judged(R"({"id": "7", "amount": 10, "order": "o1"})").verdict, CallVerdict::succeeded);
  EXPECT_EQ(judged(R"({"id": "7"})").verdict, CallVerdict::succeeded) << "an answer need not hold all of it";
  const auto other = judged(R"({"id": "7", "amount": 11})");
  EXPECT_EQ(other.verdict, CallVerdict::mismatch);
  EXPECT_EQ(other.outcome.reference, "7");
  EXPECT_THAT(other.outcome.detail, HasSubstr("/amount"));
  EXPECT_THAT(other.outcome.detail, Not(HasSubstr("11"))) << "values are the message's";
  EXPECT_EQ(judged(R"({"order": "o2"})").verdict, CallVerdict::mismatch);
  profile.answer.compared.clear();
  EXPECT_EQ(judged(R"({"id": "7", "amount": 11})").verdict, CallVerdict::succeeded);
}

const Lookup by_list{
    .url = "/?r={reference}",
    .is_list = true,
    .list = "/data",
    .shape = {.object = "/it",
              .status = "/status",
              .reference = "/order",
              .succeeded = {"paid"},
              .failed = {"declined"},
              .pending = {"busy"},
              .ignored = {"void"},
              .compared = {{Comparison::As::decimal, "/amount", "/amount"},
                           {Comparison::As::text_without_case, "/currency", "/currency"}}},
    .paging = Lookup::Paging::cursor,
    .page_pointer = "/next",
    .page_field = "after",
};

Page page_of(const Lookup& lookup, const net::Returned& returned, int number = 1) {
  const Body body(R"({"amount": 100, "currency": "EUR"})", "");
  return judge_page(lookup, {body, "o1"}, returned, number, {});
}

std::string listed(const std::string& status, const std::string& rest = R"(, "amount": 1e2, "currency": "eur")",
                   const std::string& order = "o1", const std::string& id = "7") {
  return R"({"it": {"id": ")" + id + R"(", "order": ")" + order + R"(", "status": ")" + status + "\"" + rest + "}}";
}

TEST(JudgePage, WhatIsFoundSaysWhatCameOfIt) {
  const std::pair<std::string, CallVerdict> cases[] = {
      {listed("paid"), CallVerdict::succeeded},
      {listed("declined"), CallVerdict::failed},
      {listed("busy"), CallVerdict::unfinished},
      {listed("strange"), CallVerdict::unknown},
      {listed("paid", R"(, "amount": 101, "currency": "EUR")"), CallVerdict::mismatch},
      {listed("paid", R"(, "amount": 100, "currency": "USD")"), CallVerdict::mismatch},
      {listed("paid", R"(, "amount": 100)"), CallVerdict::mismatch},
      {listed("paid") + "," + listed("declined", "", "o2", "8"), CallVerdict::succeeded},
      {listed("paid") + "," + listed("paid"), CallVerdict::succeeded},
      {listed("paid") + "," + listed("void", "", "o1", "8"), CallVerdict::succeeded},
      {listed("paid") + "," + listed("declined", "", "o1", "8"), CallVerdict::mismatch},
  };
  for (const auto& [elements, expected] : cases) {
    const auto page = page_of(by_list, answer(200, R"({"data": [)" + elements + R"(], "next": "n"})"));
    EXPECT_TRUE(page.found) << elements;
    EXPECT_EQ(page.report.verdict, expected) << elements;
    EXPECT_EQ(page.next, std::nullopt) << elements;
  }
  EXPECT_EQ(page_of(by_list, answer(200, R"({"data": [)" + listed("paid") + "]}")).report.outcome.reference, "7");
}

TEST(JudgePage, NothingFoundIsSaidOnlyOfAListReadToItsEnd) {
  const auto more = page_of(by_list, answer(200, R"({"data": [)" + listed("paid", "", "o2") + R"(], "next": "n"})"));
  EXPECT_FALSE(more.found);
  EXPECT_EQ(more.next, "n");
  const auto end = page_of(by_list, answer(200, R"({"data": [], "next": null})"));
  EXPECT_EQ(end.next, std::nullopt);
  EXPECT_EQ(end.report.verdict, CallVerdict::not_found);

  Lookup numbered = by_list;
  numbered.paging = Lookup::Paging::number;
  EXPECT_EQ(page_of(numbered, answer(200, R"({"data": [], "next": 10})"), 2).next, "3");
  EXPECT_EQ(page_of(numbered, answer(200, R"({"data": [], "next": 10})"), 9).next, "10");
  EXPECT_EQ(page_of(numbered, answer(200, R"({"data": [], "next": 10})"), 10).next, std::nullopt);
  EXPECT_EQ(page_of(numbered, answer(200, R"({"data": [], "next": 1})"), 1).next, std::nullopt);

  Lookup single = by_list;
  single.paging = Lookup::Paging::single;
  EXPECT_EQ(page_of(single, answer(200, R"({"data": [], "next": true})")).report.verdict, CallVerdict::unknown);
  EXPECT_EQ(page_of(single, answer(200, R"({"data": [], "next": false})")).report.verdict, CallVerdict::not_found);
}

TEST(JudgePage, ALookupThatFailsTellsNothing) {
  auto cut = answer(200, R"({"data": []})");
  cut.cut = true;
  const net::Returned cases[] = {{.reach = Reach::unknown},
                                 {.reach = Reach::not_sent},
                                 answer(401),
                                 answer(404),
                                 answer(500),
                                 answer(302),
                                 cut,
                                 answer(200, "?"),
                                 answer(200, R"({"data": 7})"),
                                 answer(200, R"({"errors": []})")};
  for (const auto& returned : cases) {
    const auto page = page_of(by_list, returned);
    EXPECT_FALSE(page.found) << returned.status;
    EXPECT_EQ(page.report.verdict, CallVerdict::unknown) << returned.status;
  }
  EXPECT_EQ(page_of(by_list, answer(429, "", {{"Retry-After", "5"}})).report.retry_after, std::chrono::seconds(5));
}

TEST(JudgePage, OneThingIsThereOrIsNot) {
  Lookup one = by_list;
  one.is_list = false;
  EXPECT_EQ(page_of(one, answer(200, listed("paid"))).report.verdict, CallVerdict::succeeded);
  EXPECT_EQ(page_of(one, answer(200, listed("paid", "", "o2"))).report.verdict, CallVerdict::mismatch);
  EXPECT_EQ(page_of(one, answer(404)).report.verdict, CallVerdict::not_found);
  EXPECT_EQ(page_of(one, answer(200, "{}")).report.verdict, CallVerdict::unknown);
}

}  // namespace
}  // namespace semel::http
