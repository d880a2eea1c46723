#include "protocol/split.hpp"

#include <cassert>

namespace semel::protocol {

std::vector<Range> split(std::size_t size, std::optional<std::size_t> at_fault) {
  assert(size > 1);
  if (!at_fault || *at_fault >= size) return {{0, size / 2}, {size / 2, size}};
  std::vector<Range> parts;
  if (*at_fault > 0) parts.push_back({0, *at_fault});
  parts.push_back({*at_fault, *at_fault + 1});
  if (*at_fault + 1 < size) parts.push_back({*at_fault + 1, size});
  return parts;
}

}  // namespace semel::protocol
