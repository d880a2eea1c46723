// The stored form of a request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <semel/performers/http.hpp>

namespace semel::http {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(StoredRequest, SurvivesBeingStored) {
  const StoredRequest requests[] = {
      {.url = "https://api.example/v1/charges", .body = "amount=1"},
      {.method = "PUT",
       .url = "http://h/",
       .headers = {{"A", "1"}, {"a", "2"}, {"E", ""}},
       .body = "{\"a\":\"\\u0000\"}"},
      {.url = "https://h/?q=\xc3\xa4", .body = std::string("\xff\x00\xfe", 3)},
      {.method = "DELETE", .url = "https://h/"},
  };
  for (const auto& request : requests) {
    const auto back = decode_request(encode_request(request).value()).value();
    EXPECT_EQ(back.method, request.method);
    EXPECT_EQ(back.url, request.url);
    EXPECT_EQ(back.headers.entries(), request.headers.entries());
    EXPECT_EQ(back.body, request.body);
  }
}

TEST(StoredRequest, IsJsonThatAPersonCanRead) {
  EXPECT_EQ(encode_request({.url = "https://h/", .headers = {{"A", "b"}}, .body = "c"}).value(),
            R"({"method":"POST","url":"https://h/","headers":[["A","b"]],"body":"c"})");
}

TEST(StoredRequest, MayBeWrittenByAPerson) {
  const auto request = decode_request(R"({"url": "https://h/", "headers": {"A": "b"}})").value();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.headers.find("a"), "b");
  EXPECT_EQ(request.body, "");
}

TEST(StoredRequest, HoldsNoCredentialsAndNothingThatCannotBeSent) {
  const StoredRequest cases[] = {
      {.url = "https://h/", .headers = {{"authorization", "Bearer secret"}}},
      {.url = "https://h/", .headers = {{"Cookie", "secret"}}},
      {.url = "https://h/", .headers = {{"X-Api-Key", "secret"}}},
      {.url = "https://h/", .headers = {{"A", "secret\r\nB: c"}}},
      {.url = "https://h/", .headers = {{"A", "secret\xff"}}},
      {.url = "ftp://secret/"},
      {.url = ""},
      {.method = "secret method", .url = "https://h/"},
  };
  for (const auto& request : cases) {
    const auto stored = encode_request(request);
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.error().code, ErrorCode::handler_misused);
    EXPECT_THAT(stored.error().message, Not(HasSubstr("secret")));
  }
}

TEST(StoredRequest, WhatIsNoneIsRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"url": 7})", R"({"url": ""})", R"({"url": "https://h/", "method": 1})",
        R"({"url": "https://h/", "headers": [["a"]]})", R"({"url": "https://h/", "headers": {"a": 1}})",
        R"({"url": "https://h/", "headers": "a: b"})", R"({"url": "https://h/", "body": {}})",
        R"({"url": "https://h/", "body_base64": "?"})", R"({"url": "https://h/", "body": "", "body_base64": ""})"}) {
    const auto request = decode_request(text);
    ASSERT_FALSE(request) << text;
    EXPECT_EQ(request.error().code, ErrorCode::malformed_body) << text;
  }
}

}  // namespace
}  // namespace semel::http
