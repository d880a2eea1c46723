// The HTTP performer against providers on real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <semel/performers/http.hpp>

#include "net/http_client_for_tests.hpp"
#include "net/http_server.hpp"
#include "performers/http/performing_for_tests.hpp"

namespace semel::http {
namespace {

using namespace std::chrono_literals;
using net::raw_answer;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::unique_ptr<Performer> performer(ProviderProfile profile = {}, Attributes headers = {}) {
  return http_performer({.profile = std::move(profile), .headers = std::move(headers), .proxy = ""}).value();
}

Call call_of(StoredRequest request, std::string reference = "o1") {
  Call call{.id = "id", .effect = "pay", .idempotency_key = "key-1", .request = encode_request(request).value()};
  call.reference = std::move(reference);
  return call;
}

Call question_of(StoredRequest request) {
  auto call = call_of(std::move(request));
  call.look_up = true;
  return call;
}

TEST(HttpPerformer, SendsTheRequestWithOneKeyAndItsOwnCredentials) {
  TestProvider provider([](const std::string&) { return raw_answer(201, R"({"id": "ch_7"})"); });
  AtWork work(performer({}, {{"Authorization", "Bearer ours"}}));
  auto call = call_of({.url = provider.url("/charges"), .headers = {{"Content-Type", "text/plain"}}, .body = "b"});
  call.attempt = 3;
  (*work).begin(std::move(call));
  const auto ended = work.collect(1);
  EXPECT_EQ(ended[0].id, "id");
  EXPECT_EQ(ended[0].attempt, 3);
  EXPECT_EQ(ended[0].report.verdict, CallVerdict::succeeded);
  EXPECT_EQ(ended[0].report.outcome.reference, "ch_7");
  EXPECT_EQ(ended[0].report.outcome.answer.status, 201);
  ASSERT_THAT(provider.requests(), SizeIs(1));
  EXPECT_THAT(provider.requests()[0], HasSubstr("POST /charges HTTP/1.1\r\n"));
  EXPECT_THAT(provider.requests()[0], HasSubstr("\r\nIdempotency-Key: key-1\r\n"));
  EXPECT_THAT(provider.requests()[0], HasSubstr("\r\nAuthorization: Bearer ours\r\n"));
}

TEST(HttpPerformer, EveryAttemptSendsTheSameBytes) {
  TestProvider provider([](const std::string&) { return raw_answer(500); });
  AtWork work(performer(built_in_profile("square").value(), {{"Authorization", "Bearer ours"}}));
  auto call = call_of({.url = provider.url(), .body = R"({"amount_money": {"amount": 5}})"});
  for (call.attempt = 1; call.attempt <= 3; ++call.attempt) EXPECT_EQ(work.perform(call).verdict, CallVerdict::unknown);
  const auto requests = provider.requests();
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_EQ(requests[0], requests[1]);
  EXPECT_EQ(requests[0], requests[2]);
  EXPECT_THAT(requests[0], HasSubstr(R"("idempotency_key":"key-1")"));
}

TEST(HttpPerformer, TheCallersCredentialsReplaceItsOwn) {
  TestProvider provider([](const std::string&) { return raw_answer(200); });
  AtWork work(performer({}, {{"Authorization", "Bearer ours"}}));
  auto call = call_of({.url = provider.url()});
  call.credentials = {{"authorization", "Bearer theirs"}};
  work.perform(std::move(call));
  EXPECT_THAT(provider.requests().at(0), HasSubstr("authorization: Bearer theirs\r\n"));
  EXPECT_THAT(provider.requests().at(0), Not(HasSubstr("Bearer ours")));
}

TEST(HttpPerformer, AKeyOfSomebodyElsesIsRefusedAndNothingIsSent) {
  TestProvider provider([](const std::string&) { return raw_answer(200); });
  AtWork work(performer());
  EXPECT_EQ(work.perform(call_of({.url = provider.url(), .headers = {{"idempotency-key", "x"}}})).verdict,
            CallVerdict::refused);
  auto call = call_of({.url = provider.url()});
  call.credentials = {{"Idempotency-Key", "x"}};
  EXPECT_EQ(work.perform(std::move(call)).verdict, CallVerdict::refused);
  EXPECT_THAT(provider.requests(), IsEmpty());
  const auto made = http_performer({.headers = {{"Idempotency-Key", "x"}}});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::config_bad_value);
}

TEST(HttpPerformer, WhatIsNoRequestIsRefused) {
  AtWork work(performer());
  Call call{.id = "id"};
  for (const char* request : {"", "{}", R"({"url": "nowhere"})", R"({"url": "http://h/", "headers": {"A": "\n"}})"}) {
    call.request = request;
    call.idempotency_key = "k";
    const auto report = work.perform(call);
    EXPECT_EQ(report.verdict, CallVerdict::refused) << request;
    EXPECT_THAT(report.outcome.detail, Not(IsEmpty()));
  }
}

TEST(HttpPerformer, SettingsThatCannotWorkAreRefused) {
  EXPECT_FALSE(http_performer({.ca_file = "/nowhere/ca.pem"}));
  EXPECT_FALSE(http_performer({.headers = {{"A", "b\nc"}}}));
  ProviderProfile profile;
  profile.rules = {{.pointer = "no pointer"}};
  EXPECT_FALSE(http_performer({.profile = profile}));
  profile = {.by_reference = Lookup{.url = "/charges?r={reference}", .is_list = true, .list = "/data"}};
  EXPECT_FALSE(http_performer({.profile = profile})) << "no element would count: what was done would count as not done";
}

TEST(HttpPerformer, TellsWhatWasNotSentFromWhatMayHaveHappened) {
  AtWork work(performer());
  const auto refused = work.perform(call_of({.url = "http://127.0.0.1:" + std::to_string(net::closed_port()) + "/"}));
  EXPECT_EQ(refused.verdict, CallVerdict::not_done);
  EXPECT_EQ(refused.outcome.answer.status, 0);

  const net::RawServer resets([](net::RawConnection& connection) {
    connection.read_request();
    connection.reset();
  });
  const auto reset = work.perform(call_of({.url = resets.url()}));
  EXPECT_EQ(reset.verdict, CallVerdict::unknown);
  EXPECT_EQ(reset.outcome.answer.status, 0);

  const net::RawServer hangs([](net::RawConnection& connection) {
    connection.read_request();
    connection.hang();
  });
  auto call = call_of({.url = hangs.url()});
  call.timeout = 300ms;
  EXPECT_EQ(work.perform(std::move(call)).verdict, CallVerdict::unknown);
}

TEST(HttpPerformer, AnAnswerThatBreaksOffIsUnknown) {
  const net::RawServer server([](net::RawConnection& connection) {
    connection.read_request();
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"id\": \"ch_7\"");
  });
  AtWork work(performer());
  const auto report = work.perform(call_of({.url = server.url()}));
  EXPECT_EQ(report.verdict, CallVerdict::unknown);
  EXPECT_EQ(report.outcome.answer.body, "");
  EXPECT_THAT(report.outcome.detail, HasSubstr("not whole"));
}

TEST(HttpPerformer, OnlyARepeatableCallGoesOverAKeptConnection) {
  for (const bool repeatable : {false, true}) {
    TestProvider provider([](const std::string&) { return raw_answer(200); });
    ProviderProfile profile;
    if (repeatable) profile.policy.kind = ProviderPolicy::Kind::idempotent;
    AtWork work(performer(profile));
    for (int i = 0; i < 3; ++i) work.perform(call_of({.url = provider.url()}));
    EXPECT_EQ(provider.connections(), repeatable ? 1 : 3);
  }
}

TEST(HttpPerformer, MakesManyCallsAtATimeAndNoMoreThanItMay) {
  std::mutex mutex;
  std::vector<net::Responder> held;
  const auto server = net::serve({}, {.serve = [&](const net::Request&, net::Responder responder) {
                                   const std::lock_guard lock(mutex);
                                   held.push_back(std::move(responder));
                                   if (held.size() < 8) return;
                                   for (auto& one : held) std::move(one).answer({});
                                 }});
  AtWork work(http_performer({.proxy = "", .calls_max = 8}).value());
  const auto url = "http://127.0.0.1:" + std::to_string(server.value()->port()) + "/";
  EXPECT_EQ((*work).room(), 8u);
  for (int i = 0; i < 8; ++i) (*work).begin(call_of({.url = url}));
  EXPECT_EQ((*work).room(), 0u);
  EXPECT_THAT(work.collect(8), SizeIs(8));
  EXPECT_EQ((*work).room(), 8u);
}

const ProviderProfile with_lookup{
    .rules = {{.status_from = 409, .status_to = 409, .meaning = Meaning::existing, .id = "/id"},
              {.status_from = 500, .status_to = 500, .meaning = Meaning::look_up}},
    .by_reference = Lookup{.url = "/find?order={reference}",
                           .is_list = true,
                           .list = "/data",
                           .shape = {.status = "/status",
                                     .reference = "/order",
                                     .succeeded = {"paid"},
                                     .failed = {"declined"},
                                     .compared = {{Comparison::As::decimal, "/amount", "/amount"}}},
                           .paging = Lookup::Paging::cursor,
                           .page_pointer = "/next",
                           .page_field = "after"},
    .by_id = Lookup{.url = "/pay/{id}",
                    .shape = {.status = "/status",
                              .succeeded = {"paid"},
                              .failed = {"declined"},
                              .compared = {{Comparison::As::decimal, "/amount", "/amount"}}}},
};

TEST(HttpPerformer, LooksUpOverAllPagesWithItsCredentialsAndWithoutTheKey) {
  TestProvider provider([](const std::string& request) {
    return request.find("after=n") == request.npos
               ? raw_answer(200, R"({"data": [{"order": "o2"}], "next": "n&1"})")
               : raw_answer(200, R"({"data": [{"id": "7", "order": "o1", "status": "paid", "amount": 5}]})");
  });
  AtWork work(performer(with_lookup, {{"Authorization", "Bearer ours"}}));
  const auto report = work.perform(question_of({.url = provider.url("/pay"), .body = R"({"amount": 5})"}));
  EXPECT_EQ(report.verdict, CallVerdict::succeeded);
  EXPECT_EQ(report.outcome.reference, "7");
  ASSERT_THAT(provider.requests(), SizeIs(2));
  EXPECT_THAT(provider.requests()[0], HasSubstr("GET /find?order=o1 HTTP/1.1\r\n"));
  EXPECT_THAT(provider.requests()[0], HasSubstr("Authorization: Bearer ours\r\n"));
  EXPECT_THAT(provider.requests()[0], Not(HasSubstr("key-1")));
  EXPECT_THAT(provider.requests()[1], HasSubstr("GET /find?order=o1&after=n%261 HTTP/1.1\r\n"));
}

TEST(HttpPerformer, ALookupThatFindsNothingSaysSo) {
  TestProvider provider([](const std::string&) { return raw_answer(200, R"({"data": [], "next": ""})"); });
  AtWork work(performer(with_lookup));
  EXPECT_EQ(work.perform(question_of({.url = provider.url()})).verdict, CallVerdict::not_found);
}

TEST(HttpPerformer, ALookupThatCannotBeMadeIsUnknown) {
  AtWork none(performer());
  EXPECT_EQ(none.perform(question_of({.url = "http://127.0.0.1:1/"})).verdict, CallVerdict::unknown);
  AtWork work(performer(with_lookup));
  auto call = question_of({.url = "http://127.0.0.1:1/"});
  call.reference = "";
  EXPECT_EQ(work.perform(std::move(call)).verdict, CallVerdict::unknown);
  EXPECT_EQ(work.perform(question_of({.url = "http://127.0.0.1:" + std::to_string(net::closed_port()) + "/"})).verdict,
            CallVerdict::unknown)
      << "not having asked is no answer";
}

/// 409 first, then what `found` says of the thing that it names.
CallReport after_conflict(const std::string& found, int status = 200) {
  TestProvider provider([&](const std::string& request) {
    return request.starts_with("POST") ? raw_answer(409, R"({"id": "7"})") : raw_answer(status, found);
  });
  AtWork work(performer(with_lookup));
  auto report = work.perform(call_of({.url = provider.url("/pay"), .body = R"({"amount": 5})"}));
  EXPECT_EQ(provider.requests().size(), 2u);
  EXPECT_THAT(provider.requests().at(1), HasSubstr("GET /pay/7 HTTP/1.1\r\n"));
  return report;
}

TEST(HttpPerformer, AConflictThatNamesWhatIsThereIsSettledByIt) {
  const auto adopted = after_conflict(R"({"id": "7", "status": "paid", "amount": 5.0})");
  EXPECT_EQ(adopted.verdict, CallVerdict::succeeded);
  EXPECT_EQ(adopted.outcome.reference, "7");
  EXPECT_EQ(after_conflict(R"({"id": "7", "status": "declined", "amount": 5})").verdict, CallVerdict::failed)
      << "an earlier attempt that failed is no success";
  EXPECT_EQ(after_conflict(R"({"id": "7", "status": "paid", "amount": 6})").verdict, CallVerdict::mismatch);
  EXPECT_EQ(after_conflict("", 404).verdict, CallVerdict::unknown);
  EXPECT_EQ(after_conflict("", 500).verdict, CallVerdict::unknown);
}

TEST(HttpPerformer, AnAnswerThatARepeatWouldOnlyReplayIsLookedUp) {
  for (const bool shown : {false, true}) {
    TestProvider provider([&](const std::string& request) {
      if (request.starts_with("POST")) return raw_answer(500);
      return raw_answer(200, shown ? R"({"data": [{"id": "7", "order": "o1", "status": "paid"}]})" : R"({"data": []})");
    });
    AtWork work(performer(with_lookup));
    const auto report = work.perform(call_of({.url = provider.url("/pay")}));
    EXPECT_EQ(report.verdict, shown ? CallVerdict::succeeded : CallVerdict::unknown);
    EXPECT_EQ(report.outcome.answer.status, shown ? 200 : 500) << "what the call itself was told, where it tells more";
  }
}

TEST(HttpPerformer, AfterItsCloseNothingOfThatUseIsTouchedOrToldAgain) {
  SilentProvider provider;
  const auto closed = performer();
  expect_that_close_ends_a_use(*closed, provider, call_of({.url = provider.url()}));
}

TEST(HttpPerformer, SpeaksTlsToWhomItTrusts) {
  const net::Certificate certificate;
  const auto server =
      net::serve({.tls = net::TlsFiles{certificate.certificate_file(), certificate.key_file()}},
                 {.serve = [](const net::Request&, net::Responder responder) { std::move(responder).answer({}); }});
  const auto url = "https://localhost:" + std::to_string(server.value()->port()) + "/";
  AtWork trusts(http_performer({.ca_file = certificate.certificate_file(), .proxy = ""}).value());
  EXPECT_EQ(trusts.perform(call_of({.url = url})).verdict, CallVerdict::succeeded);
  AtWork stranger(performer());
  EXPECT_EQ(stranger.perform(call_of({.url = url})).verdict, CallVerdict::not_done);
}

}  // namespace
}  // namespace semel::http
