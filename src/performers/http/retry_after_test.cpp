#include "performers/http/retry_after.hpp"

#include <gtest/gtest.h>

namespace semel::http {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;

constexpr auto moment = sys_days(std::chrono::year(1994) / 11 / 6) + 8h + 49min + 37s;

TEST(HttpDate, HasThreeForms) {
  for (const char* text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"})
    EXPECT_EQ(http_date(text), moment) << text;
  for (const char* text :
       {"", "Sun, 06 Nov 1994 08:49:37", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Non 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT", "tomorrow", ", , , , ,", "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 262 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 67530 08:49:37 GMT"})
    EXPECT_EQ(http_date(text), std::nullopt) << text;
}

TEST(RetryAfter, IsInSecondsOrADate) {
  const std::pair<Attributes, std::optional<std::chrono::milliseconds>> cases[] = {
      {{}, std::nullopt},
      {{{"retry-after", "7"}}, 7s},
      {{{"Retry-After", "0"}}, 0s},
      {{{"Retry-After", "99999999999999999999"}}, 24h},
      {{{"Retry-After", "999999"}}, 24h},
      {{{"Retry-After", "-1"}}, std::nullopt},
      {{{"Retry-After", "soon"}}, std::nullopt},
      {{{"Retry-After", ""}}, std::nullopt},
      {{{"Retry-After", "Sun, 06 Nov 1994 08:50:00 GMT"}}, 23s},
      {{{"Retry-After", "Sun, 06 Nov 1994 08:00:00 GMT"}}, 0s},
      // Beyond what the clock can count in nanoseconds.
      {{{"Retry-After", "Wed, 01 Jan 2600 00:00:00 GMT"}}, 24h},
      // The server's own clock counts, not ours.
      {{{"Retry-After", "Sun, 06 Nov 1994 18:50:00 GMT"}, {"Date", "Sun, 06 Nov 1994 18:49:30 GMT"}}, 30s},
  };
  for (const auto& [headers, wait] : cases)
    EXPECT_EQ(retry_after(headers, moment), wait) << headers.find("Retry-After").value_or("none");
}

}  // namespace
}  // namespace semel::http
