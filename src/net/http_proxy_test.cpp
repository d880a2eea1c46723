// The pass-through over real sockets: clients on one side, a server of ours or a hand-driven one on the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "net/http_client_for_tests.hpp"
#include "net/http_server.hpp"
#include "net/upstream_for_tests.hpp"

namespace semel::net {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view get = "GET /a?b=c HTTP/1.1\r\nHost: shop.example\r\n\r\n";

std::string get_of(std::string_view target) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: shop.example\r\n\r\n";
}

std::string answer(std::string_view body, std::string_view headers = "") {
  return "HTTP/1.1 200 OK\r\n" + std::string(headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

UpstreamOptions at(const RawUpstream& upstream) { return upstream_at(upstream.url()).value(); }

std::unique_ptr<Server> proxy_to(UpstreamOptions upstream, ServerOptions options = {}) {
  Service service;
  service.upstreams = {std::move(upstream)};
  service.forward = [](const RequestHead& head) {
    return head.target().starts_with("/served") ? std::nullopt : std::optional<std::size_t>(0);
  };
  service.serve = [](Request request, Responder responder) {
    std::move(responder).answer({.body = "served here: " + request.body});
  };
  return serve(std::move(options), std::move(service)).value();
}

class Proxy : public testing::Test {
 protected:
  void start(ServerOptions options = {}) { start(at(upstream), std::move(options)); }
  void start(UpstreamOptions to, ServerOptions options = {}) { server = proxy_to(std::move(to), std::move(options)); }
  Client client() { return Client(server->port()); }

  RawUpstream upstream;
  std::unique_ptr<Server> server;
};

TEST_F(Proxy, PassesRequestAndAnswerThroughOnKeptConnections) {
  start();
  auto caller = client();
  caller.send(get);
  auto behind = upstream.accept();
  const auto head = behind.receive_until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("GET /a?b=c HTTP/1.1\r\nHost: shop.example\r\n"));
  behind.send(answer("one", "X-Answer: yes\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2; expires=Mon, 21 Oct 2030\r\n"));
  const auto got = caller.receive();
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, "one");
  EXPECT_EQ(got.header("x-answer"), "yes");
  EXPECT_EQ(got.headers.count("set-cookie"), 2u);
  EXPECT_EQ(got.headers.count("date"), 1u) << "added where the service gave none";
  caller.send(post("/p", "body"));
  EXPECT_THAT(behind.receive_until("\r\n\r\nbody"),
              AllOf(StartsWith("POST /p HTTP/1.1\r\n"), EndsWith("\r\n\r\nbody")));
  behind.send(answer("two"));
  EXPECT_EQ(caller.receive().body, "two");
  EXPECT_FALSE(upstream.has_caller()) << "one connection is enough";
}

TEST_F(Proxy, WhatIsServedHereIsStillServedHere) {
  start();
  auto caller = client();
  EXPECT_EQ(caller.ask(post("/served", "x")).body, "served here: x");
  caller.send(get);
  auto behind = upstream.accept();
  behind.receive_until("\r\n\r\n");
  behind.send(answer("passed"));
  EXPECT_EQ(caller.receive().body, "passed");
  EXPECT_EQ(caller.ask(post("/served", "y")).body, "served here: y");
}

TEST_F(Proxy, HeadersOfOneConnectionStayBehindAndOursAreAdded) {
  start();
  auto caller = client();
  caller.send(
      "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\n"
      "Proxy-Authorization: Basic x\r\nTE: trailers\r\nTrailer: x\r\nUpgrade: h2c\r\nX-Yours: 2\r\n"
      "Authorization: Bearer t\r\nCookie: c=1\r\nX-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n"
      "X-Forwarded-Host: evil\r\nVia: 1.0 before\r\n\r\n");
  auto behind = upstream.accept();
  const auto head = behind.receive_until("\r\n\r\n");
  for (const char* gone :
       {"Connection", "X-Mine", "Keep-Alive", "Proxy-Auth", "TE:", "Trailer", "Upgrade", "6.6.6.6", "evil"})
    EXPECT_THAT(head, Not(HasSubstr(gone))) << gone;
  for (const char* kept :
       {"X-Yours: 2\r\n", "Authorization: Bearer t\r\n", "Cookie: c=1\r\n", "Via: 1.0 before\r\n", "Via: 1.1 semel\r\n",
        "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Proto: http\r\n", "X-Forwarded-Host: h\r\n"})
    EXPECT_THAT(head, HasSubstr(kept));
  behind.send(answer(
      "x",
      "Connection: close, X-Gone\r\nX-Gone: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: y\r\nX-Kept: 1\r\n"));
  const auto got = caller.receive();
  for (const char* gone : {"connection", "x-gone", "keep-alive", "proxy-authenticate"})
    EXPECT_EQ(got.headers.count(gone), 0u) << gone;
  EXPECT_EQ(got.header("x-kept"), "1");
}

TEST_F(Proxy, ViaNamesTheVersionThatTheClientSpoke) {
  start();
  for (const char* version : {"1.0", "1.1"}) {
    auto caller = client();
    caller.send("GET / HTTP/" + std::string(version) + "\r\nHost: h\r\nVia: 1.1 before\r\n\r\n");
    auto behind = upstream.accept();
    EXPECT_THAT(behind.receive_until("\r\n\r\n"),
                testing::ContainsRegex("Via: 1.1 before\r\n(.*\r\n)*Via: " + std::string(version) + " semel\r\n"));
    behind.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(caller.receive().status, 204);
  }
}

TEST_F(Proxy, MaxForwardsCountsDownWhereItCounts) {
  const std::string far = "99999999999999999999";
  start();
  for (const auto& [method, sent, passed] : {std::tuple{"OPTIONS", std::string("7"), std::string("6")},
                                             std::tuple{"TRACE", std::string("1"), std::string("0")},
                                             std::tuple{"OPTIONS", far, std::string("18446744073709551614")},
                                             std::tuple{"OPTIONS", std::string("many"), std::string("many")},
                                             std::tuple{"GET", std::string("0"), std::string("0")}}) {
    auto caller = client();
    caller.send(std::string(method) + " / HTTP/1.1\r\nHost: h\r\nMax-Forwards: " + sent + "\r\n\r\n");
    auto behind = upstream.accept();
    EXPECT_THAT(behind.receive_until("\r\n\r\n"), HasSubstr("\r\nMax-Forwards: " + passed + "\r\n")) << method;
    behind.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(caller.receive().status, 204);
  }
}

TEST_F(Proxy, WhatMayBeForwardedNoMoreIsAnsweredHere) {
  start();
  const auto options = client().ask("OPTIONS * HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n");
  EXPECT_EQ(options.status, 200);
  EXPECT_EQ(options.body, "");
  const auto trace = client().ask(
      "TRACE /a?b HTTP/1.1\r\nHost: h\r\nX-Mine: 1\r\nMax-Forwards: 00\r\nCookie: c\r\nX-Api-Key: k\r\n\r\n");
  EXPECT_EQ(trace.status, 200);
  EXPECT_EQ(trace.header("content-type"), "message/http");
  EXPECT_EQ(trace.body, "TRACE /a?b HTTP/1.1\r\nHost: h\r\nX-Mine: 1\r\nMax-Forwards: 00\r\n\r\n");
  EXPECT_FALSE(upstream.has_caller());
}

TEST_F(Proxy, ATrustedProxysForwardedHeadersAreKeptAndExtended) {
  auto options = at(upstream);
  options.trust_forwarded = true;
  options.keep_host = false;
  start(options);
  auto caller = client();
  caller.send(
      "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2\r\nX-Forwarded-Proto: "
      "https\r\n"
      "X-Forwarded-Host: shop\r\n\r\n");
  auto behind = upstream.accept();
  const auto head = behind.receive_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("X-Forwarded-For: 10.0.0.1, 10.0.0.2, 127.0.0.1\r\n"));
  EXPECT_THAT(head, HasSubstr("X-Forwarded-Proto: https\r\n"));
  EXPECT_THAT(head, AllOf(HasSubstr("X-Forwarded-Host: shop\r\n"), Not(HasSubstr("X-Forwarded-Host: h\r\n"))));
  EXPECT_THAT(head, HasSubstr("\r\nHost: " + options.authority() + "\r\n"));
}

TEST_F(Proxy, ATraceparentIsKeptOrMade) {
  start();
  auto caller = client();
  caller.send(get);
  auto behind = upstream.accept();
  EXPECT_THAT(behind.receive_until("\r\n\r\n"),
              testing::ContainsRegex("traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-01\r\n"));
  behind.send(answer(""));
  caller.receive();
  const std::string given = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\r\n";
  caller.send("GET / HTTP/1.1\r\nHost: h\r\n" + given + "\r\n");
  const auto head = behind.receive_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr(given));
  EXPECT_EQ(head.find("traceparent"), head.rfind("traceparent"));
}

TEST_F(Proxy, ABasePathComesBeforeTheTargetAndATargetsHostOutweighsTheField) {
  auto options = upstream_at(upstream.url() + "/base/").value();
  start(options);
  auto caller = client();
  caller.send("GET http://named.example/x?y HTTP/1.1\r\nHost: other\r\n\r\n");
  EXPECT_THAT(upstream.accept().receive_until("\r\n\r\n"),
              StartsWith("GET /base/x?y HTTP/1.1\r\nHost: named.example\r\n"));
}

// Bodies.

TEST_F(Proxy, ALargeBodyIsSentOnWhileItArrives) {
  start();
  auto caller = client();
  const std::string part(100'000, 'x');
  caller.send("POST /up HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" + part);
  auto behind = upstream.accept();
  EXPECT_THAT(behind.receive_until("\r\n\r\n"), HasSubstr("Content-Length: 200000\r\n"));
  EXPECT_EQ(behind.receive(part.size()), part) << "before the client has sent the rest";
  caller.send(part);
  EXPECT_EQ(behind.receive(part.size()), part);
  behind.send(answer("got it"));
  EXPECT_EQ(caller.receive().body, "got it");
  caller.send(get);
  behind.receive_until("\r\n\r\n");
  behind.send(answer("next"));
  EXPECT_EQ(caller.receive().body, "next") << "both connections live on";
}

TEST_F(Proxy, ChunkedBodiesStayChunkedBothWays) {
  start();
  auto caller = client();
  caller.send("POST /up HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  auto behind = upstream.accept();
  EXPECT_THAT(behind.receive_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(behind.receive_until("abc\r\n"), "3\r\nabc\r\n") << "sent on at once";
  caller.send("4;ext=1\r\ndefg\r\n0\r\nTrailer-Field: dropped\r\n\r\n");
  EXPECT_EQ(behind.receive_until("0\r\n\r\n"), "4\r\ndefg\r\n0\r\n\r\n");
  behind.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  EXPECT_THAT(caller.receive_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(caller.receive_until("hello\r\n"), "5\r\nhello\r\n") << "sent on at once";
  behind.send("6\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n");
  EXPECT_EQ(caller.receive_until("0\r\n\r\n"), "6\r\n world\r\n0\r\n\r\n");
  caller.send(get);
  behind.receive_until("\r\n\r\n");
  behind.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
  EXPECT_THAT(caller.receive_until("0\r\n\r\n"), EndsWith("\r\n\r\n2\r\nab\r\n0\r\n\r\n"));
}

TEST_F(Proxy, ALargeAnswerPassesWithItsLength) {
  start();
  auto caller = client();
  caller.send(get);
  auto behind = upstream.accept();
  behind.receive_until("\r\n\r\n");
  const std::string body(3'000'000, 'y');
  std::thread sender([&] { behind.send(answer(body)); });
  EXPECT_EQ(caller.receive().body, body);
  sender.join();
}

TEST_F(Proxy, AnAnswerThatEndsWithItsConnectionIsChunkedForWhoCanReadIt) {
  start();
  auto caller = client();
  caller.send(get);
  {
    auto behind = upstream.accept();
    behind.receive_until("\r\n\r\n");
    behind.send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
  }
  EXPECT_THAT(caller.receive_until("0\r\n\r\n"), EndsWith("\r\n\r\nd\r\nuntil the end\r\n0\r\n\r\n"));
  auto old = client();
  old.send("GET / HTTP/1.0\r\n\r\n");
  {
    auto behind = upstream.accept();
    EXPECT_THAT(behind.receive_until("\r\n\r\n"), HasSubstr("Host: 127.0.0.1:"));
    behind.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nold\r\n0\r\n\r\n");
  }
  EXPECT_THAT(old.receive_rest(),
              AllOf(HasSubstr("Connection: close\r\n"), Not(HasSubstr("chunked")), EndsWith("\r\n\r\nold")));
}

TEST_F(Proxy, AnswersWithoutABodyKeepTheConnection) {
  start();
  auto caller = client();
  caller.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto behind = upstream.accept();
  behind.receive_until("\r\n\r\n");
  behind.send("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n");
  EXPECT_EQ(caller.receive(true).header("content-length"), "1234");
  for (const char* status : {"204 No Content", "304 Not Modified"}) {
    caller.send(get);
    behind.receive_until("\r\n\r\n");
    behind.send("HTTP/1.1 " + std::string(status) + "\r\nETag: \"1\"\r\n\r\n");
    EXPECT_THAT(caller.receive_until("\r\n\r\n"), StartsWith("HTTP/1.1 " + std::string(status) + "\r\n"));
  }
}

TEST_F(Proxy, InterimAnswersPassAndTheBodyFollowsThem) {
  start();
  auto caller = client();
  caller.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  auto behind = upstream.accept();
  EXPECT_THAT(behind.receive_until("\r\n\r\n"), HasSubstr("Expect: 100-continue\r\n"));
  behind.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
  EXPECT_EQ(caller.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(caller.receive_until("\r\n\r\n"), "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
  caller.send("body");
  EXPECT_EQ(behind.receive(4), "body");
  behind.send(answer("done"));
  EXPECT_EQ(caller.receive().body, "done");
}

TEST_F(Proxy, AnAnswerBeforeTheBodyIsPassedOnAtOnceAndEndsTheConnection) {
  start();
  auto caller = client();
  caller.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nabc");
  auto behind = upstream.accept();
  behind.receive_until("\r\n\r\nabc");
  behind.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
  const auto got = caller.receive();
  EXPECT_EQ(got.status, 413);
  EXPECT_EQ(got.body, "no");
  EXPECT_EQ(got.header("connection"), "close");
  EXPECT_TRUE(behind.ended());
  caller.half_close();
  EXPECT_TRUE(caller.ended());
}

TEST_F(Proxy, BodiesMayPassBothWaysAtOnce) {
  start();
  auto caller = client();
  caller.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
  auto behind = upstream.accept();
  behind.receive_until("\r\n\r\n1\r\na\r\n");
  behind.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nA\r\n");
  caller.receive_until("A\r\n");
  caller.send("1\r\nb\r\n0\r\n\r\n");
  EXPECT_EQ(behind.receive_until("0\r\n\r\n"), "1\r\nb\r\n0\r\n\r\n") << "after the answer has begun";
  behind.send("1\r\nB\r\n0\r\n\r\n");
  EXPECT_EQ(caller.receive_until("0\r\n\r\n"), "1\r\nB\r\n0\r\n\r\n");
}

TEST_F(Proxy, PipelinedRequestsAreAnsweredInTheirOrder) {
  start();
  auto caller = client();
  caller.send(get_of("/1") + post("/2", "two") + get_of("/3"));
  auto behind = upstream.accept();
  for (const char* target : {"/1", "/2", "/3"}) {
    EXPECT_THAT(behind.receive_until("\r\n\r\n"), HasSubstr(std::string(" ") + target + " "));
    if (target == std::string_view("/2")) behind.receive(3);
    behind.send(answer(target));
    EXPECT_EQ(caller.receive().body, target);
  }
}

// What goes wrong.

TEST_F(Proxy, AServiceThatIsAwayIsToldAsSuch) {
  start();
  upstream.stop_listening();
  auto caller = client();
  const auto got = caller.ask(get);
  EXPECT_EQ(got.status, 502);
  EXPECT_THAT(got.body, HasSubstr("urn:semel:problem:upstream-unreachable"));
  EXPECT_EQ(caller.ask(get).status, 502) << "the client's connection lives on";
}

TEST_F(Proxy, AServiceThatIsSilentIsTimedOut) {
  auto options = at(upstream);
  options.silence_max = 30ms;
  start(options);
  auto caller = client();
  caller.send(get);
  auto behind = upstream.accept();
  const auto got = caller.receive();
  EXPECT_EQ(got.status, 504);
  EXPECT_THAT(got.body, HasSubstr("urn:semel:problem:upstream-timeout"));
  behind.receive_until("\r\n\r\n");
  EXPECT_TRUE(behind.ended());
}

TEST_F(Proxy, AnAnswerThatIsNoneIsToldAsSuch) {
  start();
  for (const char* said :
       {"", "HTTP/1.1 200 OK\r\nContent-", "nonsense\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"}) {
    auto caller = client();
    caller.send(get);
    {
      auto behind = upstream.accept();
      behind.receive_until("\r\n\r\n");
      behind.send(said);
    }
    const auto got = caller.receive();
    EXPECT_EQ(got.status, 502) << said;
    EXPECT_THAT(got.body, HasSubstr("urn:semel:problem:upstream-failed")) << said;
  }
}

TEST_F(Proxy, AnAnswerThatStopsMidwayIsCutOff) {
  start();
  for (const char* said : {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"}) {
    auto caller = client();
    caller.send(get);
    {
      auto behind = upstream.accept();
      behind.receive_until("\r\n\r\n");
      behind.send(said);
      EXPECT_THAT(caller.receive_until("half"), EndsWith("half"));
    }
    EXPECT_THAT(caller.receive_rest(), Not(HasSubstr("0\r\n\r\n")));
  }
}

/// A kept connection that the service closes under the next request.
RawConnection kept_connection(Client& caller, RawUpstream& upstream) {
  caller.send(get);
  auto behind = upstream.accept();
  behind.receive_until("\r\n\r\n");
  behind.send(answer("first"));
  EXPECT_EQ(caller.receive().body, "first");
  return behind;
}

TEST_F(Proxy, WhatAServiceSaysUnaskedIsNobodysAnswer) {
  start();
  auto first = client();
  first.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto behind = upstream.accept();
  behind.receive_until("\r\n\r\n");
  behind.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n");
  first.receive(true);
  behind.send(answer("somebody else's"));
  auto second = client();
  second.send(get);
  auto fresh = upstream.accept();
  fresh.receive_until("\r\n\r\n");
  fresh.send(answer("yours"));
  EXPECT_EQ(second.receive().body, "yours");
}

TEST_F(Proxy, AStatusBelow100IsNoAnswer) {
  start();
  auto caller = client();
  caller.send(get);
  auto behind = upstream.accept();
  behind.receive_until("\r\n\r\n");
  behind.send("HTTP/1.1 000 Odd\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(caller.receive().status, 502);
}

TEST_F(Proxy, AnIdempotentRequestIsSentAgainWhereAKeptConnectionDies) {
  start();
  for (const std::string& request :
       {std::string(get), std::string("PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi")}) {
    auto caller = client();
    auto behind = kept_connection(caller, upstream);
    caller.send(request);
    const auto first = behind.receive_until("\r\n\r\n");
    behind.close();
    auto again = upstream.accept();
    EXPECT_EQ(again.receive_until("\r\n\r\n"), first);
    again.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nagain");
    EXPECT_EQ(caller.receive().body, "again");
  }
}

TEST_F(Proxy, APostIsNeverSentAgain) {
  start();
  auto caller = client();
  auto behind = kept_connection(caller, upstream);
  caller.send(post("/pay", "100"));
  behind.receive_until("\r\n\r\n100");
  behind.close();
  const auto got = caller.receive();
  EXPECT_EQ(got.status, 502);
  EXPECT_THAT(got.body, HasSubstr("upstream-failed"));
  EXPECT_FALSE(upstream.has_caller());
}

TEST_F(Proxy, AKeptConnectionThatWasClosedMeanwhileIsNotUsed) {
  start();
  auto caller = client();
  kept_connection(caller, upstream);
  caller.send(post("/pay", "100"));
  auto behind = upstream.accept();
  EXPECT_THAT(behind.receive_until("\r\n\r\n100"), StartsWith("POST /pay"));
  behind.send(answer("paid"));
  EXPECT_EQ(caller.receive().body, "paid");
}

TEST_F(Proxy, WhatAnswersNoByteOnANewConnectionIsNotAskedTwice) {
  start();
  auto caller = client();
  caller.send(get);
  upstream.accept().receive_until("\r\n\r\n");
  EXPECT_EQ(caller.receive().status, 502);
  EXPECT_FALSE(upstream.has_caller());
}

TEST_F(Proxy, AClientThatHangsUpEndsItsRequestUpstream) {
  start();
  {
    auto caller = client();
    caller.send(get);
    auto behind = upstream.accept();
    behind.receive_until("\r\n\r\n");
    caller.hang_up();
    EXPECT_TRUE(behind.ended());
  }
  auto caller = client();
  caller.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nabc");
  auto behind = upstream.accept();
  behind.receive_until("\r\n\r\nabc");
  caller.half_close();
  EXPECT_TRUE(behind.ended()) << "the rest of its body will never come";
}

TEST_F(Proxy, ABodyThatIsNoneGets400AndOneThatStops408) {
  start({.receive_timeout = 200ms});
  auto caller = client();
  caller.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n");
  EXPECT_EQ(caller.receive().status, 400);
  auto slow = client();
  slow.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nabc");
  EXPECT_EQ(slow.receive().status, 408);
}

TEST_F(Proxy, WhatCouldBeReadInTwoWaysIsRefused) {
  start();
  for (const char* headers :
       {"Transfer-Encoding: gzip\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n", "Content-Length: +3\r\n", "Host: two\r\n",
        "Transfer-Encoding: identity\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"}) {
    auto caller = client();
    caller.send("POST / HTTP/1.1\r\nHost: h\r\n" + std::string(headers) + "\r\nabc");
    EXPECT_EQ(caller.receive().status, 400) << headers;
  }
  auto old = client();
  old.send("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_EQ(old.receive().status, 400);
  EXPECT_FALSE(upstream.has_caller());
}

TEST_F(Proxy, WebSocketsAndTunnelsAreRefused) {
  start();
  for (const char* request : {"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
                              "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"}) {
    auto caller = client();
    const auto got = caller.ask(request);
    EXPECT_EQ(got.status, 501);
    EXPECT_THAT(got.body, HasSubstr("upgrade-not-supported"));
  }
}

TEST_F(Proxy, StopLetsAPassingRequestBeAnsweredAndEndsItAtTheDeadline) {
  start();
  auto caller = client();
  caller.send(get);
  auto behind = upstream.accept();
  behind.receive_until("\r\n\r\n");
  auto stopping = std::async(std::launch::async, [&] { server->stop(20s); });
  EXPECT_TRUE(Client(server->port()).ended()) << "accepts no more";
  behind.send(answer("last"));
  const auto got = caller.receive();
  EXPECT_EQ(got.body, "last");
  stopping.get();
  start();
  auto late = client();
  late.send(get);
  auto silent = upstream.accept();
  silent.receive_until("\r\n\r\n");
  server->stop(1ms);
  EXPECT_TRUE(late.ended());
  EXPECT_TRUE(silent.ended());
}

TEST_F(Proxy, AClientOverTlsIsToldToTheService) {
  Certificate certificate;
  start({.tls = TlsFiles{certificate.certificate_file(), certificate.key_file()}});
  Client caller(server->port(), Client::Over::tls);
  caller.send(get);
  auto behind = upstream.accept();
  EXPECT_THAT(behind.receive_until("\r\n\r\n"), HasSubstr("X-Forwarded-Proto: https\r\n"));
  const std::string body(100'000, 'z');
  behind.send(answer(body));
  EXPECT_EQ(caller.receive().body, body);
}

TEST(ProxyToTls, TheServicesCertificateIsChecked) {
  Certificate certificate;
  const auto behind =
      serve(
          {.tls = TlsFiles{certificate.certificate_file(), certificate.key_file()}},
          {.serve = [](Request request,
                       Responder responder) { std::move(responder).answer({.body = request.method + request.body}); }})
          .value();
  const auto port = ":" + std::to_string(behind->port());
  struct Case {
    std::string url;
    std::string ca_file;
    int status;
  };
  for (const auto& [url, ca_file, status] : {Case{"https://localhost" + port, certificate.certificate_file(), 200},
                                             Case{"https://localhost" + port, "", 502},
                                             Case{"https://127.0.0.1" + port, certificate.certificate_file(), 502},
                                             Case{"https://localhost" + port, "/nowhere", 502}}) {
    auto options = upstream_at(url).value();
    options.ca_file = ca_file;
    const auto server = proxy_to(options);
    Client caller(server->port());
    EXPECT_EQ(caller.ask(post("/", "x")).status, status) << url << " " << ca_file;
    if (status != 200) continue;
    EXPECT_EQ(caller.ask(post("/", std::string(100'000, 'y'))).body.size(), 100'004u);
  }
}

TEST(ProxyToServer, ManyClientsAtOnceAreAllAnswered) {
  const auto behind = serve({}, {.serve =
                                     [](Request request, Responder responder) {
                                       std::move(responder).answer({.body = request.target + request.body});
                                     }})
                          .value();
  const auto server = proxy_to(upstream_at("http://127.0.0.1:" + std::to_string(behind->port())).value());
  std::vector<std::thread> clients;
  for (int i = 0; i < 20; ++i)
    clients.emplace_back([&, i] {
      Client caller(server->port());
      for (int n = 0; n < 20; ++n) {
        const auto target = "/" + std::to_string(i) + "-" + std::to_string(n);
        const std::string body(static_cast<std::size_t>(n * n * 50), 'b');
        EXPECT_EQ(caller.ask(post(target, body)).body, target + body);
      }
    });
  for (auto& one : clients) one.join();
}

TEST(Upstream, IsReadFromItsUrl) {
  struct Case {
    const char* url;
    const char* authority;
    const char* base_path;
    bool tls;
  };
  for (const auto& [url, authority, base_path, tls] :
       {Case{"http://a", "a", "", false}, Case{"http://a:80/", "a", "", false},
        Case{"https://a.b:443/x/y/", "a.b", "/x/y", true}, Case{"http://[::1]:3000", "[::1]:3000", "", false},
        Case{"https://a:80", "a:80", "", true}}) {
    const auto options = upstream_at(url).value();
    EXPECT_EQ(options.authority(), authority) << url;
    EXPECT_EQ(options.base_path, base_path) << url;
    EXPECT_EQ(options.tls, tls) << url;
  }
  for (const char* url : {"", "a:80", "ftp://a", "http://", "http://:80", "http://a:", "http://a:0", "http://a:65536",
                          "http://a?b", "http://a b", "http://[::1", "http://::1", "http://a/#x"})
    EXPECT_FALSE(upstream_at(url)) << url;
  const auto with_password = upstream_at("http://user:hunter2@a");
  ASSERT_FALSE(with_password);
  EXPECT_THAT(with_password.error().message, Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace semel::net
