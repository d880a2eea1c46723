// What to do after a transaction failed. The one place that decides whether something may be repeated.
#pragma once

#include <semel/error.hpp>

namespace semel::protocol {

enum class NextStep {
  decide_again,    ///< a new transaction, at once: the claims will tell
  isolate,         ///< divide the batch, so that the message at fault stands alone
  postpone,        ///< the single message goes back for later; nothing counts as failed
  count_failure,   ///< the single message's own failure: counted, tried again later or set aside
  wait_for_store,  ///< no message's fault: everything waits until the store is back
};

struct FailedTransaction {
  const Error& error;
  bool attributed;    ///< the error came from one message's own statement or handler
  bool alone;         ///< the transaction held one message
  int decided_again;  ///< how often this batch was decided again already
};

/// How often a batch is decided again before it is divided, or its single message postponed.
inline constexpr int decide_again_max = 5;

/// Total: every (error, situation) has one answer.
NextStep next_step(const FailedTransaction& failed);

}  // namespace semel::protocol
