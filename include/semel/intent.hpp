// Effects that the store does not own: what a handler asks for after the commit, and what is known of it.
//
//   pending ──► started(attempt n, lease) ──► succeeded | failed ──► settled
//      ▲              │ no outcome                 ▲
//      └── repeat ◄───┴──► ambiguous ── operator ──┴──► abandoned
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <semel/answer.hpp>
#include <semel/delivery.hpp>
#include <semel/record.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace semel {

/// Names one intent: 32 hexadecimal digits, derived from the record that it belongs to and its place in it, so that it
/// is the same in every attempt and no other intent has it.
struct IntentId {
  std::string hex;
  auto operator<=>(const IntentId&) const = default;
};

/// Of the first step of a record's chain (`parent` nothing), or of one that a settle step intended.
IntentId derive_intent_id(const RecordId& record, const std::optional<IntentId>& parent, int ordinal);
/// Of the compensation of `compensated`.
IntentId derive_compensation_id(const IntentId& compensated);
/// What providers are given: the id in the form of a UUID (36 characters fit every provider's limit).
std::string idempotency_key_of(const IntentId& id);

/// A call that undoes another one.
struct Compensation {
  std::string effect{};
  std::string request{};
  bool operator==(const Compensation&) const = default;
};

/// What a handler wants an outside system to do once the transaction has committed.
struct Intention {
  std::string effect;       ///< names the performer and the settle handler
  std::string request{};    ///< bytes for the performer, at most 16 MiB. Stored: it must hold no credentials
  std::string reference{};  ///< a business reference, such as an order number: for a lookup, and for people
  /// Overrides the derived key that the provider is given, for a gateway that passes on its caller's.
  std::optional<std::string> idempotency_key{};
  /// Run where a later step of the chain fails for good. A settle handler may set another one once it knows more.
  std::optional<Compensation> compensation{};
  /// For the first attempt only; kept in memory, never stored.
  Attributes credentials{};

  static constexpr std::size_t request_size_max = 16u << 20;
};

enum class IntentState {
  pending,    ///< no call is under way; `doubtful` says whether an earlier one may have happened
  started,    ///< a call is under way, or its process died: the lease tells
  succeeded,  ///< the provider did it, or an operator says so
  failed,     ///< it did not happen, for good: a declined card, a definite refusal
  ambiguous,  ///< nobody knows; an operator is asked
  abandoned,  ///< an operator gave it up without knowing
};
inline constexpr std::array all_intent_states{IntentState::pending, IntentState::started,   IntentState::succeeded,
                                              IntentState::failed,  IntentState::ambiguous, IntentState::abandoned};
std::string_view intent_state_name(IntentState state);

/// Whether the outcome is still open: such an intent never expires, and neither does its record.
bool is_open(IntentState state);

/// Where an intent stands. `attempt` is its token: it only grows, and a change that names another one changes nothing.
struct IntentStatus {
  IntentState state = IntentState::pending;
  int attempt = 0;
  bool doubtful = false;  ///< an earlier attempt may have had its effect
  bool settled = false;   ///< the settle step has committed
  bool flagged = false;   ///< what came late contradicts what was settled, or settling fails: an operator is asked, and
                          ///< where it is settled, callers are answered all the same
  bool operator==(const IntentStatus&) const = default;
};

/// What came of it, as the settle step sees it.
struct CallOutcome {
  std::string reference{};  ///< the provider's own id of what it did; empty where it gave none
  Answer answer{};          ///< status, headers and body as the provider gave them
  std::string detail{};     ///< for people
};

/// A message as it is kept for a later step: without receipt, credentials and whatever belongs to one delivery.
struct StoredMessage {
  std::string source{};
  Sender sender = Sender::message;
  bool sender_verified = false;
  std::string transport_id{};
  std::string body{};
  Attributes attributes{};
};

/// One intent as it is stored.
struct Intent {
  IntentId id;
  RecordId record;
  std::optional<IntentId> parent{};       ///< whose settle step intended it
  std::optional<IntentId> compensates{};  ///< what it undoes
  int step = 1;                           ///< counts the record's intents, in the order intended
  std::string effect{};
  std::string provider{};
  std::string reference{};
  std::string idempotency_key{};
  std::string request{};
  std::optional<Compensation> compensation{};
  StoredMessage message{};  ///< where it came from, for the settle step

  IntentStatus status{};
  std::chrono::milliseconds lease{0};  ///< of one that is intended as started at once; not read back
  std::optional<CallOutcome> outcome{};
  int failures =
      0;  ///< attempts since it was last known not to have happened; of the settle step once it has an outcome

  // By the store's clock; read-only.
  std::chrono::system_clock::time_point created_at{};
  std::chrono::milliseconds age{};  ///< since it was intended
  /// Since the first attempt that may have reached the provider: counted from the first start, and forgotten when the
  /// intent is pending again without doubt.
  std::optional<std::chrono::milliseconds> since_started{};
  std::optional<std::chrono::milliseconds> since_doubtful{};  ///< since the last attempt ended without an outcome
  bool lease_ran_out = false;                                 ///< started, and nobody renewed it in time
};

/// One line of an intent's history; kept as long as the intent.
struct IntentEvent {
  std::string
      kind;  ///< started, succeeded, failed, not_done, unknown, lease_ran_out, looked_up, late, resolved, settled …
  int attempt = 0;
  std::string by{};      ///< the process or the operator
  std::string detail{};  ///< for people: status, reason
  std::optional<CallOutcome> evidence{};
  std::chrono::system_clock::time_point at{};  ///< set by the store
};

/// What an operator found out.
enum class Resolution {
  happened,        ///< the provider did it; `reference` says which one it is
  did_not_happen,  ///< it may run again
  abandoned,       ///< nobody will know; nothing runs again
};
std::string_view resolution_name(Resolution resolution);

/// What an operator asks of the intents; oldest first.
struct IntentQuery {
  std::vector<IntentState> states{};  ///< empty: all
  std::optional<std::string> provider{};
  std::optional<std::string> effect{};
  std::chrono::seconds older_than{0};
  bool waiting_for_operator = false;  ///< ambiguous or flagged
  std::string after_id{};             ///< continue after the page that ended with this id
  std::size_t count_max = 100;
};

/// For metrics.
struct IntentCounts {
  std::vector<std::pair<IntentState, std::int64_t>> by_state{};  ///< of those not settled; settled ones are not counted
  std::int64_t waiting_for_operator = 0;
  std::optional<std::chrono::milliseconds> oldest_open{};  ///< age of the oldest one without an outcome
};

}  // namespace semel
