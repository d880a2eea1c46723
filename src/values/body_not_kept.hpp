// How an outcome says that its answer had a body, of which nothing is kept.
#pragma once

#include <semel/intent.hpp>
#include <string_view>

namespace semel {

/// The end of CallOutcome::detail where the answer's body was too long to be kept. `answer.body` is empty then.
inline constexpr std::string_view body_not_kept = "the body was too long to be kept";

/// So that no answer without its body is taken for the answer. A provider's own words come from a body, so that they
/// are never alone with an empty one.
inline bool lacks_body(const CallOutcome& outcome) {
  return outcome.answer.body.empty() && outcome.detail.ends_with(body_not_kept);
}

}  // namespace semel
