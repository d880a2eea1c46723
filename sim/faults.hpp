// What may go wrong in the simulated world, and the plan that says when.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace semel::sim {

enum class Fault {
  crash,                ///< a process vanishes in the middle of a step, and starts again
  stop,                 ///< a process is told to stop, finishes what is open, and starts again
  freeze,               ///< a process stands still for longer than its leases, and wakes
  freeze_in_call,       ///< the same right after a call went out
  freeze_when_told,     ///< the same with an outcome in hand that is not written down
  commit_lost_applied,  ///< the commit went through, its reply did not
  commit_lost_undone,   ///< the connection was cut before the commit arrived
  commit_late,          ///< the reply is lost, and the commit is applied later than anybody waits
  connection_lost,      ///< at any other call to the store
  serialization_failure,
  unacknowledged,       ///< the acknowledgement to the broker is lost
  redelivered,          ///< the broker hands out what another consumer holds
  duplicated,           ///< the broker brings an acknowledged message again
  hung_up,              ///< a caller gives up and asks again
  reply_lost,           ///< the answer to a caller is lost
  call_refused,         ///< no connection to the provider
  call_lost,            ///< the request never arrives
  call_slow,            ///< the provider takes long
  answer_lost,          ///< the provider did it, its answer is lost
  error_before,         ///< 500, and nothing was done
  error_after,          ///< 500, and it was done
  busy,                 ///< 429
  publication_lost,     ///< the receiver never sees it
  confirmation_lost,    ///< the receiver has it, the relay does not know
  publication_refused,  ///< 503
  store_clock_jump,     ///< the store's clock is set forward
};
inline constexpr std::array fault_names{"crash",
                                        "stop",
                                        "freeze",
                                        "freeze-in-call",
                                        "freeze-when-told",
                                        "commit-lost-applied",
                                        "commit-lost-undone",
                                        "commit-late",
                                        "connection-lost",
                                        "serialization-failure",
                                        "unacknowledged",
                                        "redelivered",
                                        "duplicated",
                                        "hung-up",
                                        "reply-lost",
                                        "call-refused",
                                        "call-lost",
                                        "call-slow",
                                        "answer-lost",
                                        "error-before",
                                        "error-after",
                                        "busy",
                                        "publication-lost",
                                        "confirmation-lost",
                                        "publication-refused",
                                        "store-clock-jump"};
inline constexpr std::size_t fault_count = fault_names.size();

inline std::string_view fault_name(Fault fault) { return fault_names[static_cast<std::size_t>(fault)]; }

/// One fault, at the n-th opportunity for its kind.
struct PlannedFault {
  Fault kind;
  std::int64_t opportunity;
  bool operator==(const PlannedFault&) const = default;
};

}  // namespace semel::sim
