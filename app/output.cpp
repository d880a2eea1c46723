#include "output.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <iostream>

#include "base/encoding.hpp"
#include "base/utf8.hpp"

namespace semel::app {
namespace {

int exit_code(ErrorCode code) {
  const int number = static_cast<int>(code);
  const bool is_configuration = (number >= 401 && number <= 499) || code == ErrorCode::source_settings_invalid;
  return is_configuration ? configuration : failure;
}

bool carries_credentials(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto* part :
       {"authorization", "cookie", "api-key", "apikey", "token", "secret", "password", "signature"}) {
    if (lower.find(part) != std::string::npos) return true;
  }
  return false;
}

/// Control characters above ASCII (U+0080 to U+009F), line ends (U+2028, U+2029), and those that turn the direction of
/// what follows (U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), in UTF-8.
bool commands_a_terminal(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0; };
  if (byte(0) == 0xc2) return byte(1) < 0xa0;
  if (byte(0) != 0xe2) return false;
  const auto last = byte(2);
  if (byte(1) == 0x80) return last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae);
  return byte(1) == 0x81 && last >= 0xa6 && last <= 0xa9;
}

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

int report(const Error& error, const Redactor& redactor) {
  std::cerr << "semel: " << code_name(error.code) << ": " << printable(redactor.clean(error.message)) << "\n";
  return exit_code(error.code);
}

int report(const std::vector<Mistake>& mistakes, const std::string& file) {
  for (const auto& mistake : mistakes) {
    std::cerr << "semel: " << code_name(mistake.code) << ": " << printable(place_and_message(mistake, file)) << "\n";
  }
  return configuration;
}

void note(std::string_view text) { std::cerr << "semel: " << text << "\n"; }

void print_json(const boost::json::value& value) { std::cout << boost::json::serialize(value) << "\n"; }

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - width(row[i]) + 2, ' ');
    }
    text += line + "\n";
  }
  return text;
}

std::string time_text(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string duration_text(std::chrono::seconds duration) {
  constexpr std::pair<std::int64_t, const char*> units[] = {{86'400, "d"}, {3'600, "h"}, {60, "m"}};
  for (const auto& [seconds, unit] : units) {
    if (duration.count() != 0 && duration.count() % seconds == 0) {
      return std::to_string(duration.count() / seconds) + unit;
    }
  }
  return std::to_string(duration.count()) + "s";
}

std::string printable(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  const bool text = is_valid_utf8(bytes);
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const bool escape =
        first < 0x20 || first == 0x7f || (first >= 0x80 && !text) || commands_a_terminal(bytes.substr(at));
    const std::size_t size = !text || first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    for (const char c : bytes.substr(at, size)) {
      const auto byte = static_cast<unsigned char>(c);
      if (escape) {
        out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      } else {
        out += c;
      }
    }
    at += size;
  }
  return out;
}

void put_bytes(boost::json::object& object, std::string_view name, std::string_view bytes) {
  if (is_valid_utf8(bytes)) {
    object[boost::json::string_view(name.data(), name.size())] = boost::json::string_view(bytes.data(), bytes.size());
  } else {
    object[std::string(name) + "_base64"] = base64_encode(bytes);
  }
}

boost::json::value key_json(const Key& key) {
  const auto parts = key.parts();
  if (parts.size() == 1) return boost::json::string(printable(parts.front()));
  boost::json::array array;
  for (const auto& part : parts) array.push_back(boost::json::string(printable(part)));
  return array;
}

std::string attribute_text(const Attributes::Entry& entry) {
  return printable(entry.first) + ": " + (carries_credentials(entry.first) ? "***" : printable(entry.second));
}

boost::json::array attributes_json(const Attributes& attributes) {
  boost::json::array list;
  for (const auto& [name, value] : attributes.entries()) {
    boost::json::object entry;
    put_bytes(entry, "name", name);
    put_bytes(entry, "value", carries_credentials(name) ? std::string_view("***") : std::string_view(value));
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace semel::app
