// What SQL and answers may take out of a message.
//
//   :key                       the idempotency key
//   :/json/pointer             a member of the JSON body; :{/json/pointer} where the pointer holds other characters
//   :{header:Name}             a header or attribute
//   :principal                 on whose behalf a request is asked; empty where callers are not told apart
//   :transport_id  :body       the transport's own id; the whole body
#pragma once

#include <optional>
#include <semel/message.hpp>
#include <semel/result.hpp>
#include <string>
#include <string_view>

namespace semel::app {

struct Parameter {
  enum class From { key, pointer, header, principal, transport_id, body };
  From from;
  std::string name{};  ///< the pointer or the header's name
  bool operator==(const Parameter&) const = default;
};

/// A parameter at the start of `text`, which begins with its colon, and how long it is; nothing where a plain colon
/// stands there. Errors: config_bad_expression for what only looks like one.
struct ParameterFound {
  Parameter parameter;
  std::size_t size;
};
Result<std::optional<ParameterFound>> parameter_at(std::string_view text);

/// The parameter as it is written.
std::string parameter_text(const Parameter& parameter);

/// Its value in `message`: null where the message has none.
Value value_of(const Parameter& parameter, const Message& message);

/// `text` as a JSON string, with its quotes.
std::string json_string(std::string_view text);

/// A parameter's value as JSON: a number as it was written, an array or object whole.
std::string json_of(const Parameter& parameter, const Message& message);

}  // namespace semel::app
