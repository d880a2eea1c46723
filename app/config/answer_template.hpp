// The answer that a configured handler gives: YAML made into JSON once, with places for the message's values.
#pragma once

#include <semel/answer.hpp>
#include <semel/message.hpp>
#include <string>
#include <variant>
#include <vector>

#include "config/parameter.hpp"

namespace semel::app {

/// The body is its pieces one after the other: text as it stands, and parameters as JSON.
struct AnswerTemplate {
  int status = 200;
  Attributes headers{};
  std::vector<std::variant<std::string, Parameter>> body{};

  /// The same for every message.
  bool fixed() const;
};

Answer answer_for(const AnswerTemplate& answer, const Message& message);
/// Only for a fixed one.
Answer fixed_answer(const AnswerTemplate& answer);

}  // namespace semel::app
