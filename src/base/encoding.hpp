// Bytes written as other bytes: hex, base64, and fields joined so that they can be told apart again.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace semel {

/// Lower case.
std::string hex_encode(std::string_view bytes);
/// Either case; nothing for an odd length or any other character.
std::optional<std::string> hex_decode(std::string_view text);

/// The standard alphabet of RFC 4648, padded.
std::string base64_encode(std::string_view bytes);
/// Strict: the standard alphabet, padded, no white space, unused bits zero; nothing otherwise.
std::optional<std::string> base64_decode(std::string_view text);

/// Four bytes, most significant first.
void append_u32(std::string& out, std::uint32_t number);
/// A field: its length (u32, most significant byte first), then its bytes.
void append_field(std::string& out, std::string_view field);
/// All fields one after the other. Two lists of fields give the same bytes only if they are the same.
std::string join_fields(std::initializer_list<std::string_view> fields);

/// Takes apart what the functions above wrote. Never reads past the end: a read that finds too little gives nothing.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

  std::optional<std::uint8_t> byte();
  std::optional<std::uint32_t> u32();
  std::optional<std::string_view> field();
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace semel
