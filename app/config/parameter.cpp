#include "config/parameter.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/json.hpp"
#include "base/utf8.hpp"
#include "config/nearest_name.hpp"

namespace semel::app {
namespace {

using From = Parameter::From;

struct Named {
  std::string_view name;
  From from;
};
constexpr std::array named{Named{"key", From::key},
                           Named{"principal", From::principal},
                           Named{"transport_id", From::transport_id},
                           Named{"body", From::body},
                           Named{"outcome", From::outcome},
                           Named{"outcome_reference", From::outcome_reference},
                           Named{"outcome_status", From::outcome_status},
                           Named{"outcome_body", From::outcome_body},
                           Named{"outcome_detail", From::outcome_detail}};

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

Result<std::optional<ParameterFound>> pointer(std::string_view name, std::size_t size, From from = From::pointer) {
  if (const auto problem = pointer_problem(name)) {
    return fix_call(ErrorCode::config_bad_expression, "\":" + std::string(name) + "\": " + *problem);
  }
  return std::optional(ParameterFound{{from, std::string(name)}, size});
}

std::optional<From> from_of(std::string_view written) {
  const auto found = std::find_if(named.begin(), named.end(), [&](const Named& one) { return one.name == written; });
  return found == named.end() ? std::nullopt : std::optional(found->from);
}

/// `text` begins with ":{".
Result<std::optional<ParameterFound>> braced(std::string_view text) {
  constexpr std::string_view header = "header:";
  constexpr std::string_view outcome = "outcome:";
  const auto end = text.find('}');
  if (end == std::string_view::npos) {
    return fix_call(ErrorCode::config_bad_expression, "\":{\" has no closing brace");
  }
  const auto inside = text.substr(2, end - 2);
  if (inside.starts_with('/')) return pointer(inside, end + 1);
  if (inside.starts_with(outcome)) return pointer(inside.substr(outcome.size()), end + 1, From::outcome_pointer);
  if (inside.starts_with(header) && inside.size() > header.size()) {
    return std::optional(ParameterFound{{From::header, std::string(inside.substr(header.size()))}, end + 1});
  }
  if (const auto from = from_of(inside)) return std::optional(ParameterFound{{*from}, end + 1});
  return fix_call(ErrorCode::config_bad_expression,
                  "\"" + std::string(text.substr(0, end + 1)) +
                      "\" is no parameter; write :{/json/pointer}, :{header:Name} or a name such as :{key}");
}

/// `text` begins with ":" and a letter.
Result<std::optional<ParameterFound>> word(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && is_word(text[size])) ++size;
  const auto written = text.substr(1, size - 1);
  if (const auto from = from_of(written)) return std::optional(ParameterFound{{*from}, size});
  std::vector<std::string> names;
  for (const auto& one : named) names.emplace_back(one.name);
  const auto nearest = nearest_name(written, names);
  return fix_call(ErrorCode::config_bad_expression,
                  "\":" + std::string(written) + "\" is no parameter; " +
                      (nearest ? "did you mean \":" + *nearest + "\"?"
                               : "for a member of the body write :/" + std::string(written)));
}

Value body_value(const std::string& body) {
  if (is_valid_utf8(body) && body.find('\0') == std::string::npos) return body;
  return Blob{body};
}

Value text_or_null(const std::string& text) {
  if (text.empty()) return nullptr;
  return text;
}

Value outcome_value(const Parameter& parameter, const Facts& facts) {
  if (!facts.settled()) return nullptr;
  const auto& outcome = facts.settled()->outcome();
  switch (parameter.from) {
    case From::outcome_reference:
      return text_or_null(outcome.reference);
    case From::outcome_status:
      // An operator's word has none.
      if (outcome.answer.status == 0) return nullptr;
      return std::int64_t{outcome.answer.status};
    case From::outcome_body:
      if (outcome.answer.body.empty()) return nullptr;
      return body_value(outcome.answer.body);
    case From::outcome_detail:
      return text_or_null(outcome.detail);
    case From::outcome_pointer:
      return Message(facts.message().delivery(), facts.answer(), facts.message().key()).at(parameter.name);
    default:
      return std::string(intent_state_name(facts.settled()->intent().status.state));
  }
}

}  // namespace

Facts::Facts(const Settled& settled) : message_(settled.message()), settled_(&settled) {
  if (auto answer = Document::parse(settled.outcome().answer.body)) answer_ = *std::move(answer);
}

bool is_of_outcome(const Parameter& parameter) { return parameter.from >= From::outcome; }

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
    case From::pointer:
      return ":" + parameter.name;
    case From::header:
      return ":{header:" + parameter.name + "}";
    case From::outcome_pointer:
      return ":{outcome:" + parameter.name + "}";
    default:
      break;
  }
  for (const auto& [name, from] : named) {
    if (from == parameter.from) return ":" + std::string(name);
  }
  return "";
}

Value value_of(const Parameter& parameter, const Facts& facts) {
  if (is_of_outcome(parameter)) return outcome_value(parameter, facts);
  const auto& message = facts.message();
  const auto& delivery = message.delivery();
  switch (parameter.from) {
    case From::key:
      return message.key_value();
    case From::pointer:
      return message.at(parameter.name);
    case From::header:
      if (const auto value = delivery.attributes.find(parameter.name)) return std::string(*value);
      return nullptr;
    case From::principal:
      return delivery.principal;  // never null: a unique key takes no two nulls for the same
    case From::transport_id:
      return text_or_null(delivery.transport_id);
    default:
      return body_value(delivery.body);
  }
}

std::optional<std::string> text_of(const Parameter& parameter, const Facts& facts) {
  const auto value = value_of(parameter, facts);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* decimal = std::get_if<Decimal>(&value)) return decimal->digits;
  if (const auto* truth = std::get_if<bool>(&value)) return std::string(*truth ? "true" : "false");
  return std::nullopt;
}

std::string json_of(const Parameter& parameter, const Facts& facts) {
  const auto& message = facts.message();
  if (parameter.from == From::pointer || parameter.from == From::outcome_pointer) {
    const auto* document = parameter.from == From::pointer ? message.document() : facts.answer();
    const auto field = document ? document->at(parameter.name) : std::nullopt;
    if (!field) return "null";
    return field->kind() == Field::Kind::string ? json_string(field->text()) : field->text();
  }
  if (parameter.from == From::body) return message.document() ? message.delivery().body : "null";
  if (parameter.from == From::outcome_body && facts.answer()) return facts.settled()->outcome().answer.body;
  if (parameter.from == From::outcome_status) return text_of(parameter, facts).value_or("null");
  const auto value = value_of(parameter, facts);
  const auto* text = std::get_if<std::string>(&value);
  return text ? json_string(*text) : "null";
}

}  // namespace semel::app
