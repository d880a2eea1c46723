#include <gtest/gtest.h>

#include <semel/fingerprint.hpp>
#include <set>

#include "base/digest.hpp"
#include "base/encoding.hpp"
#include "values/delivery_for_test.hpp"

namespace semel {
namespace {

using namespace std::string_literals;
using Parts = FingerprintPolicy::Parts;

Fingerprint print(const FingerprintPolicy& policy, const Delivery& delivery) {
  const auto document = Document::parse(delivery.body);
  return fingerprint_of(policy, policy.parts, delivery, document ? &*document : nullptr);
}

Fingerprint print(const FingerprintPolicy& policy, const std::string& body) {
  return print(policy, delivery_with(body));
}

const FingerprintPolicy whole_body{.parts = Parts::body};

TEST(Fingerprint, IsAVersionByteAndSha256) {
  const auto bytes = print(whole_body, R"({"b":1.0, "a":2})").bytes();
  EXPECT_EQ(bytes, "\x01" + sha256(join_fields({"json", R"({"a":2,"b":1})"})));
  EXPECT_EQ(bytes.size(), 33u);
}

TEST(Fingerprint, NotationAndMemberOrderDoNotCount) {
  const auto print_of = [](const auto* body) { return print(whole_body, std::string(body)); };
  const auto one = print_of(R"({"id":"evt_1","amount":1000,"lines":[{"a":1,"b":2}]})");
  for (const auto* same : {R"({"amount":1000,"lines":[{"b":2,"a":1}],"id":"evt_1"})",
                           R"( { "id" : "evt_\u0031" , "amount" : 1e3 , "lines" : [ { "a" : 1.0, "b" : 2 } ] } )"})
    EXPECT_FALSE(one.contradicts(print_of(same))) << same;
}

TEST(Fingerprint, EverythingThatWasSaidCounts) {
  const std::vector<std::string> bodies{R"({"id":1,"amount":10})",
                                        R"({"id":1,"amount":1000})",
                                        R"({"id":1,"amount":"10"})",
                                        R"({"id":1,"amount":null})",
                                        R"({"id":1})",
                                        R"({"id":1,"amount":10,"note":null})",
                                        R"({"id":1,"amount":[10]})",
                                        R"({"id":1,"amount":[10,20]})",
                                        R"({"id":1,"amount":[20,10]})",
                                        R"({"id":1,"Amount":10})",
                                        R"({"id":12345678901234567890})",
                                        R"({"id":12345678901234567891})",
                                        R"({"id":9007199254740992})",
                                        R"({"id":9007199254740993})",
                                        R"({"id":"a\u0000b"})",
                                        R"({"id":"a"})",
                                        "{\"id\":\"\xc3\xa9\"}",
                                        "{\"id\":\"e\xcc\x81\"}"};
  std::set<std::string> prints;
  for (const auto& body : bodies) prints.insert(print(whole_body, body).bytes());
  EXPECT_EQ(prints.size(), bodies.size());
}

TEST(Fingerprint, WhatIsNotJsonCountsByItsBytes) {
  std::set<std::string> prints;
  const std::vector<std::string> bodies{"a=1&b=2", "b=2&a=1", "a=1&b=2 ",   "",
                                        "\0"s,     "\0\0"s,   "{\"a\":1}x", "{\"a\":1} x"};
  for (const auto& body : bodies) prints.insert(print(whole_body, body).bytes());
  EXPECT_EQ(prints.size(), bodies.size());
  EXPECT_EQ(print(whole_body, "a=1&b=2"s), print(whole_body, "a=1&b=2"s));
  for (const auto parts : {Parts::only, Parts::all_but})
    EXPECT_NE(print({parts, {"/a"}}, "a=1"s), print({parts, {"/a"}}, "a=2"s))
        << "no member can be named in such a body";
}

// A retry carried a new time stamp, so it looked like another payment.
TEST(Fingerprint, OnlyTheNamedMembersCount) {
  const FingerprintPolicy only{.parts = Parts::only, .pointers = {"/order", "/amount"}};
  const auto first = print(only, R"({"order":"o1","amount":10,"sdk":{"createdAt":"10:00"}})"s);
  EXPECT_EQ(first, print(only, R"({"sdk":{"createdAt":"10:07"},"amount":10.0,"order":"o1"})"s));
  EXPECT_NE(first, print(only, R"({"order":"o1","amount":1000,"sdk":{"createdAt":"10:00"}})"s));
  EXPECT_NE(first, print(only, R"({"order":"o2","amount":10})"s));
  EXPECT_NE(first, print(only, R"({"order":10,"amount":"o1"})"s));
  EXPECT_NE(first, print(only, R"({"order":"o1"})"s));
  EXPECT_NE(print(only, R"({"order":"o1"})"s), print(only, R"({"order":"o1","amount":null})"s));
  EXPECT_NE(print(only, R"({"order":"o1"})"s), print(only, R"({"amount":"o1"})"s));
  EXPECT_EQ(first, print({Parts::only, {"/amount", "/order"}}, R"({"order":"o1","amount":10})"s));
}

TEST(Fingerprint, TheMembersThatDoNotCountAreLeftOut) {
  const FingerprintPolicy all_but{.parts = Parts::all_but, .pointers = {"/attempt", "/sdk/createdAt"}};
  const auto first = print(all_but, R"({"id":1,"attempt":1,"sdk":{"v":2,"createdAt":"10:00"}})"s);
  EXPECT_EQ(first, print(all_but, R"({"id":1,"attempt":2,"sdk":{"createdAt":"10:07","v":2}})"s));
  EXPECT_EQ(first, print(all_but, R"({"id":1,"sdk":{"v":2}})"s));
  EXPECT_NE(first, print(all_but, R"({"id":1,"attempt":1,"sdk":{"v":3,"createdAt":"10:00"}})"s));
  EXPECT_NE(first, print(all_but, R"({"id":1,"attempt":1})"s));
  EXPECT_NE(first, print(all_but, R"({"id":2,"attempt":1,"sdk":{"v":2,"createdAt":"10:00"}})"s));
  EXPECT_NE(first, print(all_but, R"({"id":1,"sdk":{"v":2},"createdAt":"10:00"})"s))
      << "a member of that name elsewhere counts";
}

TEST(Fingerprint, OfARequestMethodAndPathCount) {
  const FingerprintPolicy request{.parts = Parts::request};
  const auto print_of = [&](std::string method, std::string path, std::string body) {
    auto delivery = delivery_with(body);
    delivery.attributes = {{":method", std::move(method)}, {":path", std::move(path)}, {"Date", body}};
    return print(request, delivery);
  };
  const auto first = print_of("POST", "/charges", R"({"a":1,"b":2})");
  EXPECT_EQ(first, print_of("POST", "/charges", R"({"b":2,"a":1})"));
  std::set<std::string> prints{first.bytes()};
  prints.insert(print_of("PUT", "/charges", R"({"a":1,"b":2})").bytes());
  prints.insert(print_of("POST", "/charges/1", R"({"a":1,"b":2})").bytes());
  prints.insert(print_of("POST", "/Charges", R"({"a":1,"b":2})").bytes());
  prints.insert(print_of("POST", "/charges", R"({"a":1})").bytes());
  prints.insert(print_of("POST/", "charges", R"({"a":1,"b":2})").bytes());
  prints.insert(print(whole_body, R"({"a":1,"b":2})").bytes());
  EXPECT_EQ(prints.size(), 7u);
}

TEST(Fingerprint, OfNothingContradictsNothing) {
  const auto none = print({.parts = Parts::none}, "{}"s);
  const auto some = print(whole_body, "{}"s);
  const auto other = print(whole_body, "[]"s);
  EXPECT_TRUE(none.empty());
  EXPECT_FALSE(none.contradicts(some));
  EXPECT_FALSE(some.contradicts(none));
  EXPECT_FALSE(none.contradicts(none));
  EXPECT_FALSE(some.contradicts(some));
  EXPECT_TRUE(some.contradicts(other));
  EXPECT_TRUE(other.contradicts(some));
  EXPECT_FALSE(some.contradicts(Fingerprint::from_bytes(some.bytes())));
}

TEST(FingerprintPolicy, AutomaticFollowsWhatTheKeyIs) {
  const auto header = KeyExpression::attribute("Idempotency-Key");
  const auto id = KeyExpression::body("/id");
  const auto transport = KeyExpression::transport_id();
  struct Case {
    KeyExpression key;
    Sender sender;
    bool verified, event_id;
    Parts parts;
  };
  for (const auto& [key, sender, verified, event_id, parts] : {
           Case{header, Sender::caller, false, false, Parts::request},
           Case{header, Sender::caller, true, false, Parts::request},
           Case{KeyExpression::all_of({header, id}), Sender::caller, false, false, Parts::request},
           Case{id, Sender::caller, false, false, Parts::body},
           Case{id, Sender::message, false, false, Parts::body},
           Case{header, Sender::message, false, false, Parts::body},
           Case{id, Sender::caller, true, false, Parts::body},
           Case{id, Sender::caller, true, true, Parts::none},
           Case{header, Sender::caller, true, true, Parts::none},
           Case{id, Sender::caller, false, true, Parts::body},  // nobody vouches for the id
           Case{transport, Sender::message, false, false, Parts::none},
           Case{KeyExpression::all_of({id, transport}), Sender::message, false, false, Parts::none},
       }) {
    auto delivery = delivery_with("{}");
    delivery.sender = sender;
    delivery.sender_verified = verified;
    EXPECT_EQ(FingerprintPolicy::resolve(key, delivery, event_id), parts) << key.text() << verified << event_id;
  }
}

}  // namespace
}  // namespace semel
