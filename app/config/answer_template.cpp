#include "config/answer_template.hpp"

#include <algorithm>

namespace semel::app {

bool AnswerTemplate::fixed() const {
  return std::all_of(body.begin(), body.end(), [](const auto& piece) { return piece.index() == 0; });
}

Answer fixed_answer(const AnswerTemplate& answer) {
  Answer made{.status = answer.status, .headers = answer.headers, .body = {}};
  for (const auto& piece : answer.body) made.body += std::get<std::string>(piece);
  return made;
}

Answer answer_for(const AnswerTemplate& answer, const Facts& facts) {
  return {.status = answer.status, .headers = answer.headers, .body = body_for(answer.body, facts)};
}

}  // namespace semel::app
