// The contract of an outbox: messages that leave after the commit, at least once, in order for each key.
#pragma once

#include <chrono>
#include <optional>
#include <semel/delivery.hpp>
#include <semel/record.hpp>
#include <semel/result.hpp>
#include <span>
#include <string>
#include <vector>

namespace semel {

/// What a handler wants sent once the transaction has committed.
struct Publication {
  std::string to;  ///< the name of a target: see `Consumer::publish_to`; or of a queue in the store
  std::string body{};
  Attributes attributes{};
  std::string order_key{};  ///< those of one target and order key leave in the order published; empty: in any order
};

/// A publication's id: derived from its record and its place in it, so that a receiver can tell a repeat. `parent` is
/// the intent whose settle step published it.
std::string derive_publication_id(const RecordId& record, std::string_view parent, int ordinal);

/// One publication as it is stored.
struct OutboxMessage {
  std::string id;  ///< 32 hexadecimal digits
  RecordId record;
  Publication publication{};
  bool queued = false;  ///< to a queue in the store: it is there at once, and nothing is relayed
  int attempt = 0;      ///< the token: it only grows
  int failures = 0;
  std::string last_error{};
  bool held = false;                                     ///< an operator is asked; what comes behind it waits
  std::chrono::system_clock::time_point published_at{};  ///< set by the store
};

/// What became of one attempt to send.
struct OutboxResult {
  std::string id;
  int attempt = 0;
  bool sent = false;                    ///< the other side has confirmed: the row leaves
  std::chrono::milliseconds due_in{0};  ///< not sent: tried again no sooner than this
  std::string error{};                  ///< empty where it is given back untried, which counts as no failure
  bool hold = false;                    ///< not sent, and not tried again until an operator says so
};

/// A message in one of the store's own queues.
struct QueuedMessage {
  std::string id;
  std::string body;
  Attributes attributes;
  std::string order_key;
  int receive_count = 1;
  std::chrono::system_clock::time_point sent_at;
};

/// How a taken message ends.
struct QueueEnd {
  std::string id;
  int receive_count = 0;
  std::optional<std::chrono::milliseconds> due_in{};  ///< nothing: it is done and leaves
};

/// What an operator asks of the outbox; oldest first.
struct OutboxQuery {
  std::optional<std::string> to{};
  bool held_only = false;
  std::string after_id{};
  std::size_t count_max = 100;
};

struct OutboxCounts {
  std::int64_t waiting = 0;  ///< those not held
  std::int64_t held = 0;
  std::optional<std::chrono::milliseconds> oldest{};  ///< age of the oldest of all
};

/// Publications, inside a session's transaction. One thread at a time. Every time is judged by the store's clock.
///
/// 20. `publish` keeps a message byte for byte, in the order given. An id that is there already is lost_race. It comes
///     after `record` of its record.
/// 21. `take` gives out at most `count_max` messages that are not sent and due, and leases them with a higher
///     `attempt`: nobody else gets them until the lease has run out. Found by state, never by a number greater than the
///     last one. Of one target and order key only those whose predecessors are sent, or go out before them in the same
///     answer; in the order published. What is held, or waits to be tried again, holds back what is behind it. Who
///     takes waits for another transaction that has taken or finished, so such a transaction is short.
/// 22. `finish` takes a sent message out, or makes it wait, only where `attempt` is still the current one.
/// 23. A message to a queue of the store (`queued`) appears in the queue's table with the commit, and `take` never
///     gives it out: `Store::take_queued` does. Any SQL client may take its row with FOR UPDATE SKIP LOCKED and delete
///     it in its own transaction.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual Result<void> publish(std::span<const OutboxMessage> messages) = 0;
  virtual Result<std::vector<OutboxMessage>> take(std::span<const std::string> targets, std::size_t count_max,
                                                  std::chrono::milliseconds lease) = 0;
  virtual Result<void> finish(std::span<const OutboxResult> results) = 0;
};

}  // namespace semel
