#include "base/encoding.hpp"

#include <array>
#include <limits>
#include <stdexcept>

namespace semel {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::uint32_t octet(char c) { return static_cast<unsigned char>(c); }

/// Of one base64 digit; 64 for any other character.
std::uint32_t base64_value(char c) {
  static constexpr auto table = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(64);
    for (std::size_t i = 0; i < base64_digits.size(); ++i)
      values[static_cast<unsigned char>(base64_digits[i])] = static_cast<std::uint8_t>(i);
    return values;
  }();
  return table[static_cast<unsigned char>(c)];
}

}  // namespace

std::string hex_encode(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    out += hex_digits[octet(c) >> 4];
    out += hex_digits[octet(c) & 15];
  }
  return out;
}

std::optional<std::string> hex_decode(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_value(text[i]);
    const int low = hex_value(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto left = bytes.size() - i;
    const auto group =
        octet(bytes[i]) << 16 | (left > 1 ? octet(bytes[i + 1]) << 8 : 0) | (left > 2 ? octet(bytes[i + 2]) : 0);
    out += base64_digits[group >> 18];
    out += base64_digits[group >> 12 & 63];
    out += left > 1 ? base64_digits[group >> 6 & 63] : '=';
    out += left > 2 ? base64_digits[group & 63] : '=';
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) text.remove_suffix(1), ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : text) {
    const auto value = base64_value(c);
    if (value == 64) return std::nullopt;
    held = held << 6 | value;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(held >> bits & 255);
    held &= (1u << bits) - 1;
  }
  if (held != 0) return std::nullopt;
  return out;
}

void append_u32(std::string& out, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 255);
}

void append_field(std::string& out, std::string_view field) {
  if (field.size() > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("a field of 4 GiB or more");
  append_u32(out, static_cast<std::uint32_t>(field.size()));
  out += field;
}

std::string join_fields(std::initializer_list<std::string_view> fields) {
  std::string out;
  for (const auto field : fields) append_field(out, field);
  return out;
}

std::optional<std::uint8_t> FieldReader::byte() {
  if (rest_.empty()) return std::nullopt;
  const auto value = static_cast<std::uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return value;
}

std::optional<std::uint32_t> FieldReader::u32() {
  if (rest_.size() < 4) return std::nullopt;
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | octet(rest_[static_cast<std::size_t>(i)]);
  rest_.remove_prefix(4);
  return value;
}

std::optional<std::string_view> FieldReader::field() {
  const auto size = u32();
  if (!size || *size > rest_.size()) return std::nullopt;
  const auto field = rest_.substr(0, *size);
  rest_.remove_prefix(*size);
  return field;
}

}  // namespace semel
