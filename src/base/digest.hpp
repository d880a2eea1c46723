// Digests and message authentication codes, as raw bytes.
#pragma once

#include <string>
#include <string_view>

namespace semel {

/// 32 bytes.
std::string sha256(std::string_view data);
/// 32 bytes.
std::string hmac_sha256(std::string_view key, std::string_view data);
/// 64 bytes.
std::string hmac_sha512(std::string_view key, std::string_view data);

/// Takes as long for a difference in the first byte as for one in the last; only the lengths may be learnt.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace semel
