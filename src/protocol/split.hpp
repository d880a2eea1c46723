// How a failed batch is divided until the message at fault stands alone.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace semel::protocol {

/// Part of a batch: messages [begin, end).
struct Range {
  std::size_t begin;
  std::size_t end;
  bool operator==(const Range&) const = default;
};

/// Parts of a batch of `size` > 1, in order, none empty, none the whole. Where the one at fault is known, it stands
/// alone at once; else the batch is halved.
std::vector<Range> split(std::size_t size, std::optional<std::size_t> at_fault);

}  // namespace semel::protocol
