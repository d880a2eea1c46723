#include "config/parameter.hpp"

#include <array>
#include <cctype>
#include <vector>

#include "base/json.hpp"
#include "base/utf8.hpp"
#include "config/nearest_name.hpp"

namespace semel::app {
namespace {

struct Named {
  std::string_view name;
  Parameter::From from;
};
constexpr std::array named{Named{"key", Parameter::From::key}, Named{"principal", Parameter::From::principal},
                           Named{"transport_id", Parameter::From::transport_id}, Named{"body", Parameter::From::body}};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Where SQL goes on after an unquoted pointer.
std::size_t pointer_size(std::string_view text) {
  std::size_t size = 0;
  for (; size < text.size(); ++size) {
    const char c = text[size];
    const char next = size + 1 < text.size() ? text[size + 1] : ' ';
    if (c == '-' && (next == '>' || next == '-')) break;
    if (c == ':' && !is_word(next)) break;
    const bool allowed = is_word(c) || std::string_view("/-.~@$:").find(c) != std::string_view::npos ||
                         static_cast<unsigned char>(c) >= 0x80;
    if (!allowed) break;
  }
  return size;
}

Result<std::optional<ParameterFound>> pointer(std::string_view name, std::size_t size) {
  if (const auto problem = pointer_problem(name)) {
    return fix_call(ErrorCode::config_bad_expression, "\":" + std::string(name) + "\": " + *problem);
  }
  return std::optional(ParameterFound{{Parameter::From::pointer, std::string(name)}, size});
}

/// `text` begins with ":{".
Result<std::optional<ParameterFound>> braced(std::string_view text) {
  const auto end = text.find('}');
  if (end == std::string_view::npos) {
    return fix_call(ErrorCode::config_bad_expression, "\":{\" has no closing brace");
  }
  const auto inside = text.substr(2, end - 2);
  if (inside.starts_with('/')) return pointer(inside, end + 1);
  if (inside.starts_with("header:") && inside.size() > 7) {
    return std::optional(ParameterFound{{Parameter::From::header, std::string(inside.substr(7))}, end + 1});
  }
  return fix_call(ErrorCode::config_bad_expression, "\"" + std::string(text.substr(0, end + 1)) +
                                                        "\" is no parameter; write :{/json/pointer} or :{header:Name}");
}

/// `text` begins with ":" and a letter.
Result<std::optional<ParameterFound>> word(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && is_word(text[size])) ++size;
  const auto written = text.substr(1, size - 1);
  std::vector<std::string> names;
  for (const auto& [name, from] : named) {
    if (name == written) return std::optional(ParameterFound{{from}, size});
    names.emplace_back(name);
  }
  const auto nearest = nearest_name(written, names);
  return fix_call(ErrorCode::config_bad_expression,
                  "\":" + std::string(written) + "\" is no parameter; " +
                      (nearest ? "did you mean \":" + *nearest + "\"?"
                               : "for a member of the body write :/" + std::string(written)));
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out;
  json::append_string(out, text);
  return out;
}

Result<std::optional<ParameterFound>> parameter_at(std::string_view text) {
  if (text.size() < 2 || text[0] != ':') return std::optional<ParameterFound>();
  if (text[1] == '/') {
    const auto size = pointer_size(text.substr(1));
    return pointer(text.substr(1, size), size + 1);
  }
  if (text[1] == '{') return braced(text);
  if (std::isalpha(static_cast<unsigned char>(text[1])) || text[1] == '_') return word(text);
  return std::optional<ParameterFound>();
}

std::string parameter_text(const Parameter& parameter) {
  switch (parameter.from) {
    case Parameter::From::pointer:
      return ":" + parameter.name;
    case Parameter::From::header:
      return ":{header:" + parameter.name + "}";
    default:
      break;
  }
  for (const auto& [name, from] : named) {
    if (from == parameter.from) return ":" + std::string(name);
  }
  return "";
}

Value value_of(const Parameter& parameter, const Message& message) {
  const auto& delivery = message.delivery();
  switch (parameter.from) {
    case Parameter::From::key:
      return message.key_value();
    case Parameter::From::pointer:
      return message.at(parameter.name);
    case Parameter::From::header:
      if (const auto value = delivery.attributes.find(parameter.name)) return std::string(*value);
      return nullptr;
    case Parameter::From::principal:
      return delivery.principal;  // never null: a unique key takes no two nulls for the same
    case Parameter::From::transport_id:
      if (delivery.transport_id.empty()) return nullptr;
      return delivery.transport_id;
    case Parameter::From::body:
      break;
  }
  if (is_valid_utf8(delivery.body) && delivery.body.find('\0') == std::string::npos) return delivery.body;
  return Blob{delivery.body};
}

std::string json_of(const Parameter& parameter, const Message& message) {
  if (parameter.from == Parameter::From::pointer) {
    const auto field = message.document() ? message.document()->at(parameter.name) : std::nullopt;
    if (!field) return "null";
    return field->kind() == Field::Kind::string ? json_string(field->text()) : field->text();
  }
  if (parameter.from == Parameter::From::body) return message.document() ? message.delivery().body : "null";
  const auto value = value_of(parameter, message);
  const auto* text = std::get_if<std::string>(&value);
  return text ? json_string(*text) : "null";
}

}  // namespace semel::app
