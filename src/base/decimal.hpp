// Decimal numbers by their exact value, whatever their size and notation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace semel {

/// (−1)^negative × digits × 10^exponent, in the one form that every notation of the value shares: `digits` begins and
/// ends with another digit than 0, but for zero itself, which is "0" with no sign and exponent 0.
struct ExactDecimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;

  bool is_integer() const { return exponent >= 0; }
  bool operator==(const ExactDecimal&) const = default;
};

/// Reads a number in JSON's notation; nothing where it is none, or its exponent does not fit in 64 bits.
std::optional<ExactDecimal> exact_decimal(std::string_view text);

}  // namespace semel
