// One publication as a line of JSON.
#pragma once

#include <semel/performer.hpp>
#include <semel/result.hpp>
#include <string>

namespace semel::file {

/// With its line break. Errors: malformed_body for attributes that are no UTF-8.
Result<std::string> line_of(const Call& call);

}  // namespace semel::file
