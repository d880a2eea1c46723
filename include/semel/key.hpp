// Idempotency keys: what they are, and how they are taken out of a message.
#pragma once

#include <compare>
#include <semel/delivery.hpp>
#include <semel/document.hpp>
#include <semel/result.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace semel {

/// Identifies one business event within a scope. 1 to 1,024 bytes, compared as bytes: never trimmed,
/// case-folded or Unicode-normalised.
class Key {
 public:
  static constexpr std::size_t size_max = 1024;

  /// Errors: no_key for an empty one, key_invalid for one over `size_max`.
  static Result<Key> from_bytes(std::string bytes);
  /// One part: its bytes. Several: joined so that no two lists, and no list and no single part, give one key.
  /// Errors: no_key where a part is empty or there is none, key_invalid for more than `size_max` bytes in all.
  static Result<Key> from_parts(const std::vector<std::string>& parts);

  const std::string& bytes() const noexcept { return bytes_; }
  /// What `from_parts` was given.
  std::vector<std::string> parts() const;
  /// For people: the parts, joined by " + ", with backslash, control characters and what is not UTF-8 escaped.
  std::string text() const;
  auto operator<=>(const Key&) const = default;

 private:
  explicit Key(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string bytes_;
};

/// Whose keys: the handler's name and, behind HTTP, the caller's principal.
struct Scope {
  std::string handler;
  std::string principal;
  auto operator<=>(const Scope&) const = default;
};

/// Where a key comes from. A list of several parts is joined so that ("a","bc") and ("ab","c") differ, and
/// needs every part to be there.
class KeyExpression {
 public:
  enum class From { body, attribute, transport_id };
  struct Part {
    From from;
    std::string name;  ///< JSON Pointer or attribute name; empty for the transport id
  };

  /// The member that a JSON Pointer (RFC 6901) names in a JSON body.
  static KeyExpression body(std::string pointer);
  /// A header or message attribute.
  static KeyExpression attribute(std::string name);
  /// The transport's own id. By name only: it does not cover a redrive or a second send.
  static KeyExpression transport_id();
  /// All of `parts`, in order.
  static KeyExpression all_of(std::vector<KeyExpression> parts);

  /// "/id", "header:Name", "transport-id", or several of them joined by " + "; errors: config_bad_expression.
  static Result<KeyExpression> parse(std::string_view text);

  const std::vector<Part>& parts() const noexcept { return parts_; }
  /// The expression as `parse` reads it, parts joined by " + ".
  std::string text() const;
  bool needs_body() const;

  /// The key of one message. `document` is the body as JSON, null where it is not JSON.
  /// Errors: no_key (missing, null, empty, a boolean, a fraction, an object or an array), key_invalid (over the size,
  /// or an attribute that occurs more than once).
  Result<Key> extract(const Delivery& delivery, const Document* document) const;

 private:
  std::vector<Part> parts_;
};

}  // namespace semel
