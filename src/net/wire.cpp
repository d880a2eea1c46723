#include "net/wire.hpp"

#include <array>
#include <cassert>

namespace semel::net {

namespace {

constexpr std::size_t parts_max = 6;

/// What is left of `parts` after their first `count` bytes.
std::size_t leave(Wire::Parts parts, std::size_t count, std::array<boost::asio::const_buffer, parts_max>& left) {
  std::size_t kept = 0;
  for (const auto& part : parts) {
    const auto cut = std::min(count, part.size());
    count -= cut;
    if (cut < part.size()) left[kept++] = part + cut;
  }
  return kept;
}

}  // namespace

boost::asio::awaitable<WireError> write_all(Wire& wire, Wire::Parts parts) {
  assert(parts.size() <= parts_max);
  const Moved moved = wire.write_now(parts);
  if (moved.error && moved.error != boost::asio::error::would_block) co_return moved.error;
  std::array<boost::asio::const_buffer, parts_max> left;
  const auto kept = leave(parts, moved.count, left);
  if (kept == 0) co_return WireError{};
  const Wire::Parts rest(left.data(), kept);
  co_return co_await wire.write(rest);
}

}  // namespace semel::net
