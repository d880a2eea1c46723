#include "sources/http/path_pattern.hpp"

#include <optional>

namespace semel::http {

namespace {

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::string decoded(std::string_view segment) {
  std::string text;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    const auto high = segment[i] == '%' && i + 2 < segment.size() ? hex_digit(segment[i + 1]) : std::nullopt;
    const auto low = high ? hex_digit(segment[i + 2]) : std::nullopt;
    const char byte = low ? static_cast<char>(*high * 16 + *low) : segment[i];
    if (!low || byte == '/') {
      text.push_back(segment[i]);
      continue;
    }
    text.push_back(byte);
    i += 2;
  }
  return text;
}

/// Takes the first segment, with its slash, off `path`.
std::string_view next_segment(std::string_view& path) {
  path.remove_prefix(1);
  const auto segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

bool is_plain(std::string_view path) {
  return path.find('%') == path.npos && path.find("//") == path.npos && path.find("/.") == path.npos &&
         (path.size() == 1 || !path.ends_with('/'));
}

}  // namespace

std::string plain_path(std::string_view path) {
  if (!path.starts_with('/') || is_plain(path)) return std::string(path);
  std::vector<std::string> kept;
  while (!path.empty()) {
    auto segment = decoded(next_segment(path));
    if (segment.empty() || segment == ".") continue;
    if (segment != "..")
      kept.push_back(std::move(segment));
    else if (!kept.empty())
      kept.pop_back();
  }
  std::string plain;
  for (const auto& segment : kept) plain.append("/").append(segment);
  return plain.empty() ? "/" : plain;
}

Result<PathPattern> PathPattern::parse(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return fix_call(ErrorCode::source_settings_invalid,
                    "the path \"" + std::string(text) + "\" cannot be guarded: " + std::string(why));
  };
  if (!text.starts_with('/')) return refuse("it does not begin with /");
  if (text.find_first_of("?# \t\r\n") != text.npos) return refuse("it holds a space, ? or #");
  PathPattern pattern;
  pattern.and_below_ = text.ends_with("/**");
  auto rest = pattern.and_below_ ? text.substr(0, text.size() - 3) : text;
  const std::string plain = plain_path(rest.empty() ? "/" : rest);
  if (rest != plain && !(rest.empty() && plain == "/")) return refuse("its plain form is \"" + plain + "\"");
  while (rest.size() > 1) {
    const auto segment = next_segment(rest);
    if (segment != "*" && segment.find('*') != segment.npos)
      return refuse("* stands for a whole segment, and ** only at the end");
    pattern.segments_.emplace_back(segment);
  }
  return pattern;
}

bool PathPattern::matches(std::string_view path) const {
  if (!path.starts_with('/')) return false;
  if (path == "/") path = {};
  for (const auto& segment : segments_) {
    if (path.empty()) return false;
    const auto actual = next_segment(path);
    if (segment != "*" && segment != actual) return false;
  }
  return and_below_ ? !path.empty() : path.empty();
}

}  // namespace semel::http
