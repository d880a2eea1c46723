#include "base/canonical_json.hpp"

#include <algorithm>
#include <utility>

#include "base/decimal.hpp"

namespace semel::json {
namespace {

unsigned octet(char c) { return static_cast<unsigned char>(c); }

/// Orders valid UTF-8 as its UTF-16 code units would be ordered. That is the order of its bytes, but for the characters
/// beyond U+FFFF (first byte F0 or more): their surrogates D800–DFFF come before U+E000–U+FFFF (first byte EE or EF).
bool before_in_utf16(std::string_view a, std::string_view b) {
  const auto [at, bt] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at == a.end() || bt == b.end()) return bt != b.end();
  const auto in_first_byte_order = [](unsigned byte) { return byte == 0xEE || byte == 0xEF ? byte + 0x100 : byte; };
  return in_first_byte_order(octet(*at)) < in_first_byte_order(octet(*bt));
}

class Writer {
 public:
  Writer(std::string& out, std::span<const Node* const> left_out) : out_(out), left_out_(left_out) {}

  void write(const Node& node) {
    switch (node.kind) {
      case Kind::null:
        out_ += "null";
        break;
      case Kind::boolean:
        out_ += node.boolean ? "true" : "false";
        break;
      case Kind::number:
        write_number(node.text);
        break;
      case Kind::string:
        append_string(out_, node.text);
        break;
      case Kind::array:
        write_array(node);
        break;
      case Kind::object:
        write_object(node);
    }
  }

 private:
  void write_number(std::string_view text) {
    const auto number = exact_decimal(text).value();  // the parser bounds its exponent to 31 bits
    if (number.negative) out_ += '-';
    out_ += number.digits;
    if (number.exponent != 0) (out_ += 'e') += std::to_string(number.exponent);
  }

  std::vector<const Node*> kept(const Node& node) const {
    std::vector<const Node*> children;
    children.reserve(node.children.size());
    for (const auto& child : node.children)
      if (std::find(left_out_.begin(), left_out_.end(), &child) == left_out_.end()) children.push_back(&child);
    return children;
  }

  void write_array(const Node& node) {
    char separator = '[';
    for (const Node* element : kept(node)) {
      out_ += std::exchange(separator, ',');
      write(*element);
    }
    if (separator == '[') out_ += '[';
    out_ += ']';
  }

  void write_object(const Node& node) {
    auto members = kept(node);
    std::sort(members.begin(), members.end(),
              [](const Node* a, const Node* b) { return before_in_utf16(a->name, b->name); });
    char separator = '{';
    for (const Node* member : members) {
      out_ += std::exchange(separator, ',');
      append_string(out_, member->name);
      out_ += ':';
      write(*member);
    }
    if (separator == '{') out_ += '{';
    out_ += '}';
  }

  std::string& out_;
  std::span<const Node* const> left_out_;
};

}  // namespace

std::string canonical(const Node& node) { return canonical_without(node, {}); }

std::string canonical_without(const Node& node, std::span<const Node* const> left_out) {
  std::string out;
  out.reserve(1024);
  if (std::find(left_out.begin(), left_out.end(), &node) == left_out.end()) Writer(out, left_out).write(node);
  return out;
}

}  // namespace semel::json
