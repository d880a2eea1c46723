// What `semel check` finds out by asking the store: can it be reached, is it safe, would the statements run.
#pragma once

#include <semel/store.hpp>
#include <vector>

#include "config/config.hpp"

namespace semel::app {

/// Changes nothing. Statements are planned by the database (EXPLAIN), not run.
std::vector<Finding> review_store(const Config& config);

}  // namespace semel::app
