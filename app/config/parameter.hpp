// What SQL, answers and calls may take out of a message, and a settle step out of what came of its call.
//
//   :key                       the idempotency key
//   :/json/pointer             a member of the JSON body; :{/json/pointer} where the pointer holds other characters
//   :{header:Name}             a header or attribute
//   :principal                 on whose behalf a request is asked; empty where callers are not told apart
//   :transport_id  :body       the transport's own id; the whole body
//
//   :outcome                   what came of the call: succeeded, failed or abandoned
//   :outcome_reference         the provider's id of what it did
//   :outcome_status  :outcome_body  :outcome_detail
//   :{outcome:/json/pointer}   a member of the provider's answer
//
// Every one of them may be in braces, and is where text goes on after it: "order-:{/id}".
#pragma once

#include <optional>
#include <semel/message.hpp>
#include <semel/result.hpp>
#include <semel/work.hpp>
#include <string>
#include <string_view>

namespace semel::app {

struct Parameter {
  enum class From {
    key,
    pointer,
    header,
    principal,
    transport_id,
    body,
    outcome,
    outcome_reference,
    outcome_status,
    outcome_body,
    outcome_detail,
    outcome_pointer
  };
  From from;
  std::string name{};  ///< the pointer or the header's name
  bool operator==(const Parameter&) const = default;
};

/// Only a settle step knows it.
bool is_of_outcome(const Parameter& parameter);

/// What parameters are taken from. Valid as long as what it was made of.
class Facts {
 public:
  Facts(const Message& message) : message_(message) {}
  explicit Facts(const Settled& settled);
  explicit Facts(Settled&&) = delete;

  const Message& message() const { return message_; }
  /// Null but in a settle step.
  const Settled* settled() const { return settled_; }
  /// The provider's answer as JSON; null where there is none.
  const Document* answer() const { return answer_ ? &*answer_ : nullptr; }

 private:
  const Message& message_;
  const Settled* settled_ = nullptr;
  std::optional<Document> answer_{};
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

/// Its value: null where there is none.
Value value_of(const Parameter& parameter, const Facts& facts);

/// Its value as text, numbers as they were written; nothing where there is none, or only bytes that are no text.
std::optional<std::string> text_of(const Parameter& parameter, const Facts& facts);

/// `text` as a JSON string, with its quotes.
std::string json_string(std::string_view text);

/// A parameter's value as JSON: a number as it was written, an array or object whole.
std::string json_of(const Parameter& parameter, const Facts& facts);

}  // namespace semel::app
