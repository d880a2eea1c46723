// One sequence of bytes for each JSON value, whatever its notation.
//
// RFC 8785: members sorted by the UTF-16 code units of their names, its string escapes, no white space; but numbers by
// exact decimal value, where RFC 8785 would make doubles of them: digits, then "e" and an exponent where it is not 0,
// so that 1, 1.0 and 1e0 are "1", 100 is "1e2", 0.5 is "5e-1", and ids of 64 bits stay apart.
#pragma once

#include <span>
#include <string>

#include "base/json.hpp"

namespace semel::json {

/// Equal values give equal bytes, unequal values do not.
std::string canonical(const Node& node);

/// The same of what is left of `node` without the members and elements `left_out`.
std::string canonical_without(const Node& node, std::span<const Node* const> left_out);

}  // namespace semel::json
