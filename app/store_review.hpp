// What `semel check` finds out by asking the store: can it be reached, is it safe, would the statements run.
#pragma once

#include <semel/store.hpp>
#include <vector>

#include "config/config.hpp"

namespace semel::app {

/// Changes nothing. Statements are planned by the database (EXPLAIN), not run.
std::vector<Finding> review_store(const Config& config);

/// The same of an open store's statements alone: what no run could execute. Empty where the store is away, or refuses
/// to be used at all; a run finds that out by itself.
std::vector<Error> wrong_statements(const Config& config, Store& store);

}  // namespace semel::app
