// A gateway on a listener: what is guarded, what passes through, and what a guarded delivery holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <semel/sources/http.hpp>

#include "base/digest.hpp"
#include "base/encoding.hpp"
#include "net/http_client_for_tests.hpp"
#include "net/upstream_for_tests.hpp"
#include "sources/http/taker_for_tests.hpp"

namespace semel::http {
namespace {

using net::Client;
using net::post;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view key = "Idempotency-Key: \"k1\"\r\n";
const Principal anybody{.from = Principal::From::none};

class GatewayTest : public testing::Test {
 protected:
  void start(std::vector<GuardedRoute> routes, Options options = {}) {
    options.port = 0;
    listener = listen(std::move(options)).value();
    listener->add(Requests{.name = "own", .path = "/own", .principal = anybody}).value();
    Upstream service{.url = upstream.url(), .timeout = timeout};
    sources = listener->add(Gateway{.name = "api", .upstream = service, .routes = std::move(routes)}).value();
    listener->start().value();
  }
  Client client() { return Client(listener->port()); }

  /// That the request reaches the service, and its answer the caller.
  void expect_passed(const std::string& request) {
    auto caller = client();
    caller.send(request);
    auto behind = upstream.accept();
    EXPECT_THAT(behind.receive_until("\r\n\r\n"), StartsWith(request.substr(0, request.find("\r\n")))) << request;
    behind.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\npassed");
    EXPECT_EQ(caller.receive().body, "passed") << request;
  }

  net::RawUpstream upstream;
  std::chrono::milliseconds timeout{30'000};
  std::unique_ptr<Listener> listener;
  std::vector<semel::Source*> sources;
};

GuardedRoute payments() {
  return {.name = "payments", .methods = {"POST", "PUT"}, .path = "/payments", .principal = anybody};
}

TEST_F(GatewayTest, AGuardedRequestBecomesADeliveryAndIsAnsweredByItsVerdict) {
  start({payments()});
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(sources[0]->name(), "payments");
  Taker lane(*sources[0]);
  auto caller = client();
  caller.send(post("/payments?dry=0", "{\"amount\":1}",
                   std::string(key) + "X-Shop: 7\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\nTE: trailers\r\n"));
  auto delivery = lane.take();
  EXPECT_EQ(delivery.sender, Sender::caller);
  EXPECT_EQ(delivery.source, "payments");
  EXPECT_EQ(delivery.body, "{\"amount\":1}");
  EXPECT_EQ(delivery.attributes.find(":method"), "POST");
  EXPECT_EQ(delivery.attributes.find(":path"), "/payments?dry=0");
  EXPECT_EQ(delivery.attributes.find("idempotency-key"), "k1");
  EXPECT_EQ(delivery.attributes.find("x-shop"), "7");
  EXPECT_EQ(delivery.attributes.find("host"), "semel");
  EXPECT_EQ(delivery.attributes.find("via"), "1.1 semel");
  EXPECT_EQ(delivery.attributes.find("x-forwarded-for"), "127.0.0.1");
  EXPECT_TRUE(delivery.attributes.find("traceparent"));
  for (const char* name : {"connection", "x-mine", "te", "content-length"})
    EXPECT_EQ(delivery.attributes.count(name), 0u) << name;
  lane.settle(delivery, Done{.answer = {.status = 201, .headers = {{"Location", "/payments/1"}}, .body = "made"}});
  const auto got = caller.receive();
  EXPECT_EQ(got.status, 201);
  EXPECT_EQ(got.header("location"), "/payments/1");
  EXPECT_FALSE(upstream.has_caller()) << "the call is the handler's";
}

TEST_F(GatewayTest, AGuardedRequestNamesTheVersionThatItCameBy) {
  start({payments()});
  Taker lane(*sources[0]);
  auto caller = client();
  caller.send("POST /payments HTTP/1.0\r\nContent-Length: 0\r\n" + std::string(key) + "\r\n");
  auto delivery = lane.take();
  EXPECT_EQ(delivery.attributes.find("via"), "1.0 semel");
  lane.settle(delivery, Done{});
  EXPECT_EQ(caller.receive().status, 200);
}

TEST_F(GatewayTest, CredentialsTravelApartFromWhatMayBeStored) {
  auto route = payments();
  route.credentials = {"X-Our-Pass"};
  start({route});
  Taker lane(*sources[0]);
  auto caller = client();
  caller.send(post("/payments", "",
                   std::string(key) + "AUTHORIZATION: Bearer t\r\nCookie: s=1\r\nx-api-key: a\r\nx-our-pass: b\r\n"
                                      "Proxy-Authorization: p\r\nX-Other: o\r\n"));
  const auto delivery = lane.take();
  for (const char* name : {"Authorization", "Cookie", "X-Api-Key", "X-Our-Pass"}) {
    EXPECT_EQ(delivery.credentials.count(name), 1u) << name;
    EXPECT_EQ(delivery.attributes.count(name), 0u) << name;
  }
  EXPECT_EQ(delivery.credentials.entries().size(), 4u);
  EXPECT_EQ(delivery.attributes.count("Proxy-Authorization"), 0u);
  EXPECT_EQ(delivery.attributes.find("X-Other"), "o");
}

TEST_F(GatewayTest, SafeMethodsAndOtherPathsPassThrough) {
  start({payments()});
  Taker lane(*sources[0]);
  expect_passed("GET /payments HTTP/1.1\r\nHost: h\r\n" + std::string(key) + "\r\n");
  expect_passed("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
  expect_passed("DELETE /payments HTTP/1.1\r\nHost: h\r\n\r\n");
  expect_passed("POST /payments/1 HTTP/1.1\r\nHost: h\r\n\r\n");
  expect_passed(post("/other", "", key));
  EXPECT_TRUE(lane.has_nothing());
}

TEST_F(GatewayTest, OtherSourcesKeepTheirPaths) {
  start({payments()});
  EXPECT_EQ(client().ask(post("/own", "")).status, 400) << "needs a key";
  EXPECT_EQ(client().ask("GET /own HTTP/1.1\r\nHost: h\r\n\r\n").status, 405);
  EXPECT_FALSE(upstream.has_caller());
}

TEST_F(GatewayTest, AGuardedRequestThatCannotBeStoredIsRefusedByName) {
  start({payments()});
  const std::pair<std::string, std::string> cases[] = {
      {post("/payments", "{}", std::string(key) + "X-Name: Z\xfcrich\r\n"), "the header X-Name is not UTF-8"},
      {post("/payments?a=\xfc", "{}", key), "the target is not UTF-8"}};
  for (const auto& [request, problem] : cases) {
    auto caller = client();
    caller.send(request);
    const auto got = caller.receive();
    EXPECT_EQ(got.status, 400);
    EXPECT_NE(got.body.find(problem), std::string::npos) << got.body;
  }
}

TEST_F(GatewayTest, NoSpellingOfAGuardedPathSlipsPast) {
  start({payments()});
  Taker lane(*sources[0]);
  for (const char* target : {"/payments", "/payments/", "//payments", "/%70ayments", "/x/../payments", "/./payments?a",
                             "http://other/payments", "/x/%2E%2e/payments"}) {
    const auto got = client().ask(post(target, ""));
    EXPECT_EQ(got.status, 400) << target;
    EXPECT_THAT(got.body, HasSubstr("urn:semel:problem:idempotency-key-missing")) << target;
  }
  EXPECT_FALSE(upstream.has_caller());
}

TEST_F(GatewayTest, TellsWhereTheServiceGaveNoAnswer) {
  std::vector<std::string> told;
  timeout = std::chrono::milliseconds(30);
  start({payments()}, {.on_problem = [&](int status, std::string_view problem) {
          told.push_back(std::to_string(status) + " " + std::string(problem));
        }});
  auto caller = client();
  EXPECT_EQ(caller.ask("GET /silent HTTP/1.1\r\nHost: h\r\n\r\n").status, 504);
  upstream.accept();
  upstream.stop_listening();
  EXPECT_EQ(caller.ask("GET /away HTTP/1.1\r\nHost: h\r\n\r\n").status, 502);
  EXPECT_EQ(caller.ask("GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n").status, 501);
  listener.reset();  // its thread writes what was told
  EXPECT_THAT(told, ElementsAre("504 upstream-timeout", "502 upstream-unreachable", "501 upgrade-not-supported"));
}

TEST_F(GatewayTest, WithoutAKeyARouteRefusesOrPassesAsItSays) {
  auto optional = payments();
  optional.name = "notes";
  optional.path = "/notes/*";
  optional.key = GuardedRoute::Key::optional;
  std::vector<std::string> refused;
  start({payments(), optional}, {.on_refused = [&](std::string_view source, const Error& why) {
          refused.push_back(std::string(source) + " " + code_name(why.code));
        }});
  Taker lane(*sources[1]);
  EXPECT_EQ(client().ask(post("/payments", "")).status, 400);
  expect_passed("POST /notes/1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(lane.has_nothing());
  EXPECT_EQ(client().ask(post("/notes/1", "", "Idempotency-Key: a, b\r\n")).status, 400)
      << "a bad key is no missing key";
  auto caller = client();
  caller.send(post("/notes/1", "", key));
  EXPECT_EQ(lane.take().source, "notes");
  EXPECT_THAT(refused, ElementsAre("payments SEMEL-0305", "notes SEMEL-0306"));
}

TEST_F(GatewayTest, TheFirstRouteThatFitsCounts) {
  auto all = payments();
  all.name = "all";
  all.path = "/**";
  start({payments(), all});
  Taker first(*sources[0]);
  Taker second(*sources[1]);
  auto caller = client();
  caller.send(post("/payments", "", key));
  EXPECT_EQ(first.take().source, "payments");
  auto other = client();
  other.send(post("/any/thing", "", key));
  EXPECT_EQ(second.take().source, "all");
}

TEST_F(GatewayTest, AGuardedBodyHasALimitAndAPassedOneHasNone) {
  start({payments()}, {.body_bytes_max = 1'000});
  const auto got = client().ask(post("/payments", std::string(1'001, 'x'), key));
  EXPECT_EQ(got.status, 413);
  EXPECT_THAT(got.body, HasSubstr("urn:semel:problem:body-too-large"));
  auto caller = client();
  caller.send(post("/upload", std::string(50'000, 'x')));
  auto behind = upstream.accept();
  behind.receive_until("\r\n\r\n");
  EXPECT_EQ(behind.receive(50'000).size(), 50'000u);
}

TEST_F(GatewayTest, APrincipalComesFromWhereTheRouteSays) {
  auto by_header = payments();
  by_header.principal = {.from = Principal::From::header, .header = "X-User"};
  auto by_credential = payments();
  by_credential.name = "refunds";
  by_credential.path = "/refunds";
  by_credential.principal = {.from = Principal::From::credential_digest};
  start({by_header, by_credential});
  Taker header(*sources[0]);
  Taker credential(*sources[1]);
  for (const char* path : {"/payments", "/refunds"}) {
    const auto got = client().ask(post(path, "", key));
    EXPECT_EQ(got.status, 401);
    EXPECT_THAT(got.body, HasSubstr("urn:semel:problem:principal-missing"));
  }
  auto caller = client();
  caller.send(post("/payments", "", std::string(key) + "X-User: ann\r\n"));
  EXPECT_EQ(header.take().principal, "ann");
  auto other = client();
  other.send(post("/refunds", "", std::string(key) + "Authorization: Bearer t\r\n"));
  const auto delivery = credential.take();
  EXPECT_EQ(delivery.principal, hex_encode(sha256("Bearer t")));
  EXPECT_EQ(delivery.credentials.find("authorization"), "Bearer t");
}

TEST(Gateway, WhatCannotWorkIsRefused) {
  const auto listener = listen({.port = 0}).value();
  const auto refusal = [&](GuardedRoute route, std::string url = "http://127.0.0.1:1") {
    const auto added =
        listener->add(Gateway{.name = "api", .upstream = {.url = std::move(url)}, .routes = {std::move(route)}});
    EXPECT_FALSE(added);
    if (added) return std::string();
    EXPECT_EQ(added.error().code, ErrorCode::source_settings_invalid);
    return added.error().message;
  };
  const auto with = [](auto change) {
    auto route = payments();
    change(route);
    return route;
  };
  EXPECT_THAT(refusal(payments(), "ftp://a"), HasSubstr("http:// or https://"));
  EXPECT_THAT(refusal(with([](auto& route) { route.methods = {"GET"}; })), HasSubstr("\"GET\" cannot be guarded"));
  EXPECT_THAT(refusal(with([](auto& route) { route.methods = {}; })), HasSubstr("no method"));
  EXPECT_THAT(refusal(with([](auto& route) { route.path = "payments"; })), HasSubstr("does not begin with /"));
  EXPECT_THAT(refusal(with([](auto& route) { route.name = ""; })), HasSubstr("needs a name"));
  EXPECT_THAT(refusal(with([](auto& route) { route.principal.from = Principal::From::header; })), HasSubstr("no name"));
  const Gateway twice{.name = "api", .upstream = {.url = "http://a"}, .routes = {payments(), payments()}};
  EXPECT_FALSE(listener->add(twice)) << "one name, two sources";
  listener->add(Gateway{.name = "api", .upstream = {.url = "http://a"}, .routes = {payments()}}).value();
  EXPECT_FALSE(listener->add(Gateway{.name = "second", .upstream = {.url = "http://a"}}));
  EXPECT_FALSE(listener->add(Requests{.name = "payments", .path = "/x", .principal = anybody}));
}

}  // namespace
}  // namespace semel::http
