#include "net/http_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "net/http_client_for_tests.hpp"
#include "net/http_server.hpp"
#include "net/raw_server_for_tests.hpp"

namespace semel::net {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Reach = Returned::Reach;

/// A client that talks to nobody but the test, whatever the environment says of proxies.
class Caller {
 public:
  explicit Caller(ClientOptions options = {}) {
    if (!options.proxy) options.proxy = "";
    client_ = http_client(std::move(options), bell_).value();
  }
  void begin(Outgoing outgoing) { client_->begin(std::move(outgoing)); }
  /// Waits until `count` have come back; for ever otherwise, which fails by the test's time limit.
  std::vector<Returned> collect(std::size_t count) {
    std::vector<Returned> all;
    while (true) {
      for (auto& one : client_->collect()) all.push_back(std::move(one));
      if (all.size() >= count) return all;
      bell_.wait(1h);
    }
  }
  Returned call(Outgoing outgoing) {
    begin(std::move(outgoing));
    return collect(1).at(0);
  }

 private:
  Doorbell bell_;
  std::unique_ptr<HttpClient> client_;
};

/// Keeps what a script has read.
class Seen {
 public:
  void add(std::string request) {
    if (request.empty()) return;  // the client has closed without a request
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
};

/// Answers each request on a connection by `answer`.
RawServer::Script answering(std::string answer, Seen* seen = nullptr) {
  return [answer = std::move(answer), seen](RawConnection& connection) {
    for (auto request = connection.read_request(); !request.empty(); request = connection.read_request()) {
      if (seen) seen->add(request);
      connection.send(answer);
    }
  };
}

Outgoing post_to(std::string url, std::string body = "b") { return {.url = std::move(url), .body = std::move(body)}; }

TEST(HttpClient, SendsWhatItIsGivenAndReturnsTheAnswer) {
  Seen seen;
  const RawServer server(answering(raw_answer(201, "done", "X-Id: 7\r\nX-Id: 8\r\n"), &seen));
  Caller caller;
  Outgoing outgoing{.token = 42, .url = server.url("/a?b=c"), .headers = {{"Idempotency-Key", "k"}, {"X-Empty", ""}}};
  outgoing.body = "the body";
  const auto returned = caller.call(std::move(outgoing));
  EXPECT_EQ(returned.token, 42u);
  EXPECT_EQ(returned.reach, Reach::answered);
  EXPECT_EQ(returned.status, 201);
  EXPECT_EQ(returned.headers.count("x-id"), 2u);
  EXPECT_EQ(returned.headers.find("x-id"), "7");
  EXPECT_EQ(returned.body, "done");
  EXPECT_FALSE(returned.cut);
  EXPECT_EQ(returned.detail, "");
  ASSERT_EQ(seen.all().size(), 1u);
  EXPECT_EQ(seen.all()[0],
            "POST /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
                "\r\nAccept: */*\r\nIdempotency-Key: k\r\nX-Empty:\r\nContent-Length: 8\r\n\r\nthe body");
}

TEST(HttpClient, SpeaksEveryMethodAndTalksToOurServer) {
  const auto server = serve({}, {.serve = [](const Request& request, Responder responder) {
                              std::move(responder).answer({.body = request.method + " " + request.body});
                            }});
  Caller caller;
  const std::string url = "http://127.0.0.1:" + std::to_string(server.value()->port()) + "/";
  for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    const std::string body = method == "GET" ? "" : "x";
    EXPECT_EQ(caller.call({.method = method, .url = url, .body = body}).body, method + " " + body);
  }
  const auto head = caller.call({.method = "HEAD", .url = url});
  EXPECT_EQ(head.status, 200);
  EXPECT_FALSE(head.cut);
  EXPECT_EQ(caller.call({.method = "POST", .url = url}).body, "POST ") << "an empty body is one";
}

TEST(HttpClient, MakesManyCallsAtATime) {
  std::mutex mutex;
  std::vector<Responder> held;
  const auto server = serve({}, {.serve = [&](const Request&, Responder responder) {
                              const std::lock_guard lock(mutex);
                              held.push_back(std::move(responder));
                              if (held.size() < 20) return;
                              for (auto& one : held) std::move(one).answer({});
                            }});
  Caller caller;
  for (std::uint64_t i = 0; i < 20; ++i) {
    auto outgoing = post_to("http://127.0.0.1:" + std::to_string(server.value()->port()) + "/");
    outgoing.token = i;
    caller.begin(std::move(outgoing));
  }
  std::vector<bool> back(20);
  for (const auto& one : caller.collect(20)) back.at(one.token) = one.status == 200;
  EXPECT_THAT(back, Not(testing::Contains(false)));
}

TEST(HttpClient, KeepsConnectionsExceptWhereAFreshOneIsWanted) {
  std::atomic<int> connections = 0;
  const RawServer server([&](RawConnection& connection) {
    ++connections;
    answering(raw_answer(200))(connection);
  });
  Caller caller;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(caller.call(post_to(server.url())).status, 200);
  EXPECT_EQ(connections, 1);
  auto outgoing = post_to(server.url());
  outgoing.fresh_connection = true;
  EXPECT_EQ(caller.call(std::move(outgoing)).status, 200);
  EXPECT_EQ(connections, 2);
}

/// The fault that this client is there for: see the top of the header.
TEST(HttpClient, ARequestIsNotSentAgainWhereAKeptConnectionDies) {
  for (const bool with_reset : {false, true}) {
    Seen seen;
    const RawServer server([&](RawConnection& connection) {
      seen.add(connection.read_request());
      connection.send(raw_answer(200));
      seen.add(connection.read_request());
      if (with_reset) connection.reset();
    });
    Caller caller;
    EXPECT_EQ(caller.call(post_to(server.url("/first"))).status, 200);
    const auto second = caller.call(post_to(server.url("/second")));
    EXPECT_EQ(second.reach, Reach::unknown);
    EXPECT_THAT(second.detail, Not(IsEmpty()));
    EXPECT_EQ(caller.call(post_to(server.url("/third"))).status, 200);
    std::vector<std::string> targets;
    for (const auto& request : seen.all()) targets.push_back(request.substr(0, request.find(" HTTP")));
    EXPECT_THAT(targets, testing::ElementsAre("POST /first", "POST /second", "POST /third")) << with_reset;
  }
}

TEST(HttpClient, WhatNeverConnectedWasNotSent) {
  Caller caller({.connect_timeout = 2s});
  for (const std::string& url :
       {"http://127.0.0.1:" + std::to_string(closed_port()) + "/", std::string("http://name.invalid/")}) {
    const auto returned = caller.call(post_to(url));
    EXPECT_EQ(returned.reach, Reach::not_sent) << url;
    EXPECT_THAT(returned.detail, Not(IsEmpty())) << url;
    EXPECT_EQ(returned.status, 0);
  }
}

TEST(HttpClient, AConnectionThatEndsBeforeTheAnswersHeadIsUnknown) {
  const std::pair<const char*, RawServer::Script> cases[] = {
      {"reset after the request",
       [](RawConnection& connection) {
         connection.read_request();
         connection.reset();
       }},
      {"closed after the request", [](RawConnection& connection) { connection.read_request(); }},
      {"closed in the head",
       [](RawConnection& connection) {
         connection.read_request();
         connection.send("HTTP/1.1 200 OK\r\nContent-Le");
       }},
      {"only a 100",
       [](RawConnection& connection) {
         connection.read_request();
         connection.send("HTTP/1.1 100 Continue\r\n\r\n");
       }},
      {"no HTTP",
       [](RawConnection& connection) {
         connection.read_request();
         connection.send("who are you?\r\n\r\n");
       }},
      {"a header without end",
       [](RawConnection& connection) {
         connection.read_request();
         connection.send("HTTP/1.1 200 OK\r\n");
         for (int i = 0; i < 2'000; ++i) connection.send("X: " + std::string(97, 'x') + "\r\n");
         connection.hang();
       }},
  };
  for (const auto& [what, script] : cases) {
    const RawServer server(script);
    Caller caller;
    const auto returned = caller.call(post_to(server.url()));
    EXPECT_EQ(returned.reach, Reach::unknown) << what;
    EXPECT_THAT(returned.detail, Not(IsEmpty())) << what;
  }
}

TEST(HttpClient, ATimeoutAfterTheRequestLeftIsUnknown) {
  const RawServer server([](RawConnection& connection) {
    connection.read_request();
    connection.hang();
  });
  Caller caller;
  auto outgoing = post_to(server.url());
  outgoing.timeout = 300ms;
  EXPECT_EQ(caller.call(std::move(outgoing)).reach, Reach::unknown);
}

TEST(HttpClient, ATimeoutBeforeTheTlsHandshakeHasEndedIsNotSent) {
  const RawServer server([](RawConnection& connection) { connection.hang(); });
  Caller caller({.connect_timeout = 50ms});
  EXPECT_EQ(caller.call(post_to("https" + server.url().substr(4))).reach, Reach::not_sent);
}

TEST(HttpClient, AnAnswerWhoseBodyBreaksOffIsCut) {
  const std::pair<const char*, RawServer::Script> cases[] = {
      {"never ends",
       [](RawConnection& connection) {
         connection.read_request();
         connection.send("HTTP/1.1 200 OK\r\nX-Id: 7\r\nContent-Length: 100\r\n\r\n");
         connection.send("half");
         connection.hang();
       }},
      {"closed",
       [](RawConnection& connection) {
         connection.read_request();
         connection.send("HTTP/1.1 200 OK\r\nX-Id: 7\r\nContent-Length: 100\r\n\r\nhalf");
       }},
  };
  for (const auto& [what, script] : cases) {
    const RawServer server(script);
    Caller caller;
    auto outgoing = post_to(server.url());
    if (what == std::string_view("never ends")) outgoing.timeout = 500ms;
    const auto returned = caller.call(std::move(outgoing));
    EXPECT_EQ(returned.reach, Reach::answered) << what;
    EXPECT_EQ(returned.status, 200) << what;
    EXPECT_EQ(returned.headers.find("x-id"), "7") << what;
    EXPECT_TRUE(returned.cut) << what;
    EXPECT_EQ(returned.body, "half") << what;
  }
}

TEST(HttpClient, ABodyOverTheLimitIsCut) {
  const RawServer server(answering(raw_answer(200, std::string(100'000, 'x'))));
  Caller caller({.body_bytes_max = 1'000});
  const auto returned = caller.call(post_to(server.url()));
  EXPECT_EQ(returned.status, 200);
  EXPECT_TRUE(returned.cut);
  EXPECT_EQ(returned.body.size(), 1'000u);
  Caller enough({.body_bytes_max = 100'000});
  EXPECT_FALSE(enough.call(post_to(server.url())).cut);
}

TEST(HttpClient, RedirectsAndOtherInvitationsToAskAgainAreAnswers) {
  const std::pair<int, const char*> cases[] = {{301, "Location: /other\r\n"},
                                               {307, "Location: /other\r\n"},
                                               {401, "WWW-Authenticate: Basic realm=\"a\"\r\n"},
                                               {417, ""}};
  for (const auto& [status, headers] : cases) {
    Seen seen;
    const RawServer server(answering(raw_answer(status, "", headers), &seen));
    Caller caller;
    EXPECT_EQ(caller.call(post_to(server.url(), std::string(2 << 20, 'x'))).status, status);
    EXPECT_EQ(seen.all().size(), 1u);
    EXPECT_THAT(seen.all()[0].substr(0, 500), Not(HasSubstr("Expect")));
  }
}

TEST(HttpClient, AnswersBeforeTheFinalOneArePassedOver) {
  const RawServer server(answering("HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n" + raw_answer(200, "final")));
  Caller caller;
  const auto returned = caller.call(post_to(server.url()));
  EXPECT_EQ(returned.status, 200);
  EXPECT_EQ(returned.headers.count("x-early"), 0u);
  EXPECT_EQ(returned.body, "final");
}

class OverTls : public testing::Test {
 protected:
  std::string url() const { return "https://localhost:" + std::to_string(server_->port()) + "/"; }
  Certificate certificate_;
  std::unique_ptr<Server> server_ =
      serve({.tls = TlsFiles{certificate_.certificate_file(), certificate_.key_file()}},
            {.serve = [](const Request& request,
                         Responder responder) { std::move(responder).answer({.body = request.body}); }})
          .value();
};

TEST_F(OverTls, ACertificateThatIsTrustedIsSpokenTo) {
  Caller caller({.ca_file = certificate_.certificate_file()});
  EXPECT_EQ(caller.call(post_to(url(), "secret")).body, "secret");
}

TEST_F(OverTls, AnyOtherCertificateOrNameIsNotAndNothingIsSent) {
  const Certificate other;
  Caller system;
  EXPECT_EQ(system.call(post_to(url())).reach, Reach::not_sent);
  Caller stranger({.ca_file = other.certificate_file()});
  EXPECT_EQ(stranger.call(post_to(url())).reach, Reach::not_sent);
  Caller caller({.ca_file = certificate_.certificate_file()});
  EXPECT_EQ(caller.call(post_to("https://127.0.0.1:" + std::to_string(server_->port()) + "/")).reach, Reach::not_sent);
}

TEST_F(OverTls, ACaFileThatIsNotThereIsRefusedAtOnce) {
  Doorbell bell;
  const auto client = http_client({.ca_file = "/nowhere/ca.pem"}, bell);
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, HasSubstr("/nowhere/ca.pem"));
}

TEST(HttpClient, GoesThroughAProxyWhereOneIsGiven) {
  Seen seen;
  const RawServer proxy(answering(raw_answer(200, "by proxy"), &seen));
  Caller caller({.proxy = "http://127.0.0.1:" + std::to_string(proxy.port())});
  EXPECT_EQ(caller.call(post_to("http://provider.invalid/x")).body, "by proxy");
  EXPECT_THAT(seen.all().at(0), HasSubstr("POST http://provider.invalid/x HTTP/1.1"));
}

TEST(HttpClient, AProxyThatRefusesTheTunnelSentNothing) {
  const RawServer proxy(answering(raw_answer(407)));
  Caller caller({.proxy = "http://127.0.0.1:" + std::to_string(proxy.port())});
  EXPECT_EQ(caller.call(post_to("https://provider.invalid/x")).reach, Reach::not_sent);
}

TEST(HttpClient, WhatIsNotWellFormedIsNotSentAndNotRepeatedInTheReason) {
  const Outgoing cases[] = {
      {.method = "PO ST", .url = "http://127.0.0.1/"},
      {.url = "file:///etc/passwd"},
      {.url = "http://127.0.0.1/a b"},
      {.url = "http://127.0.0.1/\r\nX: y"},
      {.url = "http://127.0.0.1/", .headers = {{"X", "secret\r\nY: z"}}},
      {.url = "http://127.0.0.1/", .headers = {{"X Y", "secret"}}},
      {.url = "http://127.0.0.1/", .headers = {{"content-length", "3"}}},
      {.url = "http://127.0.0.1/", .headers = {{"Transfer-Encoding", "chunked"}}},
  };
  Caller caller;
  for (const auto& outgoing : cases) {
    EXPECT_THAT(outgoing_problem(outgoing), Not(IsEmpty()));
    const auto returned = caller.call(outgoing);
    EXPECT_EQ(returned.reach, Reach::not_sent);
    EXPECT_THAT(returned.detail, Not(HasSubstr("secret")));
  }
}

TEST(HttpClient, ItsDestructionDropsWhatIsUnderWay) {
  const RawServer server([](RawConnection& connection) {
    connection.read_request();
    connection.hang();
  });
  Caller caller;
  caller.begin(post_to(server.url()));
}

}  // namespace
}  // namespace semel::net
