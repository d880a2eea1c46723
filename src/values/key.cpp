// The bytes of a key. One part: the part's bytes. Several parts: the byte FF, then each part length-prefixed. No text
// begins with FF, so a key of one part does not look like one of several; an attribute that does begin with FF is
// written as a list of one, so that even then no two keys meet.
#include <algorithm>
#include <semel/key.hpp>

#include "base/decimal.hpp"
#include "base/encoding.hpp"
#include "base/utf8.hpp"

namespace semel {
namespace {

constexpr char list_marker = '\xFF';
constexpr std::string_view attribute_prefix = "header:";
constexpr std::string_view transport_id_name = "transport-id";
constexpr std::string_view separator = " + ";

std::string part_text(const KeyExpression::Part& part) {
  switch (part.from) {
    case KeyExpression::From::body:
      return part.name;
    case KeyExpression::From::attribute:
      return std::string(attribute_prefix) + part.name;
    case KeyExpression::From::transport_id:
      break;
  }
  return std::string(transport_id_name);
}

Error no_key(const KeyExpression::Part& part, std::string_view why) {
  return fix_call(ErrorCode::no_key, "There is no key at \"" + part_text(part) + "\": " + std::string(why) + ".");
}

Error too_long(std::string_view what) {
  return fix_call(ErrorCode::key_invalid,
                  std::string(what) + " is longer than " + std::to_string(Key::size_max) + " bytes.");
}

Result<std::string> not_empty(const KeyExpression::Part& part, std::string_view text) {
  if (text.empty()) return no_key(part, "it is empty");
  return std::string(text);
}

/// Every notation of one integer is one key; what is not an integer is none.
Result<std::string> number_key(const KeyExpression::Part& part, const Field& field) {
  const auto number = exact_decimal(field.text());
  if (!number || !number->is_integer()) return no_key(part, "it is a number with a fraction");
  auto digits = field.integer_digits();
  if (!digits) return too_long("The integer at \"" + part_text(part) + "\"");
  return std::move(*digits);
}

Result<std::string> body_key(const KeyExpression::Part& part, const Document* document) {
  if (!document) return no_key(part, "the body is not JSON");
  const auto field = document->at(part.name);
  if (!field) return no_key(part, "the member is missing");
  switch (field->kind()) {
    case Field::Kind::string:
      return not_empty(part, field->text());
    case Field::Kind::number:
      return number_key(part, *field);
    case Field::Kind::null:
      return no_key(part, "it is null");
    case Field::Kind::boolean:
      return no_key(part, "it is a boolean");
    case Field::Kind::array:
      return no_key(part, "it is an array");
    case Field::Kind::object:
      break;
  }
  return no_key(part, "it is an object");
}

Result<std::string> attribute_key(const KeyExpression::Part& part, const Attributes& attributes) {
  const auto value = attributes.find(part.name);
  if (!value) return no_key(part, "it is missing");
  if (attributes.count(part.name) > 1)
    return fix_call(ErrorCode::key_invalid, "\"" + part_text(part) + "\" occurs more than once.");
  return not_empty(part, *value);
}

Result<std::string> part_key(const KeyExpression::Part& part, const Delivery& delivery, const Document* document) {
  switch (part.from) {
    case KeyExpression::From::body:
      return body_key(part, document);
    case KeyExpression::From::attribute:
      return attribute_key(part, delivery.attributes);
    case KeyExpression::From::transport_id:
      break;
  }
  return not_empty(part, delivery.transport_id);
}

/// A terminal obeys what is below 20 and 7F, and in UTF-8 also C2 80 to C2 9F.
bool is_control(std::string_view text, std::size_t at) {
  const auto octet = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (octet(at) < 0x80) return octet(at) < 0x20 || octet(at) == 0x7F;
  if (octet(at) == 0xC2) return octet(at + 1) < 0xA0;
  return octet(at) < 0xA0 && at > 0 && octet(at - 1) == 0xC2;
}

std::string readable(std::string_view part) {
  const bool is_text = is_valid_utf8(part);
  std::string out;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const bool is_ascii = static_cast<unsigned char>(part[i]) < 0x80;
    if (is_control(part, i) || (!is_ascii && !is_text)) {
      (out += "\\x") += hex_encode(part.substr(i, 1));
    } else {
      out.append(part[i] == '\\' ? 2 : 1, part[i]);
    }
  }
  return out;
}

Error bad_expression(std::string_view text, std::string_view why) {
  return fix_call(ErrorCode::config_bad_expression, "\"" + std::string(text) +
                                                        "\" is no key expression: " + std::string(why) +
                                                        ". Write a JSON Pointer such as \"/id\", "
                                                        "\"header:Name\" or \"transport-id\".");
}

Result<KeyExpression> parse_part(std::string_view text) {
  if (text == transport_id_name) return KeyExpression::transport_id();
  if (text.starts_with(attribute_prefix)) {
    const auto name = text.substr(attribute_prefix.size());
    if (name.empty()) return bad_expression(text, "the name is missing");
    if (name.find_first_of(" \t\r\n") != std::string_view::npos) return bad_expression(text, "a name has no spaces");
    return KeyExpression::attribute(std::string(name));
  }
  if (!text.starts_with('/')) return bad_expression(text, "it is none of the known forms");
  if (const auto problem = pointer_problem(text)) return bad_expression(text, *problem);
  return KeyExpression::body(std::string(text));
}

}  // namespace

Result<Key> Key::from_bytes(std::string bytes) {
  if (bytes.empty()) return fix_call(ErrorCode::no_key, "The key is empty.");
  if (bytes.size() > size_max) return too_long("The key");
  return Key(std::move(bytes));
}

Result<Key> Key::from_parts(const std::vector<std::string>& parts) {
  const auto is_empty = [](const std::string& part) { return part.empty(); };
  if (parts.empty() || std::any_of(parts.begin(), parts.end(), is_empty))
    return fix_call(ErrorCode::no_key, "The key, or a part of it, is empty.");
  if (parts.size() == 1 && parts.front().front() != list_marker) return from_bytes(parts.front());
  std::string list(1, list_marker);
  for (const auto& part : parts) append_field(list, part);
  return from_bytes(std::move(list));
}

std::vector<std::string> Key::parts() const {
  if (bytes_.front() != list_marker) return {bytes_};
  std::vector<std::string> parts;
  FieldReader reader(std::string_view(bytes_).substr(1));
  while (!reader.at_end()) {
    const auto part = reader.field();
    if (!part) return {bytes_};  // made by `from_bytes` of bytes that are no list
    parts.emplace_back(*part);
  }
  return parts;
}

std::string Key::text() const {
  std::string out;
  for (const auto& part : parts()) (out += out.empty() ? "" : separator) += readable(part);
  return out;
}

KeyExpression KeyExpression::body(std::string pointer) {
  KeyExpression expression;
  expression.parts_.push_back({From::body, std::move(pointer)});
  return expression;
}

KeyExpression KeyExpression::attribute(std::string name) {
  KeyExpression expression;
  expression.parts_.push_back({From::attribute, std::move(name)});
  return expression;
}

KeyExpression KeyExpression::transport_id() {
  KeyExpression expression;
  expression.parts_.push_back({From::transport_id, {}});
  return expression;
}

KeyExpression KeyExpression::all_of(std::vector<KeyExpression> parts) {
  KeyExpression joined;
  for (auto& part : parts) std::move(part.parts_.begin(), part.parts_.end(), std::back_inserter(joined.parts_));
  return joined;
}

Result<KeyExpression> KeyExpression::parse(std::string_view text) {
  std::vector<KeyExpression> parts;
  while (true) {
    const auto end = text.find(separator);
    auto part = parse_part(text.substr(0, end));
    if (!part) return std::move(part).error();
    parts.push_back(*std::move(part));
    if (end == std::string_view::npos) return all_of(std::move(parts));
    text.remove_prefix(end + separator.size());
  }
}

std::string KeyExpression::text() const {
  std::string out;
  for (const auto& part : parts_)
    out.append(out.empty() && &part == &parts_.front() ? "" : separator).append(part_text(part));
  return out;
}

bool KeyExpression::needs_body() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.from == From::body; });
}

Result<Key> KeyExpression::extract(const Delivery& delivery, const Document* document) const {
  if (parts_.empty()) return fix_call(ErrorCode::no_key, "The handler names no key.");
  std::vector<std::string> keys;
  keys.reserve(parts_.size());
  for (const auto& part : parts_) {
    auto key = part_key(part, delivery, document);
    if (!key) return std::move(key).error();
    keys.push_back(*std::move(key));
  }
  return Key::from_parts(keys);
}

}  // namespace semel
