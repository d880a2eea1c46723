#include "sources/http/idempotency_key.hpp"

#include <algorithm>
#include <semel/key.hpp>
#include <string_view>

namespace semel::http {

namespace {

constexpr std::string_view header = "Idempotency-Key";

Error invalid(std::string_view problem) {
  return fix_call(ErrorCode::idempotency_key_invalid, "Idempotency-Key " + std::string(problem));
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

/// Reads a String off the front of `rest`.
Result<std::string> take_string(std::string_view& rest) {
  std::string key;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    char c = rest[i];
    if (c == '"') {
      rest.remove_prefix(i + 1);
      return key;
    }
    if (c < 0x20 || c > 0x7e) return invalid("holds a character that is not printable ASCII");
    if (c == '\\') {
      c = ++i < rest.size() ? rest[i] : '\0';
      if (c != '"' && c != '\\') return invalid("has a backslash before something else than a quote or a backslash");
    }
    key += c;
  }
  return invalid("has no closing quote");
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '*';
}

bool is_value_character(char c) { return c > 0x20 && c < 0x7f && c != '"' && c != ',' && c != ';'; }

/// Reads one `;name` or `;name=value` off the front of `rest`; false where it is none.
bool take_parameter(std::string_view& rest) {
  rest.remove_prefix(1);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const auto name_end = std::ranges::find_if_not(rest, is_name_character);
  const std::string_view name(rest.begin(), name_end);
  if (name.empty() || !((name[0] >= 'a' && name[0] <= 'z') || name[0] == '*')) return false;
  rest.remove_prefix(name.size());
  if (!rest.starts_with('=')) return true;
  rest.remove_prefix(1);
  if (rest.starts_with('"')) return take_string(rest).has_value();
  const auto value_end = std::ranges::find_if_not(rest, is_value_character);
  const bool some = value_end != rest.begin();
  rest.remove_prefix(static_cast<std::size_t>(value_end - rest.begin()));
  return some;
}

Result<std::string> quoted_key(std::string_view rest) {
  auto key = take_string(rest);
  if (!key) return key;
  while (rest.starts_with(';'))
    if (!take_parameter(rest)) return invalid("is followed by something else than parameters");
  if (!rest.empty()) return invalid(rest.starts_with(',') ? "is a list; one key is needed" : "goes on after its quote");
  return key;
}

Result<std::string> bare_key(std::string_view text) {
  if (text.find(',') != text.npos) return invalid("is a list; one key is needed");
  if (!std::ranges::all_of(text, is_value_character))
    return invalid("must be quoted where it is more than visible ASCII characters");
  return std::string(text);
}

}  // namespace

Result<std::string> idempotency_key(const Attributes& headers) {
  const auto count = headers.count(header);
  if (count == 0) return fix_call(ErrorCode::idempotency_key_missing, "an Idempotency-Key header is needed here");
  if (count > 1) return invalid("is there more than once");
  const auto text = trimmed(*headers.find(header));
  auto key = text.starts_with('"') ? quoted_key(text) : bare_key(text);
  if (!key) return key;
  if (key->empty()) return invalid("is empty");
  if (key->size() > Key::size_max) return invalid("is longer than " + std::to_string(Key::size_max) + " bytes");
  return key;
}

}  // namespace semel::http
