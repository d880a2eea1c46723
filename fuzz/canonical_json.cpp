// Fingerprints of bodies: equal values give equal bytes, unequal ones do not.
//
//   input = one text LF another text LF choices
//
// The second implementation never makes canonical bytes: it compares two values member by member, and numbers digit by
// digit as one does on paper. And it writes a value in another notation, which the choices pick.
#include "base/canonical_json.hpp"

#include "input.hpp"

namespace semel::fuzz {
namespace {

using json::Kind;
using json::Node;

struct Number {
  bool negative = false;
  std::string digits{};
  std::int64_t exponent = 0;  ///< of the last digit
};

Number taken_apart(std::string_view text) {
  Number number{.negative = text.starts_with('-')};
  if (number.negative) text.remove_prefix(1);
  const auto e = text.find_first_of("eE");
  if (e != text.npos) {
    const auto exponent = text.substr(e + 1);
    number.exponent = std::stoll(std::string(exponent));
  }
  const auto mantissa = text.substr(0, e);
  const auto point = mantissa.find('.');
  number.digits = mantissa.substr(0, point);
  if (point != mantissa.npos) {
    number.digits += mantissa.substr(point + 1);
    number.exponent -= static_cast<std::int64_t>(mantissa.size() - point - 1);
  }
  return number;
}

bool is_zero(const Number& number) { return number.digits.find_first_not_of('0') == std::string::npos; }

bool same_number(std::string_view a, std::string_view b) {
  auto one = taken_apart(a);
  auto other = taken_apart(b);
  if (is_zero(one) || is_zero(other)) return is_zero(one) && is_zero(other);
  if (one.negative != other.negative) return false;
  if (one.exponent < other.exponent) std::swap(one, other);
  const auto shift = one.exponent - other.exponent;
  if (shift > static_cast<std::int64_t>(other.digits.size())) return false;  // too large by its zeros alone
  one.digits.append(static_cast<std::size_t>(shift), '0');
  const auto width = std::max(one.digits.size(), other.digits.size());
  one.digits.insert(0, width - one.digits.size(), '0');
  other.digits.insert(0, width - other.digits.size(), '0');
  return one.digits == other.digits;
}

bool same_value(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.children.size() != b.children.size()) return false;
  if (a.kind == Kind::boolean) return a.boolean == b.boolean;
  if (a.kind == Kind::number) return same_number(a.text, b.text);
  if (a.kind == Kind::string) return a.text == b.text;
  if (a.kind == Kind::array) return std::equal(a.children.begin(), a.children.end(), b.children.begin(), same_value);
  return std::all_of(a.children.begin(), a.children.end(), [&](const Node& member) {
    return std::any_of(b.children.begin(), b.children.end(),
                       [&](const Node& other) { return other.name == member.name && same_value(member, other); });
  });
}

/// The same value in another notation.
class Rewriter {
 public:
  explicit Rewriter(Input& choices) : choices_(choices) {}

  std::string write(const Node& node) {
    static constexpr std::string_view spaces[] = {"", " ", "\t\n", "\r"};
    return std::string(spaces[choices_.below(4)]) + bare(node);
  }

 private:
  std::string bare(const Node& node) {
    if (node.kind == Kind::number) return number(node.text);
    if (node.kind == Kind::string) return string(node.text);
    if (node.kind != Kind::array && node.kind != Kind::object) return json::compact(node);
    std::string out;
    const auto turn = node.kind == Kind::object && !node.children.empty() ? choices_.below(256) : 0;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const auto& child = node.children[(i + turn) % node.children.size()];
      if (i > 0) out += ',';
      if (node.kind == Kind::object) out += string(child.name) + ":";
      out += write(child);
    }
    return node.kind == Kind::array ? "[" + out + "]" : "{" + out + "}";
  }

  std::string number(std::string_view text) {
    const auto taken = taken_apart(text);
    const auto zeros = choices_.below(4);
    const auto exponent = taken.exponent - zeros;
    if (exponent < -2'147'000'000 || exponent > 2'147'000'000) return std::string(text);
    auto digits = taken.digits + std::string(zeros, '0');
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
    return (taken.negative ? "-" : "") + digits + "E" + std::to_string(exponent);
  }

  std::string string(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
      const auto code = static_cast<unsigned char>(c);
      if (code >= 0x80 || (code >= 0x20 && c != '"' && c != '\\' && choices_.below(3) > 0)) {
        out += c;
        continue;
      }
      char escaped[7];
      std::snprintf(escaped, sizeof escaped, "\\u%04X", static_cast<unsigned>(code));
      out += escaped;
    }
    return out + "\"";
  }

  Input& choices_;
};

void check_alone(const Node& value, Input& choices) {
  const auto bytes = json::canonical(value);
  const auto again = json::parse(bytes);
  // An exponent at the bound of what can be read may pass it when zeros are taken off its digits.
  if (again.index() == 0) promise(json::canonical(*std::get<0>(again)) == bytes, "canonical bytes are their own");
  const auto rewritten = json::parse(Rewriter(choices).write(value));
  promise(rewritten.index() == 0, "the other notation can be read");
  promise(json::canonical(*std::get<0>(rewritten)) == bytes, "another notation of a value has the same bytes");
}

}  // namespace

void try_one(Input input) {
  const auto one = json::parse(input.line());
  const auto other = json::parse(input.line());
  if (one.index() == 0) check_alone(*std::get<0>(one), input);
  if (one.index() != 0 || other.index() != 0) return;
  const bool same_bytes = json::canonical(*std::get<0>(one)) == json::canonical(*std::get<0>(other));
  promise(same_bytes == same_value(*std::get<0>(one), *std::get<0>(other)),
          "equal values, and only they, have equal bytes");
}

}  // namespace semel::fuzz
