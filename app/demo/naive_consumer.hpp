// The two consumers that teams write before they know better. They are wrong on purpose.
#pragma once

#include <string>

namespace semel::demo {

struct NaiveConsumer {
  /// 1: charges, then records what it has done.
  /// 2: looks up whether it was done, charges, then records it in a transaction of its own.
  int version;
  std::string messages;  ///< JSON lines
  std::string database;  ///< what it has recorded
  std::string ledger_socket;
};

/// Takes all messages as one prefetched batch, as consumers of queues do, and acknowledges them by ending.
/// Reports the steps "looked-up", "charged" and "recorded".
int run_naive_consumer(const NaiveConsumer& consumer);

}  // namespace semel::demo
