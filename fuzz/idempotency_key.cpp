// The Idempotency-Key header.
//
//   input = the header's lines, an empty one at the end
#include "sources/http/idempotency_key.hpp"

#include <semel/key.hpp>

#include "input.hpp"

namespace semel::fuzz {
namespace {

std::string quoted(const std::string& key) {
  std::string out = "\"";
  for (const char c : key) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

/// In no message by chance.
constexpr std::string_view marker = "M4rk3r";

void check_refused(const std::vector<std::string_view>& lines) {
  Attributes headers;
  for (const auto line : lines) headers.add("Idempotency-Key", std::string(line).append(marker));
  const auto key = http::idempotency_key(headers);
  if (!key) promise(key.error().message.find(marker) == std::string::npos, "no error repeats the key");
}

}  // namespace

void try_one(Input input) {
  Attributes headers{{"Host", "here"}};
  const auto lines = input.paragraph();
  for (const auto line : lines) headers.add("Idempotency-Key", std::string(line));
  const auto key = http::idempotency_key(headers);
  check_refused(lines);
  if (!key) return;
  promise(lines.size() == 1, "one line gives one key");
  promise(!key->empty() && key->size() <= Key::size_max, "a key has 1 to 1,024 bytes");
  promise(std::all_of(key->begin(), key->end(), [](char c) { return c >= 0x20 && c <= 0x7e; }),
          "a key is printable ASCII");
  const auto again = http::idempotency_key({{"Idempotency-Key", quoted(*key)}});
  promise(again && *again == *key, "a key in quotes is the same key");
  const auto with_parameter = http::idempotency_key({{"idempotency-key", " " + quoted(*key) + ";a=1\t"}});
  promise(with_parameter && *with_parameter == *key, "a parameter changes no key");
}

}  // namespace semel::fuzz
