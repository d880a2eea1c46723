// What `semel check` says of calls and publications: the policy of each in a sentence, and what does not fit.
#pragma once

#include <semel/store.hpp>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace semel::app {

/// Of one handler.
struct CallReview {
  std::vector<std::string> sentences;
  std::vector<Finding> findings;
};
CallReview review_calls(const HandlerConfig& handler, const Config& config);

/// Of one gateway: each guarded route, and what becomes of a request without an outcome.
CallReview review_gateway(const GatewayConfig& gateway, const Config& config);

/// Providers and targets that nobody names, and effects that a lookup would take for each other.
std::vector<Finding> review_outside(const Config& config);

}  // namespace semel::app
