#include "performers/http/retry_after.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace semel::http {

namespace {

constexpr std::chrono::milliseconds longest = std::chrono::hours(24);

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::vector<std::string_view> words(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> found;
  while (true) {
    const auto start = text.find_first_not_of(separators);
    if (start == text.npos) return found;
    text.remove_prefix(start);
    const auto end = std::min(text.find_first_of(separators), text.size());
    found.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

struct DateWords {
  std::string_view day, month, year, time;
};

std::optional<std::chrono::sys_seconds> date_of(const DateWords& date) {
  static constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto month = std::find(months.begin(), months.end(), date.month);
  const auto day = number(date.day);
  auto year = number(date.year);
  const auto clock = words(date.time, ":");
  if (month == months.end() || !day || !year || clock.size() != 3) return std::nullopt;
  if (date.year.size() == 2) *year += *year < 70 ? 2000 : 1900;
  const auto hour = number(clock[0]), minute = number(clock[1]), second = number(clock[2]);
  if (*day > 31 || *year > 9999) return std::nullopt;
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const std::chrono::year_month_day whole{std::chrono::year(*year),
                                          std::chrono::month(static_cast<unsigned>(month - months.begin()) + 1),
                                          std::chrono::day(static_cast<unsigned>(*day))};
  if (!whole.ok()) return std::nullopt;
  return std::chrono::sys_days(whole) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second);
}

}  // namespace

std::optional<std::chrono::sys_seconds> http_date(std::string_view text) {
  // Sun, 06 Nov 1994 08:49:37 GMT    Sunday, 06-Nov-94 08:49:37 GMT    Sun Nov  6 08:49:37 1994
  if (text.find(',') != text.npos) {
    const auto part = words(text, " ,-");
    if (part.size() != 6 || part[5] != "GMT") return std::nullopt;
    return date_of({.day = part[1], .month = part[2], .year = part[3], .time = part[4]});
  }
  const auto part = words(text, " ");
  if (part.size() != 5) return std::nullopt;
  return date_of({.day = part[2], .month = part[1], .year = part[4], .time = part[3]});
}

std::optional<std::chrono::milliseconds> retry_after(const Attributes& headers,
                                                     std::chrono::system_clock::time_point now) {
  const auto value = headers.find("Retry-After");
  if (!value) return std::nullopt;
  std::chrono::milliseconds wait{0};
  if (value->find_first_not_of("0123456789") == value->npos && !value->empty()) {
    const auto seconds = number(*value);
    wait = seconds ? std::chrono::seconds(*seconds) : longest;  // too many digits is long
  } else if (const auto until = http_date(*value)) {
    const auto date = headers.find("Date");
    const auto from = date ? http_date(*date) : std::nullopt;
    // Not in the clock's own nanoseconds: those end in the year 2262.
    const auto since = std::chrono::floor<std::chrono::milliseconds>(now);
    wait = *until - (from ? *from : since);
  } else {
    return std::nullopt;
  }
  return std::clamp(wait, std::chrono::milliseconds(0), longest);
}

}  // namespace semel::http
