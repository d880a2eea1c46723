// Work that a thread of the consumer does turn by turn: lane, clerk, relay.
#pragma once

#include <chrono>
#include <optional>

namespace semel::engine {

/// What a turn says to whoever runs the duty.
struct Turn {
  bool worked = false;
  bool finished = false;                                           ///< there is nothing left that it waits for
  std::optional<std::chrono::steady_clock::time_point> wake_at{};  ///< when something is due again
};

/// How clerk and relay come to an end.
enum class Ending {
  drain,  ///< every source has ended: do what can still be done now
  stop,   ///< begin nothing more; what is under way is waited for, a while
};

}  // namespace semel::engine
