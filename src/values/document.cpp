#include <charconv>
#include <semel/document.hpp>

#include "base/canonical_json.hpp"
#include "base/decimal.hpp"
#include "base/json.hpp"

namespace semel {

Field::Kind Field::kind() const {
  switch (node_->kind) {
    case json::Kind::null:
      return Kind::null;
    case json::Kind::boolean:
      return Kind::boolean;
    case json::Kind::number:
      return Kind::number;
    case json::Kind::string:
      return Kind::string;
    case json::Kind::array:
      return Kind::array;
    case json::Kind::object:
      break;
  }
  return Kind::object;
}

std::string Field::text() const { return node_->kind == json::Kind::string ? node_->text : json::compact(*node_); }

std::optional<std::int64_t> Field::integer() const {
  const auto digits = integer_digits();
  if (!digits) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), number);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

std::optional<std::string> Field::integer_digits() const {
  if (node_->kind != json::Kind::number) return std::nullopt;
  const auto number = exact_decimal(node_->text);
  if (!number || !number->is_integer()) return std::nullopt;
  // Twelve bytes of input can name a number of two thousand million digits.
  if (number->exponent > static_cast<std::int64_t>(digits_max) ||
      number->digits.size() + static_cast<std::size_t>(number->exponent) > digits_max)
    return std::nullopt;
  return (number->negative ? "-" : "") + number->digits + std::string(static_cast<std::size_t>(number->exponent), '0');
}

bool Field::boolean() const { return node_->kind == json::Kind::boolean && node_->boolean; }

Result<Document> Document::parse(std::string_view body) {
  auto parsed = json::parse(body);
  if (const auto* problem = std::get_if<json::Problem>(&parsed))
    return fix_call(ErrorCode::malformed_body, "The body is not JSON that can be read: " + problem->message);
  return Document(std::get<0>(std::move(parsed)));
}

std::optional<Field> Document::at(std::string_view pointer) const {
  const auto* node = json::resolve(*root_, pointer);
  return node ? std::optional(Field(node)) : std::nullopt;
}

std::string Document::canonical() const { return json::canonical(*root_); }

std::optional<std::string> pointer_problem(std::string_view pointer) {
  const auto problem = json::pointer_problem(pointer);
  return problem.empty() ? std::nullopt : std::optional<std::string>(problem);
}

}  // namespace semel
