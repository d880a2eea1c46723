#include "net/http_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "net/http_client_for_tests.hpp"
#include "net/problem.hpp"

namespace semel::net {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Answers each request with its method, target and body.
void echo(const Request& request, Responder responder) {
  std::move(responder).answer({.status = 200,
                               .headers = {{"Content-Type", "text/plain"}},
                               .body = request.method + " " + request.target + " " + request.body});
}

/// Keeps requests until the test takes them.
class Held {
 public:
  struct One {
    Request request;
    Responder responder;
  };
  Service service() {
    return {.serve = [this](Request request, Responder responder) {
      const std::lock_guard lock(mutex_);
      held_.push_back({std::move(request), std::move(responder)});
      arrived_.notify_all();
    }};
  }
  One take() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !held_.empty(); });
    One one = std::move(held_.front());
    held_.pop_front();
    return one;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<One> held_;
};

std::unique_ptr<Server> start(ServerOptions options, Service service) {
  return serve(std::move(options), std::move(service)).value();
}

TEST(HttpServer, AnswersARequestAndKeepsTheConnection) {
  const auto server = start({}, {.serve = echo});
  Client client(server->port());
  EXPECT_EQ(client.ask(post("/a?b=c", "one")).body, "POST /a?b=c one");
  const auto second = client.ask("GET /x HTTP/1.1\r\nHost: semel\r\n\r\n");
  EXPECT_EQ(second.body, "GET /x ");
  EXPECT_EQ(second.header("content-type"), "text/plain");
  EXPECT_FALSE(second.header("date").empty());
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInTheirOrder) {
  Held held;
  const auto server = start({}, held.service());
  Client client(server->port());
  client.send(post("/1", "one") + post("/2", "two") + post("/3", "three"));
  for (const char* target : {"/1", "/2", "/3"}) {
    auto one = held.take();
    EXPECT_EQ(one.request.target, target);
    std::move(one.responder).answer({.body = one.request.body});
  }
  EXPECT_EQ(client.receive().body, "one");
  EXPECT_EQ(client.receive().body, "two");
  EXPECT_EQ(client.receive().body, "three");
}

TEST(HttpServer, ReadsChunkedBodies) {
  const auto server = start({}, {.serve = echo});
  Client client(server->port());
  EXPECT_EQ(client
                .ask("POST / HTTP/1.1\r\nHost: semel\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "4\r\nWiki\r\n5\r\npedia\r\n0\r\nTrailer: ignored\r\n\r\n")
                .body,
            "POST / Wikipedia");
  EXPECT_EQ(client.ask(post("/again", "")).body, "POST /again ");
}

TEST(HttpServer, TellsAClientThatAsksToGoOn) {
  const auto server = start({}, {.serve = echo});
  Client client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: semel\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  client.send("body");
  EXPECT_EQ(client.receive().body, "POST / body");
}

TEST(HttpServer, HeadIsAnsweredWithTheLengthAndNoBody) {
  const auto server = start({}, {.serve = echo});
  Client client(server->port());
  client.send("HEAD /h HTTP/1.1\r\nHost: semel\r\n\r\n");
  EXPECT_EQ(client.receive(true).header("content-length"), "8");
  EXPECT_EQ(client.ask(post("/next", "")).body, "POST /next ");
}

TEST(HttpServer, ClosesWhereTheClientAsksOrIsOld) {
  const auto server = start({}, {.serve = echo});
  for (const char* request : {"GET / HTTP/1.1\r\nHost: semel\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    Client client(server->port());
    const auto answer = client.ask(request);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("connection"), "close");
    EXPECT_TRUE(client.ended());
  }
}

TEST(HttpServer, AClientThatSendsNoMoreStillGetsItsAnswer) {
  Held held;
  const auto server = start({}, held.service());
  Client client(server->port());
  client.send(post("/", "last"));
  client.half_close();
  std::move(held.take().responder).answer({.body = "here"});
  EXPECT_EQ(client.receive().body, "here");
}

TEST(HttpServer, WhatFollowsAnUnknownCodingIsNoRequest) {
  std::atomic<int> served = 0;
  const auto server = start({}, {.serve = [&](Request request, Responder responder) {
                              ++served;
                              echo(request, std::move(responder));
                            }});
  Client client(server->port());
  client.send(
      "POST /pay HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\nDELETE /admin HTTP/1.1\r\nHost: "
      "a\r\n\r\n");
  EXPECT_EQ(client.receive().status, 400);
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(served, 0);
}

TEST(HttpServer, AnOldClientIsNotAskedToGoOn) {
  const auto server = start({}, {.serve = echo});
  Client client(server->port());
  client.send("POST / HTTP/1.0\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  client.send("body");
  const auto answer = client.receive();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "POST / body");
}

TEST(HttpServer, ReadsATargetThatNamesTheHost) {
  const auto server = start({}, {.serve = echo});
  Client client(server->port());
  EXPECT_EQ(client.ask("GET http://semel/x?y HTTP/1.1\r\nHost: semel\r\n\r\n").body, "GET /x?y ");
  EXPECT_EQ(client.ask("GET http://semel HTTP/1.1\r\nHost: semel\r\n\r\n").body, "GET / ");
  EXPECT_EQ(client.ask("GET HTTP://semel/x HTTP/1.1\r\nHost: semel\r\n\r\n").body, "GET /x ");
}

struct BadRequest {
  const char* what;
  std::string bytes;
  int status;
  const char* type;
};

TEST(HttpServer, WhatCannotBeReadGetsAProblemAndTheConnectionEnds) {
  const auto server = start({.header_bytes_max = 1'024, .body_bytes_max = 16}, {.serve = echo});
  const std::string chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n";
  const BadRequest cases[] = {
      {"no HTTP", "nonsense\r\n\r\n", 400, "malformed-request"},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400, "malformed-request"},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "malformed-request"},
      {"a host that is none", "GET / HTTP/1.1\r\nHost: a b/c@d\r\n\r\n", 400, "malformed-request"},
      {"a user in the target", "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-request"},
      {"a fragment", "GET /x#y HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-request"},
      {"a target without a path", "GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-request"},
      {"identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 400, "malformed-request"},
      {"gzip", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400, "malformed-request"},
      {"gzip, chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400,
       "malformed-request"},
      {"chunks of an old client", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
       "malformed-request"},
      {"colon in a name", "GET / HTTP/1.1\r\nHost: a\r\n:method: GET\r\n\r\n", 400, "malformed-request"},
      {"two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400,
       "malformed-request"},
      {"length and chunks", chunked + "Content-Length: 4\r\n\r\n0\r\n\r\n", 400, "malformed-request"},
      {"negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400, "malformed-request"},
      {"bad chunk", chunked + "\r\nzz\r\n", 400, "malformed-request"},
      {"long header", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(2'000, 'x') + "\r\n\r\n", 431,
       "header-too-large"},
      {"endless header", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(100'000, 'x'), 431, "header-too-large"},
      {"long body", post("/", std::string(17, 'x')), 413, "body-too-large"},
      {"boundless body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999\r\n\r\n", 413,
       "body-too-large"},
      {"long chunks", chunked + "\r\na\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", 413, "body-too-large"},
      {"long extension of a chunk", chunked + "\r\n1;" + std::string(100'000, 'x') + "\r\na\r\n0\r\n\r\n", 431,
       "header-too-large"},
      {"long trailer", chunked + "\r\n0\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n", 431, "header-too-large"},
  };
  for (const auto& bad : cases) {
    Client client(server->port());
    const auto answer = client.ask(bad.bytes);
    EXPECT_EQ(answer.status, bad.status) << bad.what;
    EXPECT_EQ(answer.header("content-type"), "application/problem+json") << bad.what;
    EXPECT_THAT(answer.body, HasSubstr(bad.type)) << bad.what;
    EXPECT_TRUE(client.ended()) << bad.what;
  }
}

TEST(HttpServer, NoOptionLetsAFieldBeLongerThanTheParserBears) {
  const auto server = start({.header_bytes_max = 10u << 20}, {.serve = echo});
  const std::string field = "X: " + std::string(100'000, 'x') + "\r\n\r\n";
  for (const std::string& bytes : {"GET / HTTP/1.1\r\nHost: a\r\n" + field,
                                   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + field}) {
    Client client(server->port());
    EXPECT_EQ(client.ask(bytes).status, 431);
  }
}

TEST(HttpServer, BodiesUpToTheLimitAreServed) {
  const auto server = start({.body_bytes_max = 16}, {.serve = echo});
  Client client(server->port());
  EXPECT_EQ(client.ask(post("/", std::string(16, 'x'))).body, "POST / " + std::string(16, 'x'));
}

TEST(HttpServer, ARequestThatArrivesTooSlowlyGets408) {
  for (const char* part : {"POST / HT", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab"}) {
    const auto server = start({.receive_timeout = 30ms}, {.serve = echo});
    Client client(server->port());
    const auto answer = client.ask(part);
    EXPECT_EQ(answer.status, 408);
    EXPECT_THAT(answer.body, HasSubstr("urn:semel:problem:request-timeout"));
    EXPECT_TRUE(client.ended());
  }
}

TEST(HttpServer, TellsOfEachProblemThatItAnswersByItself) {
  std::mutex mutex;
  std::vector<std::string> told;
  const auto observed = [&](Service service) {
    service.observe = [&](const Response& problem) {
      const std::scoped_lock lock(mutex);
      told.push_back(std::to_string(problem.status) + " " + std::string(problem.problem));
    };
    return service;
  };
  Service refusing{.serve = echo, .refuse = [](const Request& head) {
                     return head.path() == "/no" ? std::optional(problem_response(Problem::not_found)) : std::nullopt;
                   }};
  const auto server = start({.header_bytes_max = 1'000, .body_bytes_max = 16}, observed(std::move(refusing)));
  for (const std::string& bytes : {post("/", "served"), post("/no", ""), post("/", std::string(17, 'x')),
                                   "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(2'000, 'x') + "\r\n\r\n",
                                   std::string("GET / HTTP/1.1\r\n\r\n")})
    Client(server->port()).ask(bytes);
  const auto hasty = start({.receive_timeout = 30ms}, observed({.serve = echo}));
  Client(hasty->port()).ask("POST / HT");
  Held held;
  const auto impatient = start({.answer_deadline = 20ms}, observed(held.service()));
  Client(impatient->port()).ask(post("/", "slow"));
  const std::scoped_lock lock(mutex);
  EXPECT_THAT(told, testing::ElementsAre("404 not-found", "413 body-too-large", "431 header-too-large",
                                         "400 malformed-request", "408 request-timeout", "503 answer-late"));
}

TEST(HttpServer, AConnectionThatIdlesTooLongIsClosedWithoutAWord) {
  const auto server = start({.idle_timeout = 20ms}, {.serve = echo});
  Client client(server->port());
  EXPECT_TRUE(client.ended());
}

TEST(HttpServer, AnAnswerThatIsLateIsToldSoAndTheHandlerNeverNotices) {
  Held held;
  const auto server = start({.answer_deadline = 20ms}, held.service());
  Client client(server->port());
  const auto late = client.ask(post("/", "slow"));
  EXPECT_EQ(late.status, 503);
  EXPECT_EQ(late.header("retry-after"), "1");
  EXPECT_THAT(late.body, HasSubstr("urn:semel:problem:answer-late"));
  std::move(held.take().responder).answer({.body = "dropped"});
}

TEST(HttpServer, AClientThatHangsUpChangesNothingForTheHandler) {
  Held held;
  const auto server = start({}, held.service());
  Client gone(server->port());
  gone.send(post("/", "kept"));
  auto one = held.take();
  gone.hang_up();
  EXPECT_EQ(one.request.body, "kept");
  std::move(one.responder).answer({.body = std::string(1 << 20, 'x')});
  Client next(server->port());
  next.send(post("/next", ""));
  std::move(held.take().responder).answer({.status = 204});
  EXPECT_EQ(next.receive().status, 204);
}

TEST(HttpServer, AResponderDestroyedUnusedEndsTheConnection) {
  Held held;
  const auto server = start({}, held.service());
  Client client(server->port());
  client.send(post("/", ""));
  { auto dropped = held.take(); }
  EXPECT_TRUE(client.ended());
}

TEST(HttpServer, ARespondersAnswerMayComeFromAnyThreadAndOutliveTheServer) {
  Held held;
  auto server = start({}, held.service());
  Client client(server->port());
  client.send(post("/", ""));
  auto one = held.take();
  server->stop(0ms);
  server.reset();
  std::thread([&] { std::move(one.responder).answer({}); }).join();
  EXPECT_TRUE(client.ended());
}

TEST(HttpServer, ARefusalComesBeforeTheBody) {
  const auto server = start({.body_bytes_max = 16},
                            {.serve = echo, .refuse = [](const Request& head) {
                               return head.path() == "/no" ? std::optional(Response{.status = 404}) : std::nullopt;
                             }});
  Client client(server->port());
  EXPECT_EQ(client.ask("GET /no HTTP/1.1\r\nHost: a\r\n\r\n").status, 404);
  EXPECT_EQ(client.ask(post("/yes", "1")).status, 200) << "without a body the connection stays";
  EXPECT_EQ(client.ask("POST /no?x HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n").status, 404);
  EXPECT_TRUE(client.ended());
}

TEST(HttpServer, FiftyClientsAtOnceAreAllAnswered) {
  const auto server = start({}, {.serve = echo});
  std::vector<std::thread> threads;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 50; ++i)
    threads.emplace_back([&, i] {
      Client client(server->port());
      for (int n = 0; n < 5; ++n)
        answered += client.ask(post("/", std::to_string(i))).body == "POST / " + std::to_string(i);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(answered, 250);
}

TEST(HttpServer, AtTheLimitTheLongestIdleConnectionMakesRoom) {
  const auto server = start({.connections_max = 2}, {.serve = echo});
  Client first(server->port());
  EXPECT_EQ(first.ask(post("/", "")).status, 200);
  Client second(server->port());
  EXPECT_EQ(second.ask(post("/", "")).status, 200);
  Client third(server->port());
  EXPECT_EQ(third.ask(post("/", "")).status, 200);
  EXPECT_TRUE(first.ended());
  EXPECT_EQ(second.ask(post("/", "")).status, 200);
}

TEST(HttpServer, AtTheLimitWithAllBusyANewConnectionWaits) {
  Held held;
  const auto server = start({.connections_max = 1}, held.service());
  Client busy(server->port());
  busy.send(post("/busy", ""));
  auto one = held.take();
  Client waits(server->port());
  waits.send(post("/waits", ""));
  std::move(one.responder).answer({.status = 201});
  EXPECT_EQ(busy.receive().status, 201);
  auto other = held.take();
  EXPECT_EQ(other.request.target, "/waits");
  std::move(other.responder).answer({.status = 202});
  EXPECT_EQ(waits.receive().status, 202);
}

TEST(HttpServer, StopEndsIdleConnectionsAndLetsOpenRequestsBeAnswered) {
  Held held;
  const auto server = start({}, held.service());
  Client idle(server->port());
  Client busy(server->port());
  busy.send(post("/", ""));
  auto one = held.take();
  auto stopped = std::async(std::launch::async, [&] { server->stop(20s); });
  EXPECT_TRUE(idle.ended());
  std::move(one.responder).answer({.status = 201});
  const auto answer = busy.receive();
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_TRUE(busy.ended());
  stopped.get();
  EXPECT_FALSE(Client(server->port()).connected());
}

TEST(HttpServer, StopEndsWhatIsNotAnsweredByItsDeadline) {
  Held held;
  const auto server = start({}, held.service());
  Client busy(server->port());
  busy.send(post("/", ""));
  auto one = held.take();
  server->stop(10ms);
  EXPECT_TRUE(busy.ended());
}

TEST(HttpServer, ServesTls) {
  const Certificate certificate;
  const auto server = start({.tls = TlsFiles{certificate.certificate_file(), certificate.key_file()}}, {.serve = echo});
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Client client(server->port(), Client::Over::tls, version);
    ASSERT_TRUE(client.connected());
    EXPECT_EQ(client.ask(post("/", "over tls")).body, "POST / over tls");
    EXPECT_EQ(client.ask(post("/", "again")).body, "POST / again");
    EXPECT_EQ(client.ask("nonsense\r\n\r\n").status, 400);
    EXPECT_TRUE(client.ended());
  }
}

TEST(HttpServer, RefusesTlsBefore12AndPlainText) {
  const Certificate certificate;
  const auto server = start({.tls = TlsFiles{certificate.certificate_file(), certificate.key_file()}}, {.serve = echo});
  EXPECT_FALSE(Client(server->port(), Client::Over::tls, TLS1_1_VERSION).connected());
  Client plain(server->port());
  EXPECT_NE(plain.ask(post("/", "")).status, 200);
}

TEST(HttpServer, AHandshakeThatNeverComesIsCutOff) {
  const Certificate certificate;
  const auto server =
      start({.tls = TlsFiles{certificate.certificate_file(), certificate.key_file()}, .receive_timeout = 20ms},
            {.serve = echo});
  Client silent(server->port());
  EXPECT_TRUE(silent.ended());
}

TEST(HttpServer, SaysWhyItCannotListen) {
  const auto first = start({}, {.serve = echo});
  const auto in_use = serve({.port = first->port()}, {.serve = echo});
  ASSERT_FALSE(in_use);
  EXPECT_EQ(in_use.error().code, ErrorCode::address_in_use);
  EXPECT_THAT(in_use.error().message, HasSubstr("port " + std::to_string(first->port())));
  for (const char* address : {"localhorst", "203.0.113.7", ""}) {
    const auto bad = serve({.address = address}, {.serve = echo});
    ASSERT_FALSE(bad) << address;
    EXPECT_EQ(bad.error().code, ErrorCode::source_settings_invalid);
    EXPECT_THAT(bad.error().message, HasSubstr(address));
  }
}

TEST(HttpServer, SaysWhichCertificateOrKeyCannotBeUsed) {
  const Certificate one;
  const Certificate other;
  const TlsFiles cases[] = {{"/nowhere/c.pem", one.key_file()},
                            {one.certificate_file(), "/nowhere/k.pem"},
                            {one.key_file(), one.key_file()},
                            {one.certificate_file(), other.key_file()}};
  for (const auto& files : cases) {
    const auto bad = serve({.tls = files}, {.serve = echo});
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, ErrorCode::source_settings_invalid);
    EXPECT_THAT(bad.error().message, testing::AnyOf(HasSubstr(files.certificate), HasSubstr(files.key)));
    EXPECT_THAT(bad.error().message, testing::Not(HasSubstr("PRIVATE")));
  }
}

}  // namespace
}  // namespace semel::net
