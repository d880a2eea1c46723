#include "net/http_head.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

namespace semel::net {

namespace {

constexpr std::array<std::pair<int, std::string_view>, 37> reasons{{
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {425, "Too Early"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
}};

constexpr std::array<std::string_view, 9> framing{"connection", "content-length",   "date",
                                                  "keep-alive", "proxy-connection", "te",
                                                  "trailer",    "upgrade",          "transfer-encoding"};

bool is_token(std::string_view text) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || marks.find(c) != marks.npos;
  });
}

bool is_field_value(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f; });
}

bool is_framing(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return std::ranges::find(framing, lower) != framing.end();
}

}  // namespace

std::string_view reason_phrase(int status) {
  const auto found = std::ranges::find(reasons, status, [](const auto& row) { return row.first; });
  return found == reasons.end() ? std::string_view{} : found->second;
}

bool may_have_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string response_head(const Response& response, bool keep_alive, std::string_view date) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head.append(reason_phrase(response.status)).append("\r\n");
  for (const auto& [name, value] : response.headers.entries())
    if (is_token(name) && is_field_value(value) && !is_framing(name))
      head.append(name).append(": ").append(value).append("\r\n");
  if (may_have_body(response.status))
    head.append("Content-Length: ").append(std::to_string(response.body.size())).append("\r\n");
  head.append("Date: ").append(date).append("\r\n");
  if (!keep_alive) head.append("Connection: close\r\n");
  return head.append("\r\n");
}

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[40];
  // The program never leaves the "C" locale, so that the names are the English ones.
  return std::string(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc));
}

}  // namespace semel::net
