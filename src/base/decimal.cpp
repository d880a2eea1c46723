#include "base/decimal.hpp"

#include <charconv>

namespace semel {
namespace {

/// Takes the digits that `text` begins with.
std::string_view take_digits(std::string_view& text) {
  const auto end = text.find_first_not_of("0123456789");
  const auto digits = text.substr(0, end);
  text.remove_prefix(digits.size());
  return digits;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

/// Takes "e5", "E+5", "e-5", or nothing at all (0).
std::optional<std::int64_t> take_exponent(std::string_view& text) {
  if (!take(text, "eE")) return 0;
  const bool plus = take(text, "+");
  if (plus && text.starts_with('-')) return std::nullopt;
  std::int64_t exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return exponent;
}

}  // namespace

std::optional<ExactDecimal> exact_decimal(std::string_view text) {
  ExactDecimal number;
  number.negative = take(text, "-");
  const auto whole = take_digits(text);
  if (whole.empty() || (whole.size() > 1 && whole.front() == '0')) return std::nullopt;
  std::string_view fraction;
  if (take(text, ".") && (fraction = take_digits(text)).empty()) return std::nullopt;
  const auto exponent = take_exponent(text);
  if (!exponent || !text.empty()) return std::nullopt;

  number.digits.reserve(whole.size() + fraction.size());
  number.digits.append(whole).append(fraction);
  const auto first = number.digits.find_first_not_of('0');
  if (first == std::string::npos) return ExactDecimal{.negative = false, .digits = "0", .exponent = 0};
  const auto last = number.digits.find_last_not_of('0');
  const auto shift =
      static_cast<std::int64_t>(number.digits.size() - 1 - last) - static_cast<std::int64_t>(fraction.size());
  if (__builtin_add_overflow(*exponent, shift, &number.exponent)) return std::nullopt;
  number.digits = number.digits.substr(first, last - first + 1);
  return number;
}

}  // namespace semel
