#include <gtest/gtest.h>

#include <semel/answer.hpp>

namespace semel {
namespace {

// Replays elsewhere lost Location, and gave one caller's cookie to the next: it had been cut at the comma of its date.
TEST(Answer, AReplayCarriesHeadersOfAnAllowListAndNeverACookie) {
  const Attributes headers{{"Content-Type", "application/json"},
                           {"Set-Cookie", "sid=s3cret; Expires=Mon, 21 Oct 2030 07:28:00 GMT"},
                           {"LOCATION", "/charges/1"},
                           {"set-cookie", "a=1, b=2"},
                           {"Set-Cookie2", "a=1"},
                           {"Cookie", "a=1"},
                           {"ETag", "\"1, 2\""},
                           {"Link", "</a>; rel=next, </b>; rel=prev"},
                           {"link", "</c>"},
                           {"Content-Language", "en"},
                           {"Content-Location", "/c"},
                           {"Last-Modified", "Mon, 21 Oct 2030 07:28:00 GMT"},
                           {"Retry-After", "3"},
                           {"Date", "Mon, 21 Oct 2030 07:28:00 GMT"},
                           {"Authorization", "Bearer s3cret"},
                           {"WWW-Authenticate", "Basic"},
                           {"Proxy-Authenticate", "Basic"},
                           {"Authentication-Info", "x"},
                           {"Connection", "close"},
                           {"Transfer-Encoding", "chunked"},
                           {"Content-Length", "7"},
                           {"Content-Encoding", "gzip"},
                           {"X-Request-Id", "1"},
                           {"Traceparent", "00-1"},
                           {"location ", "/not-this"},
                           {"", ""}};
  const auto kept = replayable_headers(headers);
  const std::vector<Attributes::Entry> expected{{"Content-Type", "application/json"},
                                                {"LOCATION", "/charges/1"},
                                                {"ETag", "\"1, 2\""},
                                                {"Link", "</a>; rel=next, </b>; rel=prev"},
                                                {"link", "</c>"},
                                                {"Content-Language", "en"},
                                                {"Content-Location", "/c"},
                                                {"Last-Modified", "Mon, 21 Oct 2030 07:28:00 GMT"},
                                                {"Retry-After", "3"},
                                                {"Content-Encoding", "gzip"}};
  EXPECT_EQ(kept.entries(), expected);
}

}  // namespace
}  // namespace semel
