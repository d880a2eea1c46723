// What `semel check` says of a handler without asking the store: its guard and key in sentences, and what does not fit.
#pragma once

#include <semel/store.hpp>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace semel::app {

struct HandlerReview {
  std::string name;
  std::vector<std::string> sentences;
  std::vector<Finding> findings;
};

HandlerReview review_handler(const HandlerConfig& handler, const Config& config);

/// The table that an INSERT names, as it is written; empty where the statement is none.
std::string inserted_table(const std::string& sql);

}  // namespace semel::app
