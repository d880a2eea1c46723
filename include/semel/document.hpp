// A message body read as JSON (RFC 8259), strictly, with numbers kept as they were written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <semel/result.hpp>
#include <string>
#include <string_view>

namespace semel {

namespace json {
struct Node;
}

/// One place in a document. Valid while its Document lives.
class Field {
 public:
  enum class Kind { null, boolean, number, string, array, object };
  static constexpr std::size_t digits_max = 4096;

  explicit Field(const json::Node* node) : node_(node) {}

  Kind kind() const;
  /// A string's characters, a number as it was written, "true", "false" or "null";
  /// an array or object as compact JSON.
  std::string text() const;
  /// A number without fraction, whatever its notation (`1`, `1.0`, `1e0`), that fits.
  std::optional<std::int64_t> integer() const;
  /// A number whose exact value has no fraction, of up to `digits_max` digits, in plain digits; "-0" is "0".
  std::optional<std::string> integer_digits() const;
  bool boolean() const;

 private:
  const json::Node* node_;
};

/// Immutable; safe to read from any thread; cheap to copy.
class Document {
 public:
  /// Reads `body` whole. Errors: malformed_body for what is not one JSON text, invalid UTF-8,
  /// a member name that occurs twice in one object, an exponent beyond 31 bits, or nesting deeper than 128.
  static Result<Document> parse(std::string_view body);

  /// The place a JSON Pointer (RFC 6901) names; nothing where it is not there or the pointer is malformed.
  std::optional<Field> at(std::string_view pointer) const;

  /// Canonical bytes: RFC 8785, except that numbers are written by exact decimal value, so that `1`, `1.0`
  /// and `1e0` are one and 64-bit ids stay apart. Equal values give equal bytes, unequal values do not.
  std::string canonical() const;

  const json::Node& root() const { return *root_; }

 private:
  explicit Document(std::shared_ptr<const json::Node> root) : root_(std::move(root)) {}
  std::shared_ptr<const json::Node> root_;
};

/// Says what is wrong with a JSON Pointer; nothing where it is well formed.
std::optional<std::string> pointer_problem(std::string_view pointer);

}  // namespace semel
