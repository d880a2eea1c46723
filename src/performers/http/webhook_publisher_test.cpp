// Publications as webhooks, against the receiving end of our own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <semel/performers/http.hpp>
#include <semel/sources/http.hpp>

#include "performers/http/performing_for_tests.hpp"
#include "sources/http/signature.hpp"

namespace semel::http {
namespace {

using namespace std::chrono_literals;
using net::raw_answer;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string old_secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const std::string new_secret = "c2VtZWwgc2VtZWwgc2VtZWw=";

Call publication(std::string body, Attributes attributes = {}) {
  Call call{.id = "0123456789abcdef0123456789abcdef", .effect = "hook", .request = std::move(body)};
  call.attributes = std::move(attributes);
  return call;
}

std::unique_ptr<Performer> publisher(std::string url, std::vector<std::string> secrets = {}, Attributes headers = {}) {
  return webhook_publisher(
             {.url = std::move(url), .secrets = std::move(secrets), .headers = std::move(headers), .proxy = ""})
      .value();
}

/// The fields of a request as it was received.
Attributes headers_of(const std::string& request) {
  Attributes headers;
  for (auto at = request.find("\r\n") + 2; request.compare(at, 2, "\r\n") != 0;) {
    const auto end = request.find("\r\n", at);
    const auto colon = request.find(':', at);
    headers.add(request.substr(at, colon - at), colon + 2 > end ? "" : request.substr(colon + 2, end - colon - 2));
    at = end + 2;
  }
  return headers;
}

TEST(WebhookPublisher, SendsTheBodyAsItIsWithAttributesAndId) {
  TestProvider receiver([](const std::string&) { return raw_answer(204); });
  AtWork work(publisher(receiver.url("/in?x"), {}, {{"Authorization", "Bearer ours"}}));
  const auto report = work.perform(
      publication("{\"a\" : 1}\n",
                  {{"X-Tenant", "t"}, {"content-length", "999"}, {"Webhook-Id", "theirs"}, {"host", "elsewhere"}}));
  EXPECT_EQ(report.verdict, CallVerdict::succeeded);
  const auto request = receiver.requests().at(0);
  EXPECT_THAT(request, HasSubstr("POST /in?x HTTP/1.1\r\n"));
  EXPECT_TRUE(request.ends_with("\r\n\r\n{\"a\" : 1}\n"));
  const auto headers = headers_of(request);
  EXPECT_EQ(headers.find("x-tenant"), "t");
  EXPECT_EQ(headers.find("authorization"), "Bearer ours");
  EXPECT_EQ(headers.find("idempotency-key"), "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(headers.find("webhook-id"), "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(headers.count("webhook-id"), 1u);
  EXPECT_EQ(headers.find("content-length"), "10");
  EXPECT_EQ(headers.find("content-type"), "application/json");
  EXPECT_EQ(headers.count("webhook-signature"), 0u) << "without a secret nothing is signed";
  EXPECT_THAT(request, Not(HasSubstr("elsewhere")));
}

TEST(WebhookPublisher, TheContentTypeIsTheAttributesOrFitsTheBody) {
  TestProvider receiver([](const std::string&) { return raw_answer(200); });
  AtWork work(publisher(receiver.url()));
  work.perform(publication("plain", {{"content-type", "text/plain"}}));
  work.perform(publication("no json"));
  work.perform(publication(""));
  const auto requests = receiver.requests();
  EXPECT_EQ(headers_of(requests.at(0)).find("content-type"), "text/plain");
  EXPECT_EQ(headers_of(requests.at(1)).find("content-type"), "application/octet-stream");
  EXPECT_EQ(headers_of(requests.at(2)).find("content-type"), "application/octet-stream");
}

TEST(WebhookPublisher, SignsWithEverySecretSoThatEitherVerifies) {
  TestProvider receiver([](const std::string&) { return raw_answer(200); });
  AtWork work(publisher(receiver.url(), {old_secret, new_secret}));
  const std::string body = "{\"test\": 2432232314}";
  work.perform(publication(body));
  const auto headers = headers_of(receiver.requests().at(0));
  const auto now = std::chrono::system_clock::now();
  for (const auto& secret : {old_secret, new_secret}) {
    const Verification verification{.scheme = Verification::Scheme::standard_webhooks, .secrets = {{"one", secret}}};
    EXPECT_TRUE(verify(verification, headers, body, now));
    EXPECT_FALSE(verify(verification, headers, body + " ", now));
  }
  const Verification stranger{.scheme = Verification::Scheme::standard_webhooks,
                              .secrets = {{"other", "whsec_b3RoZXIgb3RoZXI="}}};
  EXPECT_FALSE(verify(stranger, headers, body, now));
}

TEST(WebhookPublisher, OurOwnListenerTakesItAndKnowsARepeat) {
  const auto listener = listen({.port = 0}).value();
  auto* const source =
      listener
          ->add(Webhook{.name = "in",
                        .path = "/in",
                        .verify = {.scheme = Verification::Scheme::standard_webhooks, .secrets = {{"s", old_secret}}}})
          .value();
  ASSERT_TRUE(listener->start());
  Doorbell bell;
  const auto receiver = source->open(bell).value();
  AtWork work(publisher("http://127.0.0.1:" + std::to_string(listener->port()) + "/in", {old_secret}));
  for (int attempt = 1; attempt <= 2; ++attempt) {
    (*work).begin(publication("body"));
    Batch batch;
    while ((batch = receiver->receive(1).value()).deliveries.empty()) bell.wait(1h);
    auto& delivery = batch.deliveries[0];
    EXPECT_EQ(delivery.body, "body");
    EXPECT_TRUE(delivery.sender_verified);
    EXPECT_EQ(delivery.transport_id, "0123456789abcdef0123456789abcdef") << "the same in every attempt";
    std::vector<Settlement> settlements;
    settlements.push_back({std::move(delivery.receipt), Done{.answer = {.status = 200}}});
    receiver->settle(std::move(settlements));
    EXPECT_EQ(work.collect(1).at(0).report.verdict, CallVerdict::succeeded);
  }
}

TEST(WebhookPublisher, OnlyA2xxConfirms) {
  const std::pair<int, CallVerdict> cases[] = {
      {200, CallVerdict::succeeded}, {202, CallVerdict::succeeded}, {301, CallVerdict::failed},
      {302, CallVerdict::unknown},   {400, CallVerdict::failed},    {401, CallVerdict::failed},
      {404, CallVerdict::failed},    {408, CallVerdict::not_done},  {409, CallVerdict::not_done},
      {410, CallVerdict::failed},    {422, CallVerdict::failed},    {429, CallVerdict::not_done},
      {500, CallVerdict::unknown},   {503, CallVerdict::unknown},
  };
  for (const auto& [status, verdict] : cases) {
    TestProvider receiver([status = status](const std::string&) { return raw_answer(status); });
    AtWork work(publisher(receiver.url()));
    EXPECT_EQ(work.perform(publication("b")).verdict, verdict) << status;
  }
  TestProvider busy([](const std::string&) { return raw_answer(429, "", "Retry-After: 9\r\n"); });
  AtWork work(publisher(busy.url()));
  EXPECT_EQ(work.perform(publication("b")).retry_after, 9s);
  AtWork nobody(publisher("http://127.0.0.1:" + std::to_string(net::closed_port()) + "/"));
  EXPECT_EQ(nobody.perform(publication("b")).verdict, CallVerdict::not_done);
}

TEST(WebhookPublisher, APublicationThatCanNeverBeSentIsFailed) {
  TestProvider receiver([](const std::string&) { return raw_answer(200); });
  AtWork work(publisher(receiver.url()));
  for (const auto& attributes : {Attributes{{"X", "a\nb"}}, Attributes{{"no name", "a"}}})
    EXPECT_EQ(work.perform(publication("b", attributes)).verdict, CallVerdict::failed);
  EXPECT_THAT(receiver.requests(), IsEmpty());
}

TEST(WebhookPublisher, SettingsThatCannotWorkAreRefused) {
  const WebhookOptions cases[] = {
      {.url = ""},
      {.url = "ftp://h/"},
      {.url = "http://h/", .secrets = {"secret!"}},
      {.url = "http://h/", .secrets = {"whsec_"}},
      {.url = "http://h/", .headers = {{"Webhook-Id", "x"}}},
      {.url = "http://h/", .headers = {{"A", "secret!\n"}}},
      {.url = "http://h/", .ca_file = "/nowhere"},
  };
  for (const auto& options : cases) {
    const auto made = webhook_publisher(options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::config_bad_value);
    EXPECT_THAT(made.error().message, Not(HasSubstr("secret!")));
  }
}

TEST(WebhookPublisher, AfterItsCloseNothingOfThatUseIsTouchedOrToldAgain) {
  SilentProvider provider;
  const auto closed = publisher(provider.url());
  expect_that_close_ends_a_use(*closed, provider, publication("b"));
}

}  // namespace
}  // namespace semel::http
