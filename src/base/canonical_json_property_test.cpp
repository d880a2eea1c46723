// Random JSON values, each written in two notations: same canonical bytes. One leaf changed: other bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "base/canonical_json.hpp"

namespace semel::json {
namespace {

using namespace std::string_view_literals;

/// A value apart from any notation. A number is ±digits × 10^exponent; characters are code points.
struct Model {
  Kind kind = Kind::null;
  bool boolean = false;
  std::string digits;
  int exponent = 0;
  std::u32string characters;
  std::vector<struct Member> members;
};
struct Member {
  std::u32string name;  ///< elements have none
  Model value;
};

class Writer {
 public:
  explicit Writer(std::mt19937& random) : random_(random) {}

  Model value(int depth) {
    const auto kind = static_cast<Kind>(below(depth == 0 ? 4 : 6));
    Model model{.kind = kind};
    model.boolean = below(2) == 1;
    if (kind == Kind::number) model.digits = digits(), model.exponent = below(60) - 30;
    if (kind == Kind::string) model.characters = characters();
    if (kind == Kind::array || kind == Kind::object)
      for (int i = below(5); i > 0; --i) {
        auto name = kind == Kind::object ? characters() + static_cast<char32_t>('0' + i) : U"";
        model.members.push_back({std::move(name), value(depth - 1)});
      }
    return model;
  }

  /// Any notation of `model`.
  std::string write(Model model) {
    if (model.kind == Kind::object) std::shuffle(model.members.begin(), model.members.end(), random_);
    return space() + bare(model) + space();
  }

  /// Changes one leaf, or one empty container, into something else.
  void change(Model& model) {
    if (!model.members.empty())
      return change(model.members[static_cast<std::size_t>(below(static_cast<int>(model.members.size())))].value);
    switch (model.kind) {
      case Kind::boolean:
        model.boolean = !model.boolean;
        break;
      case Kind::number:
        model.digits += static_cast<char>('1' + below(9));
        break;
      case Kind::string:
        model.characters += character();
        break;
      default:
        model = Model{.kind = Kind::boolean, .boolean = below(2) == 1};
    }
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  std::string space() { return std::string(static_cast<std::size_t>(below(3)), " \n\t\r"[below(4)]); }

  std::string digits() {
    std::string out(below(2) ? "-" : "");
    out += static_cast<char>('1' + below(9));
    for (int i = below(30); i > 0; --i) out += static_cast<char>('0' + below(10));
    return out;
  }

  char32_t character() {
    static constexpr std::u32string_view some =
        U"\0\b\t\n\r\"\\/ aAé€\uFB33\uFFFF\U00010000\U0001F602\U0010FFFF\u007f\u2028"sv;
    return below(2) ? some[static_cast<std::size_t>(below(static_cast<int>(some.size())))]
                    : static_cast<char32_t>(below(0xD800));
  }

  std::u32string characters() {
    std::u32string out;
    for (int i = below(6); i > 0; --i) out += character();
    return out;
  }

  std::string bare(const Model& model) {
    switch (model.kind) {
      case Kind::null:
        return "null";
      case Kind::boolean:
        return model.boolean ? "true" : "false";
      case Kind::number:
        return number(model.digits, model.exponent);
      case Kind::string:
        return string(model.characters);
      default:
        return container(model);
    }
  }

  std::string container(const Model& model) {
    std::string out(1, model.kind == Kind::array ? '[' : '{');
    for (const auto& [name, value] : model.members) {
      if (out.size() > 1) out += ',';
      if (model.kind == Kind::object) out += space() + string(name) + space() + ':';
      out += write(value);
    }
    return out + (model.kind == Kind::array ? ']' : '}');
  }

  /// Zeros that change nothing, the point somewhere else, the exponent in any spelling.
  std::string number(std::string digits, int exponent) {
    for (int i = below(4); i > 0; --i) digits += '0', --exponent;
    const bool negative = digits.front() == '-';
    if (negative) digits.erase(0, 1);
    const auto fraction = static_cast<std::size_t>(below(static_cast<int>(digits.size())));
    exponent += static_cast<int>(fraction);
    if (fraction > 0) digits.insert(digits.size() - fraction, ".");
    if (exponent != 0 || below(2)) {
      digits += "eE"[below(2)];
      if (exponent >= 0 && below(2)) digits += '+';
      digits += std::to_string(exponent);
    }
    return (negative ? "-" : "") + digits;
  }

  std::string string(const std::u32string& characters) {
    std::string out = "\"";
    for (const auto c : characters) out += c < 0x20 || c == '"' || c == '\\' || below(3) == 0 ? escaped(c) : utf8(c);
    return out + '"';
  }

  std::string escaped(char32_t c) {
    if (c < 0x10000) return unit(c);
    return unit(0xD800 + ((c - 0x10000) >> 10)) + unit(0xDC00 + ((c - 0x10000) & 0x3FF));
  }

  std::string unit(char32_t c) {
    const std::string_view hex = below(2) ? "0123456789abcdef" : "0123456789ABCDEF";
    return std::string("\\u") + hex[c >> 12] + hex[c >> 8 & 15] + hex[c >> 4 & 15] + hex[c & 15];
  }

  static std::string utf8(char32_t c) {
    const auto tail = [c](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3F)); };
    if (c < 0x80) return {static_cast<char>(c)};
    if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), tail(0)};
    if (c < 0x10000) return {static_cast<char>(0xE0 | c >> 12), tail(6), tail(0)};
    return {static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
  }

  std::mt19937& random_;
};

std::string canonical_of(const std::string& text) {
  auto parsed = parse(text);
  const auto* problem = std::get_if<Problem>(&parsed);
  EXPECT_FALSE(problem) << text << ": " << problem->message;
  return problem ? "" : canonical(*std::get<0>(parsed));
}

TEST(CanonicalJsonProperty, EqualValuesGiveEqualBytesAndUnequalOnesDoNot) {
  constexpr unsigned seed = 20260219;
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  Writer writer(random);
  for (int i = 0; i < 3000; ++i) {
    const auto model = writer.value(4);
    const auto one = writer.write(model);
    const auto other = writer.write(model);
    const auto bytes = canonical_of(one);
    ASSERT_EQ(bytes, canonical_of(other)) << one << "\n" << other;
    ASSERT_EQ(bytes, canonical_of(bytes)) << "canonical bytes are their own canonical form";
    auto changed = model;
    writer.change(changed);
    ASSERT_NE(bytes, canonical_of(writer.write(changed))) << one;
  }
}

TEST(CanonicalJsonProperty, DamagedTextIsRefusedOrStillHasOneCanonicalForm) {
  constexpr unsigned seed = 20260220;
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  Writer writer(random);
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    auto text = writer.write(writer.value(3));
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const auto at = random() % text.size();
      if (random() % 2)
        text[at] = static_cast<char>(random() % 256);
      else
        text.resize(at + 1);
    }
    auto parsed = parse(text);
    if (std::holds_alternative<Problem>(parsed)) {
      ++refused;
      continue;
    }
    const auto bytes = canonical(*std::get<0>(parsed));
    ASSERT_EQ(bytes, canonical_of(bytes)) << text;
    ASSERT_EQ(bytes, canonical_of(compact(*std::get<0>(parsed)))) << text;
  }
  EXPECT_GT(refused, 1'000);
  EXPECT_LT(refused, 9'900);
}

}  // namespace
}  // namespace semel::json
