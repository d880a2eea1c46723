#include <semel/message.hpp>

#include "base/utf8.hpp"

namespace semel {
namespace {

[[noreturn]] void throw_missing(std::string_view pointer, const std::string& what) {
  throw Failure(
      fix_call(ErrorCode::field_missing, "The body has no " + what + " at \"" + std::string(pointer) + "\"."));
}

Value number_value(const Field& field) {
  if (const auto integer = field.integer()) return *integer;
  return Decimal{field.text()};
}

}  // namespace

Value Message::key_value() const {
  const auto& bytes = key_.bytes();
  const bool is_text = is_valid_utf8(bytes) && bytes.find('\0') == std::string::npos;
  return is_text ? Value(bytes) : Value(Blob{bytes});
}

Value Message::at(std::string_view pointer) const {
  const auto field = document_ ? document_->at(pointer) : std::nullopt;
  if (!field) return nullptr;
  switch (field->kind()) {
    case Field::Kind::null:
      return nullptr;
    case Field::Kind::boolean:
      return field->boolean();
    case Field::Kind::number:
      return number_value(*field);
    default:
      return field->text();
  }
}

std::string Message::text(std::string_view pointer) const {
  const auto field = document_ ? document_->at(pointer) : std::nullopt;
  if (!field || field->kind() != Field::Kind::string) throw_missing(pointer, "string");
  return field->text();
}

std::int64_t Message::integer(std::string_view pointer) const {
  const auto field = document_ ? document_->at(pointer) : std::nullopt;
  const auto number = field ? field->integer() : std::nullopt;
  if (!number) throw_missing(pointer, "integer of 64 bits");
  return *number;
}

}  // namespace semel
