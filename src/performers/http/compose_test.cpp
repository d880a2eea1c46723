#include "performers/http/compose.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace semel::http {
namespace {

using namespace std::chrono_literals;
using In = KeyCarrier::In;

TEST(Compose, PutsTheKeyWhereTheProviderTakesIt) {
  const StoredRequest json{.url = "https://h/", .body = R"({"a": 1.50, "in": {}})"};
  EXPECT_EQ(compose_call(json, {}, "k").value().headers.find("Idempotency-Key"), "k");
  EXPECT_EQ(compose_call(json, {.in = In::json_member, .name = "/key"}, "k").value().body,
            R"({"a":1.50,"in":{},"key":"k"})");
  EXPECT_EQ(compose_call(json, {.in = In::json_member, .name = "/in/key"}, "k").value().body,
            R"({"a":1.50,"in":{"key":"k"}})");
  const KeyCarrier field{.in = In::form_field, .name = "key"};
  EXPECT_EQ(compose_call({.url = "https://h/", .body = "a=b"}, field, "k&").value().body, "a=b&key=k%26");
  EXPECT_EQ(compose_call({.url = "https://h/"}, field, "k").value().body, "key=k");
  const auto none = compose_call(json, {.in = In::none}, "k").value();
  EXPECT_EQ(none.body, json.body);
  EXPECT_TRUE(none.headers.entries().empty());
}

TEST(Compose, RefusesAKeyThatIsNotTheIntents) {
  const std::pair<StoredRequest, KeyCarrier> cases[] = {
      {{.url = "https://h/", .headers = {{"idempotency-key", "theirs"}}}, {}},
      {{.url = "https://h/", .body = R"({"key": "theirs"})"}, {.in = In::json_member, .name = "/key"}},
      {{.url = "https://h/", .body = R"({"key": null})"}, {.in = In::json_member, .name = "/key"}},
      {{.url = "https://h/", .body = "a=b&ke%79=theirs"}, {.in = In::form_field, .name = "key"}},
  };
  for (const auto& [request, carrier] : cases) {
    const auto composed = compose_call(request, carrier, "ours");
    ASSERT_FALSE(composed);
    EXPECT_THAT(composed.error().message, testing::HasSubstr("of its own"));
    EXPECT_THAT(composed.error().message, testing::Not(testing::HasSubstr("theirs")));
  }
}

TEST(Compose, RefusesAKeyThatHasNoPlace) {
  const std::pair<StoredRequest, KeyCarrier> cases[] = {
      {{.url = "https://h/", .body = "no json"}, {.in = In::json_member, .name = "/key"}},
      {{.url = "https://h/", .body = "[]"}, {.in = In::json_member, .name = "/key"}},
      {{.url = "https://h/", .body = "{}"}, {.in = In::json_member, .name = "/in/key"}},
      {{.url = "https://h/", .body = "no form"}, {.in = In::form_field, .name = "key"}},
      {{.url = "https://h/"}, {.size_max = 3}},
  };
  for (const auto& [request, carrier] : cases) EXPECT_FALSE(compose_call(request, carrier, "long"));
  EXPECT_FALSE(compose_call({.url = "https://h/"}, {}, ""));
}

TEST(Compose, LaterHeadersReplaceThoseOfTheSameName) {
  Attributes headers{{"A", "1"}, {"B", "2"}, {"a", "3"}};
  add_headers(headers, {{"a", "4"}, {"C", "5"}});
  EXPECT_EQ(headers.entries(), (Attributes{{"B", "2"}, {"a", "4"}, {"C", "5"}}.entries()));
}

class Asking : public testing::Test {
 protected:
  Result<net::Outgoing> ask(const Lookup& lookup, std::string reference = "order 1&2", std::string id = "") const {
    return compose_lookup(lookup, {.request = request_,
                                   .asked = asked_,
                                   .reference = std::move(reference),
                                   .key = "k",
                                   .id = std::move(id),
                                   .now = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + 1h});
  }
  const StoredRequest request_{.url = "https://api.example:8443/v1/pay?x=y",
                               .headers = {{"Version", "7"}, {"Content-Type", "application/json"}},
                               .body = R"({"amount": 5, "to": {"place": "a b"}})"};
  const Body asked_{request_.body, "application/json"};
};

TEST_F(Asking, FillsTheTemplate) {
  const auto url = [&](std::string text) { return ask({.url = std::move(text)}, "order 1&2", "i/1").value().url; };
  EXPECT_EQ(url("/v1/find?ref={reference}&key={key}"), "https://api.example:8443/v1/find?ref=order%201%262&key=k");
  EXPECT_EQ(url("https://other.example/{id}"), "https://other.example/i%2F1");
  EXPECT_EQ(url("/p?place={asked:/to/place}&amount={asked:/amount}"),
            "https://api.example:8443/p?place=a%20b&amount=5");
  EXPECT_EQ(url("/p?none={asked:/none}&from={from}&to={to}"),
            "https://api.example:8443/p?from=2026-02-26T01%3A00%3A00Z&to=2026-03-01T01%3A00%3A00Z");
  EXPECT_EQ(url("/p?none={asked:/none}"), "https://api.example:8443/p");
}

TEST_F(Asking, FillsABodyAndLeavesOtherBracesAlone) {
  const auto outgoing =
      ask({.method = "POST", .url = "/graphql", .body = R"({"q": "{ a { b } }", "r": "{reference}"})"}, "a\"b");
  EXPECT_EQ(outgoing.value().body, R"({"q": "{ a { b } }", "r": "a\"b"})");
  EXPECT_EQ(outgoing.value().headers.entries(),
            (Attributes{{"Version", "7"}, {"Content-Type", "application/json"}}.entries()));
}

TEST_F(Asking, CannotAskForWhatItDoesNotHave) {
  EXPECT_FALSE(ask({.url = "/v1/{id}"}));
  EXPECT_FALSE(ask({.url = "/v1/x", .body = "{reference}"}, ""));
}

TEST(Compose, AddsToAQuery) {
  EXPECT_EQ(with_query("https://h/a", "c", "d e"), "https://h/a?c=d%20e");
  EXPECT_EQ(with_query("https://h/a?b", "c", "d"), "https://h/a?b&c=d");
}

}  // namespace
}  // namespace semel::http
