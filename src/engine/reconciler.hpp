// The reconciler: what is to be done with an intent that was taken from the ledger, whose process may be dead. It calls
// nobody and writes nothing; the clerk does both.
#pragma once

#include <optional>
#include <string>

#include "engine/booking.hpp"
#include "protocol/intent.hpp"

namespace semel::engine {

/// A taken intent's next step. Nothing where it needs nothing. `room`: whether a call may begin now; without it the
/// intent waits for `pause`.
std::optional<Entry> plan_for(const Intent& intent, const Effect& effect, bool room, std::chrono::milliseconds pause,
                              const std::string& process);

/// What a report makes of the intent that it is about.
Entry entry_for_report(const Intent& intent, const Effect& effect, const CallReport& report, bool looked_up,
                       const protocol::Ages& ages, std::chrono::milliseconds backoff, const std::string& process);

}  // namespace semel::engine
