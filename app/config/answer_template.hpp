// The answer that a configured handler gives: YAML made into JSON once, with places for the message's values.
#pragma once

#include <semel/answer.hpp>
#include <string>

#include "config/text_template.hpp"

namespace semel::app {

struct AnswerTemplate {
  int status = 200;
  Attributes headers{};
  BodyTemplate body{};

  /// The same for every message.
  bool fixed() const;
};

Answer answer_for(const AnswerTemplate& answer, const Facts& facts);
/// Only for a fixed one.
Answer fixed_answer(const AnswerTemplate& answer);

}  // namespace semel::app
