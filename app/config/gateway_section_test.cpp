#include "config/gateway_section.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace semel::app {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

Loaded read(const std::string& text) {
  return read_config(text, "semel.yaml", [](const std::string&) { return std::nullopt; });
}

std::vector<std::string> mistakes_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const auto& mistake : read(text).mistakes)
    lines.push_back(code_name(mistake.code) + " " + place_and_message(mistake, "semel.yaml"));
  return lines;
}

constexpr auto example = R"(store: sqlite:a.db
sources:
  api:
    gateway: { listen: 127.0.0.1:8080, upstream: http://127.0.0.1:3000, timeout: 20s }
    routes:
      - { match: POST /payments, principal: { header: X-User } }
handlers:
  forward:
    from: api
    execute: INSERT INTO t VALUES (:key)
)";

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = example;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(GatewaySection, ReadsTheExample) {
  ASSERT_THAT(mistakes_of(example), IsEmpty());
  const auto config = *read(example).config;
  ASSERT_EQ(config.gateways.size(), 1u);
  const auto& name = config.gateways[0].name;
  const auto listener = config.gateways[0].listener;
  const auto& gateway = config.gateways[0].gateway;
  EXPECT_EQ(name, "api");
  EXPECT_EQ(config.listeners.at(listener).port, 8080);
  EXPECT_EQ(gateway.upstream.url, "http://127.0.0.1:3000");
  EXPECT_EQ(gateway.upstream.timeout, 20s);
  EXPECT_EQ(gateway.upstream.host, http::Upstream::Host::client);
  EXPECT_FALSE(gateway.upstream.trust_forwarded);
  ASSERT_EQ(gateway.routes.size(), 1u);
  EXPECT_EQ(gateway.routes[0].name, "api POST /payments");
  EXPECT_EQ(gateway.routes[0].path, "/payments");
  EXPECT_THAT(gateway.routes[0].methods, ElementsAre("POST"));
  EXPECT_EQ(gateway.routes[0].key, http::GuardedRoute::Key::required);
  EXPECT_EQ(gateway.routes[0].principal.header, "X-User");
  ASSERT_EQ(config.sources.size(), 1u);
  EXPECT_EQ(config.sources[0].name, "api POST /payments");
  EXPECT_EQ(callers_of(config.sources[0], config), &config.gateways[0].gateway.routes[0].principal);
  EXPECT_THAT(config.handlers[0].options.from, ElementsAre("api POST /payments"))
      << "the gateway's name is all its routes";
  EXPECT_EQ(config.handlers[0].options.key.text(), "header:Idempotency-Key") << "callers bring the key";
}

TEST(GatewaySection, ReadsEveryField) {
  const std::string text = R"(store: sqlite:a.db
sources:
  own:
    http: { listen: "[::1]:8443", path: /own, requests: { principal: none }, limits: { body_bytes: 1KiB } }
  api:
    gateway:
      listen: "[::1]:8443"
      upstream: https://shop.internal/base
      connect_timeout: 1s
      timeout: 2s
      idle_timeout: 3s
      host: upstream
      forwarded: trust
      traceparent: false
      ca_file: ca.pem
    routes:
      - match: POST,PUT /orders/*/notes
        key: optional
        principal: credential
        credentials: [ X-Api-Key ]
        name: notes
      - { match: DELETE  /all/**, principal: none }
handlers:
  one: { from: notes, execute: INSERT INTO t VALUES (:key) }
  rest: { from: [ "api DELETE  /all/**", own ], execute: INSERT INTO t VALUES (:key) }
)";
  ASSERT_THAT(mistakes_of(text), IsEmpty());
  const auto config = *read(text).config;
  EXPECT_EQ(config.listeners.size(), 1u) << "an address is shared";
  const auto& gateway = config.gateways.at(0).gateway;
  EXPECT_EQ(gateway.upstream.connect_timeout, 1s);
  EXPECT_EQ(gateway.upstream.timeout, 2s);
  EXPECT_EQ(gateway.upstream.idle_timeout, 3s);
  EXPECT_EQ(gateway.upstream.host, http::Upstream::Host::upstream);
  EXPECT_TRUE(gateway.upstream.trust_forwarded);
  EXPECT_FALSE(gateway.upstream.add_traceparent);
  EXPECT_EQ(gateway.upstream.ca_file, "ca.pem");
  const auto& notes = gateway.routes.at(0);
  EXPECT_EQ(notes.name, "notes");
  EXPECT_THAT(notes.methods, ElementsAre("POST", "PUT"));
  EXPECT_EQ(notes.path, "/orders/*/notes");
  EXPECT_EQ(notes.key, http::GuardedRoute::Key::optional);
  EXPECT_EQ(notes.principal.from, http::Principal::From::credential_digest);
  EXPECT_THAT(notes.credentials, ElementsAre("X-Api-Key"));
  EXPECT_EQ(gateway.routes.at(1).path, "/all/**");
  EXPECT_THAT(config.handlers.at(0).options.from, ElementsAre("notes"));
}

struct Replaced {
  const char* from;
  const char* to;
  std::vector<std::string> mistakes;
};

const Replaced replaced_parts[] = {
    {"upstream: http://127.0.0.1:3000",
     "upstream: 127.0.0.1:3000",
     {"SEMEL-0404 semel.yaml:4:50: sources.api.gateway.upstream: \"127.0.0.1:3000\" is no upstream: it begins with "
      "http:// or https://"}},
    {", upstream: http://127.0.0.1:3000",
     "",
     {"SEMEL-0403 semel.yaml:4:14: sources.api.gateway: \"upstream\" is missing: the service behind, such as "
      "http://127.0.0.1:3000"}},
    {"timeout: 20s",
     "time_out: 20s",
     {"SEMEL-0402 semel.yaml:4:73: sources.api.gateway.time_out: unknown field; did you mean \"timeout\"?"}},
    {"    routes:\n      - { match: POST /payments, principal: { header: X-User } }\n",
     "",
     {"SEMEL-0403 semel.yaml:4:5: sources.api: \"routes\" is missing: what is guarded: a list of { match: POST /path, "
      "principal: … }",
      "SEMEL-0403 semel.yaml:7:5: handlers.forward: \"key\" is missing: what names the event: /json/pointer, "
      "header:Name, transport-id, or a list of these"}},
    {"- { match: POST /payments, principal: { header: X-User } }",
     "[]",
     {"SEMEL-0404 semel.yaml:6:7: sources.api.routes: must not be empty",
      "SEMEL-0403 semel.yaml:9:5: handlers.forward: \"key\" is missing: what names the event: /json/pointer, "
      "header:Name, transport-id, or a list of these"}},
    {", principal: { header: X-User }",
     "",
     {"SEMEL-0403 semel.yaml:6:9: sources.api.routes[0]: \"principal\" is missing: say on whose behalf a caller asks: "
      "{ "
      "header: Name } that a trusted proxy sets, credential, or none for a single tenant; one tenant must never get "
      "another's answer"}},
    {"POST /payments",
     "/payments",
     {"SEMEL-0404 semel.yaml:6:18: sources.api.routes[0].match: must be methods and a path, such as POST /payments or "
      "PUT,PATCH /orders/*"}},
    {"POST /payments",
     "GET /payments",
     {"SEMEL-0404 semel.yaml:6:18: sources.api.routes[0].match: \"GET\" cannot be guarded: POST, PUT, PATCH and DELETE "
      "can; all else passes through"}},
    {"POST /payments",
     "POST payments",
     {"SEMEL-0404 semel.yaml:6:18: sources.api.routes[0].match: the path \"payments\" cannot be guarded: it does not "
      "begin with /"}},
    {"POST /payments,",
     "POST /payments, key: needed,",
     {"SEMEL-0404 semel.yaml:6:39: sources.api.routes[0].key: must be one of required, optional, not \"needed\""}},
    {"{ header: X-User } }",
     "none }\n      - { match: POST /payments, principal: none }",
     {"SEMEL-0404 semel.yaml:7:9: sources.api.routes[1]: a second source named \"api POST /payments\""}},
    {"from: api",
     "from: apu",
     {"SEMEL-0403 semel.yaml:9:5: handlers.forward: \"key\" is missing: what names the event: /json/pointer, "
      "header:Name, transport-id, or a list of these",
      "SEMEL-0407 semel.yaml:9:11: handlers.forward.from: there is no source \"apu\"; did you mean \"api\"?"}},
    {"from: api",
     "from: api\n    key: transport-id",
     {"SEMEL-0404 semel.yaml:10:10: handlers.forward.key: messages from \"api POST /payments\" have no transport id: "
      "requests bring an Idempotency-Key instead"}},
    {"handlers:",
     "  second:\n    gateway: { listen: 127.0.0.1:8080, upstream: http://b }\n    routes: [ { match: POST /, "
     "principal: none } "
     "]\nhandlers:",
     {"SEMEL-0404 semel.yaml:8:14: sources.second.gateway: gateway \"api\" has this address already"}},
    {"    gateway:",
     "    file: a.jsonl\n    gateway:",
     {"SEMEL-0404 semel.yaml:4:5: sources.api: is one of http, gateway, file and queue, not several"}},
};

TEST(GatewaySection, SaysEveryMistakeWithItsPlace) {
  for (const auto& c : replaced_parts) EXPECT_EQ(mistakes_of(replaced(c.from, c.to)), c.mistakes) << c.to;
}

}  // namespace
}  // namespace semel::app
