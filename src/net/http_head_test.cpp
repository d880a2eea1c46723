#include "net/http_head.hpp"

#include <gtest/gtest.h>

namespace semel::net {
namespace {

constexpr std::string_view date = "Thu, 01 Jan 1970 00:00:00 GMT";

TEST(HttpHead, IsStatusHeadersLengthAndDate) {
  const Response response{.status = 201, .headers = {{"Location", "/charges/7"}}, .body = "made", .close = false};
  EXPECT_EQ(response_head(response, true, date),
            "HTTP/1.1 201 Created\r\nLocation: /charges/7\r\nContent-Length: 4\r\n"
            "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n");
}

TEST(HttpHead, SaysThatTheConnectionEnds) {
  EXPECT_NE(response_head({}, false, date).find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_EQ(response_head({}, true, date).find("Connection"), std::string::npos);
}

TEST(HttpHead, HasNoLengthWhereThereCanBeNoBody) {
  for (const int status : {204, 304}) {
    EXPECT_FALSE(may_have_body(status));
    EXPECT_EQ(response_head({.status = status}, true, date).find("Content-Length"), std::string::npos) << status;
  }
}

TEST(HttpHead, LeavesOutWhatWouldSplitOrReframeTheAnswer) {
  const Attributes hostile{{"X-A", "1\r\nX-Injected: 1"},
                           {"X-B\r\nX-Injected", "1"},
                           {"X C", "1"},
                           {"", "1"},
                           {"Content-Length", "0"},
                           {"transfer-encoding", "chunked"},
                           {"CONNECTION", "keep-alive, x-a"},
                           {"X-Nul", std::string("a\0b", 3)}};
  EXPECT_EQ(response_head({.status = 200, .headers = hostile, .body = "x"}, true, date),
            response_head({.status = 200, .headers = {}, .body = "x"}, true, date));
}

TEST(HttpHead, AStatusWithoutANameKeepsItsNumber) {
  EXPECT_TRUE(response_head({.status = 299}, true, date).starts_with("HTTP/1.1 299 \r\n"));
}

}  // namespace
}  // namespace semel::net
