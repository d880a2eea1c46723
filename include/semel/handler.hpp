// What is said of a handler: which messages are its own, their key, and how it is kept to one effect.
#pragma once

#include <chrono>
#include <semel/fingerprint.hpp>
#include <semel/key.hpp>
#include <string>
#include <vector>

namespace semel {

/// How a handler is kept to one effect.
enum class Guard {
  record,   ///< a record row in the same transaction; the first answer is replayed
  unique,   ///< the effect's own unique constraint: `apply` an INSERT … ON CONFLICT DO NOTHING
  version,  ///< a conditional write: `apply` a statement that changes nothing for an older version
  natural,  ///< none: the handler sets absolute state, and says so
};

/// A message is for the handler only if each condition holds.
struct Condition {
  std::string expression;  ///< JSON Pointer, or "header:Name"
  std::string equals;      ///< the field's text, compared as bytes
};

/// How often a failing message is tried where its source does not deliver it again by itself.
struct RetryPolicy {
  int attempts_max = 5;
  std::chrono::milliseconds delay_first{100};  ///< doubled each time, with full jitter
  std::chrono::milliseconds delay_max{30'000};
};

/// What a caller gets whose message's outside calls are not settled yet.
struct Waiting {
  /// How long the first caller waits for them. It must be shorter than its source's own deadline.
  std::chrono::milliseconds deadline{20'000};
  /// What it then gets: 202, or 409 as for one that comes again meanwhile; both with Retry-After.
  bool accepted_when_late = true;
  /// A caller that comes again meanwhile waits too, as long; else it gets 409 at once.
  bool wait_again = false;
};

struct HandlerOptions {
  std::string name;  ///< the scope of its keys; 1 to 128 bytes; never renamed lightly: a new name forgets
  std::vector<std::string> from{};  ///< names of sources; empty: every source
  std::vector<Condition> when{};
  KeyExpression key{};
  bool key_is_event_id = false;  ///< the key is the provider's own event id, not a business key
  Guard guard = Guard::record;
  FingerprintPolicy fingerprint{};
  std::chrono::seconds retention = std::chrono::hours(24 * 30);  ///< how long a record is kept
  bool keep_answer = true;
  Waiting waiting{};
  RetryPolicy retry{};
};

}  // namespace semel
