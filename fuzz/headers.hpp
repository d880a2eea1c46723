// Header fields in an input, a line each.
#pragma once

#include <semel/delivery.hpp>

#include "input.hpp"

namespace semel::fuzz {

/// Takes the lines up to an empty one: a name, a colon and another character, the value.
inline Attributes take_headers(Input& input) {
  Attributes headers;
  for (const auto line : input.paragraph()) {
    const auto colon = std::min(line.find(':'), line.size());
    const auto value = line.substr(std::min(colon + 2, line.size()));
    headers.add(std::string(line.substr(0, colon)), std::string(value));
  }
  return headers;
}

}  // namespace semel::fuzz
