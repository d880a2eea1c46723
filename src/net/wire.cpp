#include "net/wire.hpp"

#include <cassert>

namespace semel::net {

Unwritten::Unwritten(Wire& wire, Wire::Parts parts) {
  assert(parts.size() <= parts_max);
  Moved moved = wire.write_now(parts);
  if (moved.error && moved.error != boost::asio::error::would_block) error_ = moved.error;
  for (const auto& part : parts) {
    const auto cut = std::min(moved.count, part.size());
    moved.count -= cut;
    if (cut < part.size()) parts_[count_++] = part + cut;
  }
}

boost::asio::awaitable<WireError> write_all(Wire& wire, Wire::Parts parts) {
  const Unwritten rest(wire, parts);
  if (rest.done()) co_return rest.error();
  co_return co_await wire.write(rest.parts());
}

}  // namespace semel::net
