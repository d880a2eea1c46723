// What a handler sees of a delivery.
#pragma once

#include <cstdint>
#include <semel/delivery.hpp>
#include <semel/document.hpp>
#include <semel/key.hpp>
#include <semel/sql.hpp>
#include <string>
#include <string_view>

namespace semel {

/// One message whose key is known. Valid during the handler's call.
class Message {
 public:
  Message(const Delivery& delivery, const Document* document, const Key& key)
      : delivery_(delivery), document_(document), key_(key) {}

  const Delivery& delivery() const { return delivery_; }
  /// The body as JSON; null where it is not JSON.
  const Document* document() const { return document_; }
  const Key& key() const { return key_; }
  /// The key as text where it is UTF-8 without NUL, else as bytes.
  Value key_value() const;

  /// The value at a JSON Pointer: null where it is missing or null, an int64 or Decimal for a number, text for a
  /// string, compact JSON text for an array or object.
  Value at(std::string_view pointer) const;

  /// The string at a JSON Pointer. Throws Failure(field_missing) where there is none.
  std::string text(std::string_view pointer) const;
  /// The integer at a JSON Pointer. Throws Failure(field_missing) where there is none that fits.
  std::int64_t integer(std::string_view pointer) const;

 private:
  const Delivery& delivery_;
  const Document* document_;
  const Key& key_;
};

}  // namespace semel
