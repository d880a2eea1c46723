#include "base/utf8.hpp"

#include <cstddef>

namespace semel {
namespace {

unsigned octet(char c) { return static_cast<unsigned char>(c); }

/// Bytes of the character that `text` begins with; 0 where it begins with none. Table 3-7 of the Unicode standard.
std::size_t character_size(std::string_view text) {
  const unsigned first = octet(text[0]);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < size) return 0;
  // What follows certain first bytes has narrower bounds: overlong forms, surrogates, past the last code point.
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (octet(text[1]) < low || octet(text[1]) > high) return 0;
  for (std::size_t i = 2; i < size; ++i)
    if ((octet(text[i]) & 0xC0) != 0x80) return 0;
  return size;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto size = character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace semel
