// The listener and its sources over real sockets; the test plays the lane.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <semel/sources/http.hpp>
#include <set>
#include <thread>

#include "base/digest.hpp"
#include "base/encoding.hpp"
#include "net/http_client_for_tests.hpp"
#include "sources/http/taker_for_tests.hpp"

namespace semel::http {
namespace {

using namespace std::chrono_literals;
using net::Client;
using net::post;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view secret = "github-secret";

std::string github_headers(std::string_view body, std::string_view with = secret, std::string_view id = "delivery-1") {
  return "X-Hub-Signature-256: sha256=" + hex_encode(hmac_sha256(with, body)) +
         "\r\nX-GitHub-Delivery: " + std::string(id) + "\r\n";
}

std::string with_key(std::string_view key) { return "Idempotency-Key: " + std::string(key) + "\r\n"; }

Webhook github_hook() {
  return {.name = "github",
          .path = "/hooks/github",
          .verify = {.scheme = Verification::Scheme::github,
                     .secrets = {{"old", "github-secret-of-yesterday"}, {"current", std::string(secret)}}}};
}

Requests charges() { return {.name = "charges", .path = "/charges", .principal = {.from = Principal::From::none}}; }

class HttpSource : public testing::Test {
 protected:
  void start(Options options = {}) {
    options.port = 0;
    listener = listen(std::move(options)).value();
    hook_source = listener->add(github_hook()).value();
    charge_source = listener->add(charges()).value();
    listener->start().value();
  }
  Client client() { return Client(listener->port()); }

  std::unique_ptr<Listener> listener;
  semel::Source* hook_source = nullptr;
  semel::Source* charge_source = nullptr;
};

// The contract of a receiver, number by number.

TEST_F(HttpSource, Contract1ReceiveReturnsAtOnceInOrderAndTheBellRings) {
  start();
  Taker lane(*charge_source);
  EXPECT_TRUE(lane.has_nothing());
  std::vector<std::unique_ptr<Client>> clients;
  for (const char* key : {"a", "b", "c"}) {
    clients.push_back(std::make_unique<Client>(listener->port()));
    clients.back()->send(post("/charges", key, with_key(key)));
    lane.bell.wait(20s);
  }
  auto first = lane.receiver->receive(2).value();
  ASSERT_EQ(first.deliveries.size(), 2u) << "at most as many as were asked for";
  EXPECT_EQ(first.deliveries[0].body, "a");
  EXPECT_EQ(first.deliveries[1].body, "b");
  EXPECT_EQ(lane.receiver->receive(2).value().deliveries.size(), 1u);
  EXPECT_FALSE(first.ended);
}

TEST_F(HttpSource, Contract1EveryLaneIsRungSoThatNoneSleepsThroughAnArrival) {
  start();
  Taker busy(*charge_source);
  Taker idle(*charge_source);
  Client caller(listener->port());
  caller.send(post("/charges", "a", with_key("a")));
  EXPECT_EQ(idle.take().body, "a") << "the busy lane never looks";
  EXPECT_TRUE(busy.has_nothing());
}

TEST_F(HttpSource, Contract2SettlementsMayComeInAnyOrder) {
  start();
  Taker lane(*charge_source);
  Client a(listener->port());
  Client b(listener->port());
  a.send(post("/charges", "a", with_key("a")));
  auto first = lane.take();
  b.send(post("/charges", "b", with_key("b")));
  auto second = lane.take();
  lane.settle(second, Done{.answer = {.body = "for b"}});
  EXPECT_EQ(b.receive().body, "for b");
  lane.settle(first, Done{.answer = {.body = "for a"}});
  EXPECT_EQ(a.receive().body, "for a");
}

TEST_F(HttpSource, Contract2UnsettledAtTheReceiversEndTheCallerSeesTheConnectionEnd) {
  start();
  Client caller(listener->port());
  {
    Taker lane(*charge_source);
    caller.send(post("/charges", "a", with_key("a")));
    lane.take();
  }
  EXPECT_TRUE(caller.ended());
}

TEST_F(HttpSource, Contract3AnAcknowledgementThatFailsIsBorne) {
  start();
  Taker lane(*charge_source);
  Client gone(listener->port());
  gone.send(post("/charges", "a", with_key("a")));
  auto delivery = lane.take();
  gone.hang_up();
  lane.settle(delivery, Done{});
  Client again(listener->port());
  again.send(post("/charges", "a", with_key("a")));
  auto redelivery = lane.take();
  lane.settle(redelivery, Done{.answer = {.body = "first answer"}, .replayed = true});
  EXPECT_EQ(again.receive().body, "first answer");
}

TEST_F(HttpSource, Contract4WhatIsHandedBackIsToComeAgain) {
  start();
  EXPECT_TRUE(hook_source->traits().redelivers);
  EXPECT_FALSE(hook_source->traits().ends);
  Taker lane(*hook_source);
  Client provider(listener->port());
  provider.send(post("/hooks/github", "{}", github_headers("{}")));
  auto failed = lane.take();
  lane.settle(failed, HandedBack{.why = retry_later(ErrorCode::store_unreachable, "away"), .delay = 1'500ms});
  const auto answer = provider.receive();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.header("retry-after"), "2");
  provider.send(post("/hooks/github", "{}", github_headers("{}")));
  auto again = lane.take();
  EXPECT_EQ(again.transport_id, failed.transport_id) << "a failed delivery leaves no trace that drops the next";
  lane.settle(again, Done{});
  EXPECT_EQ(provider.receive().status, 200);
}

TEST_F(HttpSource, Contract5AfterStopNothingNewComesAndWhatWasTakenIsSettled) {
  start();
  Taker lane(*charge_source);
  Client taken(listener->port());
  taken.send(post("/charges", "a", with_key("a")));
  auto delivery = lane.take();
  Client waiting(listener->port());
  waiting.send(post("/charges", "b", with_key("b")));
  lane.bell.wait(20s);
  lane.receiver->stop();
  EXPECT_EQ(waiting.receive().status, 503) << "no lane will take it any more";
  Client late(listener->port());
  const auto refused = late.ask(post("/charges", "c", with_key("c")));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("connection"), "close");
  EXPECT_FALSE(refused.header("retry-after").empty());
  const auto batch = lane.receiver->receive(10).value();
  EXPECT_TRUE(batch.ended);
  EXPECT_TRUE(batch.deliveries.empty());
  lane.settle(delivery, Done{.answer = {.status = 201}});
  EXPECT_EQ(taken.receive().status, 201);
}

TEST_F(HttpSource, OneStoppedLaneLeavesTheOthersAtWork) {
  start();
  Taker stays(*charge_source);
  Taker leaves(*charge_source);
  leaves.receiver->stop();
  Client caller(listener->port());
  caller.send(post("/charges", "a", with_key("a")));
  auto delivery = stays.take();
  stays.settle(delivery, Done{});
  EXPECT_EQ(caller.receive().status, 200);
}

TEST_F(HttpSource, RequestsBeforeTheFirstLaneWaitForIt) {
  start();
  Client early(listener->port());
  early.send(post("/charges", "early", with_key("a")));
  Taker lane(*charge_source);
  EXPECT_EQ(lane.take().body, "early");
}

// What a delivery holds.

TEST_F(HttpSource, AWebhookBecomesAVerifiedMessageWithItsHeaders) {
  start();
  Taker lane(*hook_source);
  Client provider(listener->port());
  provider.send(post("/hooks/github?x=1", "{\"a\":1}", github_headers("{\"a\":1}") + "X-GitHub-Event: push\r\n"));
  const auto delivery = lane.take();
  EXPECT_EQ(delivery.source, "github");
  EXPECT_EQ(delivery.sender, Sender::message);
  EXPECT_EQ(delivery.body, "{\"a\":1}");
  EXPECT_EQ(delivery.transport_id, "delivery-1");
  EXPECT_TRUE(delivery.sender_verified);
  EXPECT_EQ(delivery.principal, "");
  EXPECT_EQ(delivery.attributes.find("x-github-event"), "push");
  EXPECT_EQ(delivery.attributes.find(":method"), "POST");
  EXPECT_EQ(delivery.attributes.find(":path"), "/hooks/github?x=1");
}

TEST_F(HttpSource, ARequestBecomesACallersDeliveryWithItsCanonicalKey) {
  start();
  Taker lane(*charge_source);
  for (const char* header : {"abc", "\"abc\"", "\"abc\";v=1"}) {
    Client caller(listener->port());
    caller.send("PUT /charges HTTP/1.1\r\nHost: semel\r\nContent-Length: 1\r\n" + with_key(header) + "\r\n1");
    auto delivery = lane.take();
    EXPECT_EQ(delivery.sender, Sender::caller);
    EXPECT_FALSE(delivery.sender_verified);
    EXPECT_EQ(delivery.transport_id, "");
    EXPECT_EQ(delivery.attributes.find("Idempotency-Key"), "abc");
    EXPECT_EQ(delivery.attributes.count("Idempotency-Key"), 1u);
    EXPECT_EQ(delivery.attributes.find(":method"), "PUT");
    lane.settle(delivery, Done{});
    EXPECT_EQ(caller.receive().status, 200);
  }
}

TEST_F(HttpSource, CredentialsAreNotPassedOn) {
  start();
  Taker lane(*charge_source);
  Client caller(listener->port());
  caller.send(
      post("/charges", "", with_key("a") + "Authorization: Bearer t\r\nCOOKIE: s=1\r\nProxy-Authorization: p\r\n"));
  const auto delivery = lane.take();
  for (const char* name : {"Authorization", "Cookie", "Proxy-Authorization"})
    EXPECT_EQ(delivery.attributes.count(name), 0u) << name;
}

TEST_F(HttpSource, CredentialsOfAnyNameAndInTheQueryAreNotPassedOn) {
  const auto own = listen({.port = 0}).value();
  Webhook open{.name = "open", .path = "/open", .credentials = {"X-Our-Pass"}};
  Requests requests{.name = "r", .path = "/r", .principal = {.from = Principal::From::header, .header = "X-Api-Key"}};
  Taker hooks(*own->add(open).value());
  Taker lane(*own->add(requests).value());
  own->start().value();
  Client hook(own->port());
  hook.send(post("/open?token=s3cret&page=2", "", "x-our-pass: s3cret\r\nX-Gitlab-Token: s3cret\r\nX-Kept: 1\r\n"));
  auto delivery = hooks.take();
  EXPECT_EQ(delivery.attributes.find(":path"), "/open?token=***&page=2");
  EXPECT_EQ(delivery.attributes.find("x-kept"), "1");
  for (const auto& [name, value] : delivery.attributes.entries()) EXPECT_NE(value, "s3cret") << name;
  Client caller(own->port());
  caller.send(post("/r", "", with_key("a") + "X-Api-Key: a\r\n"));
  auto request = lane.take();
  EXPECT_EQ(request.principal, "a") << "it may still say on whose behalf";
  EXPECT_EQ(request.attributes.count("X-Api-Key"), 0u);
}

TEST_F(HttpSource, APrincipalComesFromWhereTheRouteSays) {
  const auto own = listen({.port = 0}).value();
  const Principal by_header{.from = Principal::From::header, .header = "X-Tenant"};
  const Principal by_credential{.from = Principal::From::credential_digest};
  Taker header(*own->add(Requests{.name = "h", .path = "/h", .principal = by_header}).value());
  Taker digest(*own->add(Requests{.name = "d", .path = "/d", .principal = by_credential}).value());
  own->start().value();
  Client client(own->port());
  for (const std::string& request :
       {post("/h", "", with_key("a")), post("/h", "", with_key("a") + "X-Tenant: \r\n"),
        post("/h", "", with_key("a") + "X-Tenant: 1\r\nX-Tenant: 2\r\n"), post("/d", "", with_key("a"))}) {
    const auto refused = client.ask(request);
    EXPECT_EQ(refused.status, 401) << request;
    EXPECT_THAT(refused.body, HasSubstr("urn:semel:problem:principal-missing"));
  }
  EXPECT_TRUE(header.has_nothing() && digest.has_nothing());
  client.send(post("/h", "", with_key("a") + "X-Tenant: acme\r\n"));
  auto delivery = header.take();
  EXPECT_EQ(delivery.principal, "acme");
  header.settle(delivery, Done{});
  EXPECT_EQ(client.receive().status, 200);
  client.send(post("/d", "", with_key("a") + "Authorization: Bearer confidential\r\n"));
  EXPECT_EQ(digest.take().principal, hex_encode(sha256("Bearer confidential")));
}

// What is refused leaves nothing behind.

TEST_F(HttpSource, OtherPathsAndMethodsAreRefused) {
  start();
  Taker hooks(*hook_source);
  Taker requests(*charge_source);
  Client client(listener->port());
  for (const char* target : {"/", "/charges/", "/Charges", "/charges/1", "*"}) {
    const auto answer = client.ask(post(target, "", with_key("a")));
    EXPECT_EQ(answer.status, 404) << target;
    EXPECT_THAT(answer.body, HasSubstr("urn:semel:problem:not-found"));
  }
  for (const char* method : {"GET", "OPTIONS", "TRACE"}) {
    const auto answer = client.ask(std::string(method) + " /charges HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_EQ(answer.header("allow"), "POST, PUT, PATCH, DELETE");
  }
  client.send("HEAD /charges HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.receive(true).status, 405);
  const auto put = client.ask("PUT /hooks/github HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(put.status, 405);
  EXPECT_EQ(put.header("allow"), "POST");
  EXPECT_TRUE(hooks.has_nothing() && requests.has_nothing());
}

TEST_F(HttpSource, TellsWhatWasAnsweredForNoSource) {
  std::vector<std::string> told;
  start({.body_bytes_max = 8, .on_problem = [&](int status, std::string_view problem) {
           told.push_back(std::to_string(status) + " " + std::string(problem));
         }});
  for (const auto& request : {post("/nowhere", ""), std::string("GET /charges HTTP/1.1\r\nHost: a\r\n\r\n"),
                              post("/charges", "123456789", with_key("a")), post("/charges", "", "")})
    client().ask(request);
  listener.reset();  // its thread writes what was told
  EXPECT_THAT(told, testing::ElementsAre("404 not-found", "405 method-not-allowed", "413 body-too-large"))
      << "a missing key is the source's to tell";
}

TEST_F(HttpSource, ARequestWithoutAGoodKeyIsRefusedAndNeverQueued) {
  start();
  Taker lane(*charge_source);
  Client client(listener->port());
  const std::pair<std::string, const char*> cases[] = {
      {"", "idempotency-key-missing"},
      {with_key(""), "idempotency-key-invalid"},
      {with_key("\"open"), "idempotency-key-invalid"},
      {with_key("a, b"), "idempotency-key-invalid"},
      {with_key("a") + with_key("a"), "idempotency-key-invalid"},
      {with_key(std::string(1'025, 'k')), "idempotency-key-invalid"},
  };
  for (const auto& [headers, type] : cases) {
    const auto answer = client.ask(post("/charges", "{}", headers));
    EXPECT_EQ(answer.status, 400) << headers;
    EXPECT_EQ(answer.header("content-type"), "application/problem+json");
    EXPECT_THAT(answer.body, HasSubstr(std::string("urn:semel:problem:") + type)) << headers;
  }
  EXPECT_TRUE(lane.has_nothing());
}

TEST_F(HttpSource, AChangedBodyIsRefusedWithAReasonAndNeverQueued) {
  start();
  Taker lane(*hook_source);
  Client client(listener->port());
  const std::string body = R"({"id":"evt_1"})";
  for (const std::string& changed : {body + "\n", std::string("{\n  \"id\": \"evt_1\"\n}"), std::string("{}")}) {
    const auto answer = client.ask(post("/hooks/github", changed, github_headers(body)));
    EXPECT_EQ(answer.status, 401);
    EXPECT_THAT(answer.body, HasSubstr("urn:semel:problem:signature-invalid"));
    EXPECT_THAT(answer.body, HasSubstr("current")) << "which secrets were tried, by label";
    EXPECT_THAT(answer.body, Not(HasSubstr(std::string(secret)))) << "and never by value";
  }
  EXPECT_TRUE(lane.has_nothing());
}

TEST_F(HttpSource, AnUnsignedRequestLearnsNothingOfAKnownDelivery) {
  start();
  Taker lane(*hook_source);
  Client client(listener->port());
  const std::string unsigned_known = post("/hooks/github", "{}", "X-GitHub-Delivery: delivery-1\r\n");
  const auto before = client.ask(unsigned_known);
  client.send(post("/hooks/github", "{}", github_headers("{}")));
  auto delivery = lane.take();
  lane.settle(delivery, Done{});
  EXPECT_EQ(client.receive().status, 200);
  const auto after = client.ask(unsigned_known);
  EXPECT_EQ(before.status, 401);
  EXPECT_EQ(after.status, 401);
  EXPECT_EQ(before.body, after.body);
  EXPECT_TRUE(lane.has_nothing());
}

TEST_F(HttpSource, ABodyOverTheLimitIsRefusedBeforeItsSignatureIsLookedAt) {
  start({.body_bytes_max = 8});
  Taker lane(*hook_source);
  const std::string body = "123456789";
  EXPECT_EQ(client().ask(post("/hooks/github", body, github_headers(body))).status, 413);
  EXPECT_EQ(client().ask(post("/nowhere", body)).status, 404) << "the path comes first";
  EXPECT_TRUE(lane.has_nothing());
}

TEST_F(HttpSource, AFullQueueTurnsRequestsAwayUntilThereIsRoom) {
  start({.queued_max = 1});
  Taker lane(*charge_source);
  Client first(listener->port());
  first.send(post("/charges", "a", with_key("a")));
  lane.bell.wait(20s);
  Client second(listener->port());
  const auto turned_away = second.ask(post("/charges", "b", with_key("b")));
  EXPECT_EQ(turned_away.status, 503);
  EXPECT_EQ(turned_away.header("retry-after"), "1");
  EXPECT_THAT(turned_away.body, HasSubstr("urn:semel:problem:overloaded"));
  lane.take();
  second.send(post("/charges", "b", with_key("b")));
  EXPECT_EQ(lane.take().body, "b");
}

// Duplicates, as providers and clients send them.

TEST_F(HttpSource, ADuplicateIsAnsweredAsTheFirstWas) {
  start();
  Taker lane(*hook_source);
  Client provider(listener->port());
  for (const bool replayed : {false, true}) {
    provider.send(post("/hooks/github", "{}", github_headers("{}")));
    auto delivery = lane.take();
    lane.settle(delivery, Done{.answer = {.status = 200, .headers = {}, .body = "[accepted]"}, .replayed = replayed});
    const auto answer = provider.receive();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "[accepted]");
    EXPECT_EQ(answer.header("idempotent-replayed"), replayed ? "true" : "");
  }
}

TEST_F(HttpSource, ASecondDeliveryWhileTheFirstIsAtWorkWaitsForItsOwnAnswer) {
  start();
  Taker lane(*hook_source);
  Client first(listener->port());
  Client second(listener->port());
  first.send(post("/hooks/github", "{}", github_headers("{}")));
  auto at_work = lane.take();
  second.send(post("/hooks/github", "{}", github_headers("{}")));
  auto queued = lane.take();
  EXPECT_EQ(queued.transport_id, at_work.transport_id);
  lane.settle(at_work, Done{});
  EXPECT_EQ(first.receive().status, 200);
  lane.settle(queued, Done{.answer = {}, .replayed = true});
  EXPECT_EQ(second.receive().header("idempotent-replayed"), "true");
}

TEST_F(HttpSource, OneEventSignedWithTwoSecretsArrivesTwiceWithOneIdentity) {
  start();
  Taker lane(*hook_source);
  Client a(listener->port());
  Client b(listener->port());
  a.send(post("/hooks/github", "{}", github_headers("{}", "github-secret-of-yesterday")));
  const auto first = lane.take();
  b.send(post("/hooks/github", "{}", github_headers("{}", secret)));
  const auto second = lane.take();
  EXPECT_TRUE(first.sender_verified && second.sender_verified);
  EXPECT_EQ(first.transport_id, second.transport_id);
  EXPECT_EQ(first.body, second.body);
}

TEST_F(HttpSource, ARetryIsNotDroppedForSayingThatItIsOne) {
  const auto own = listen({.port = 0}).value();
  Taker lane(*own->add(Webhook{.name = "slack",
                               .path = "/slack",
                               .verify = {.scheme = Verification::Scheme::slack, .secrets = {{"s", "slack-secret"}}}})
                  .value());
  own->start().value();
  const std::string body = R"({"event_id":"Ev1"})";
  const std::string now = std::to_string(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count());
  const std::string signature = hex_encode(hmac_sha256("slack-secret", "v0:" + now + ":" + body));
  const std::string headers = "X-Slack-Signature: v0=" + signature + "\r\nX-Slack-Request-Timestamp: " + now + "\r\n";
  Client provider(own->port());
  for (const char* retry : {"", "X-Slack-Retry-Num: 1\r\nX-Slack-Retry-Reason: http_timeout\r\n"}) {
    provider.send(post("/slack", body, headers + retry));
    auto delivery = lane.take();
    EXPECT_EQ(delivery.body, body);
    EXPECT_EQ(delivery.transport_id, "") << "the event's id is in the body, and holds no time of arrival";
    EXPECT_EQ(delivery.attributes.count("x-slack-retry-num"), *retry ? 1u : 0u);
    lane.settle(delivery, Done{});
    EXPECT_EQ(provider.receive().status, 200);
  }
}

TEST_F(HttpSource, AReplayHasTheFirstAnswersStatusHeadersAndBytes) {
  start();
  Taker lane(*charge_source);
  Client caller(listener->port());
  const Answer answer{.status = 201,
                      .headers = {{"Location", "/charges/7"}, {"Content-Type", "application/json"}, {"ETag", "\"1\""}},
                      .body = std::string("{\"id\": 7}\0", 10)};
  for (const bool replayed : {false, true}) {
    caller.send(post("/charges", "{}", with_key("a")));
    auto delivery = lane.take();
    lane.settle(delivery, Done{.answer = answer, .replayed = replayed});
    const auto got = caller.receive();
    EXPECT_EQ(got.status, 201);
    EXPECT_EQ(got.body, answer.body);
    for (const auto& [name, value] : answer.headers.entries()) EXPECT_EQ(got.header(name), value);
    EXPECT_EQ(got.header("idempotent-replayed"), replayed ? "true" : "");
  }
}

TEST_F(HttpSource, ACallerWhoHangsUpChangesNothing) {
  start();
  Taker lane(*charge_source);
  Client caller(listener->port());
  caller.send(post("/charges", "kept", with_key("a")));
  auto delivery = lane.take();
  caller.hang_up();
  EXPECT_EQ(delivery.body, "kept");
  EXPECT_TRUE(lane.has_nothing());
  lane.settle(delivery, Done{});
}

TEST_F(HttpSource, WhoWaitsTooLongIsToldSoAndTheWorkGoesOn) {
  start({.answer_deadline = 0s});
  Taker lane(*charge_source);
  Client caller(listener->port());
  const auto late = caller.ask(post("/charges", "slow", with_key("a")));
  EXPECT_EQ(late.status, 503);
  EXPECT_FALSE(late.header("retry-after").empty());
  EXPECT_THAT(late.body, HasSubstr("urn:semel:problem:answer-late"));
  auto delivery = lane.take();
  EXPECT_EQ(delivery.body, "slow");
  lane.settle(delivery, Done{});
}

TEST_F(HttpSource, FiftyRequestsOfOneKeyAtOnceEachGetAnAnswer) {
  start();
  std::atomic<int> answered = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 50; ++i)
    callers.emplace_back([&] {
      Client caller(listener->port());
      answered += caller.ask(post("/charges", "{}", with_key("same"))).status == 201;
    });
  std::vector<std::thread> lanes;
  std::atomic<int> left = 50;
  for (int i = 0; i < 2; ++i)
    lanes.emplace_back([&] {
      Taker lane(*charge_source);
      while (left > 0) {
        std::vector<Settlement> settlements;
        auto batch = lane.receiver->receive(10).value();
        for (auto& delivery : batch.deliveries)
          settlements.push_back({std::move(delivery.receipt), Done{.answer = {.status = 201}}});
        left -= static_cast<int>(settlements.size());
        const bool nothing = settlements.empty();
        lane.receiver->settle(std::move(settlements));
        if (nothing && left > 0) lane.bell.wait(10ms);
      }
    });
  for (auto& caller : callers) caller.join();
  for (auto& lane : lanes) lane.join();
  EXPECT_EQ(answered, 50);
}

// Settings.

TEST(HttpListener, RefusesSourcesThatCannotWork) {
  const auto listener = listen({.port = 0}).value();
  listener->add(charges()).value();
  auto webhook = [](std::string name, std::string path, Verification verify = {}) {
    return Webhook{.name = std::move(name), .path = std::move(path), .verify = std::move(verify)};
  };
  const Webhook cases[] = {
      webhook("hook", "/charges"),
      webhook("charges", "/other"),
      webhook("", "/other"),
      webhook("hook", "other"),
      webhook("hook", "/a?b"),
      webhook("hook", "/a b"),
      webhook("hook", "/other", {.scheme = Verification::Scheme::github}),
      webhook("hook", "/other", {.scheme = Verification::Scheme::stripe, .secrets = {{"live", "sk_confidential"}}}),
  };
  for (const auto& bad : cases) {
    const auto added = listener->add(bad);
    ASSERT_FALSE(added) << bad.name << " " << bad.path;
    EXPECT_EQ(added.error().code, ErrorCode::source_settings_invalid);
    EXPECT_THAT(added.error().message, Not(HasSubstr("confidential")));
  }
  EXPECT_FALSE(
      listener->add(Requests{.name = "r", .path = "/r", .principal = {.from = Principal::From::header, .header = ""}}));
  listener->start().value();
  EXPECT_FALSE(listener->add(webhook("late", "/late"))) << "the paths are fixed once it serves";
  EXPECT_FALSE(listener->start()) << "it starts once";
}

TEST(HttpListener, SaysThatItsPortIsInUse) {
  const auto first = listen({.port = 0}).value();
  first->start().value();
  const auto second = listen({.port = first->port()}).value();
  const auto started = second->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::address_in_use);
}

TEST(HttpListener, ServesTls) {
  const net::Certificate certificate;
  const auto listener = listen({.port = 0, .tls = Tls{certificate.certificate_file(), certificate.key_file()}}).value();
  Taker lane(*listener->add(charges()).value());
  listener->start().value();
  Client caller(listener->port(), Client::Over::tls);
  ASSERT_TRUE(caller.connected());
  caller.send(post("/charges", "{}", with_key("a")));
  auto delivery = lane.take();
  lane.settle(delivery, Done{.answer = {.status = 201}});
  EXPECT_EQ(caller.receive().status, 201);
}

}  // namespace
}  // namespace semel::http
