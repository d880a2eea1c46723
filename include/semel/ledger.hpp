// The contract of a ledger: where intents are kept, changed by their token only, and never forgotten.
#pragma once

#include <chrono>
#include <optional>
#include <semel/intent.hpp>
#include <semel/record.hpp>
#include <semel/result.hpp>
#include <span>
#include <string>
#include <vector>

namespace semel {

/// A change of one intent, made only where its `attempt` and state are still the expected ones.
struct IntentChange {
  IntentId id;
  int expected_attempt = 0;
  std::vector<IntentState> expected_states{};  ///< it must be in one of them
  IntentStatus to{};                           ///< `to.attempt` may be greater than `expected_attempt`, never less
  /// For `started`: how long until it counts as dead, unless renewed. Counted by the store's clock.
  std::optional<std::chrono::milliseconds> lease{};
  /// When `take` gives it out again, unless it is started or needs nothing any more.
  std::chrono::milliseconds due_in{0};
  int failures = 0;
  std::optional<CallOutcome> outcome{};        ///< kept; an outcome that is there is replaced only by another one
  std::optional<Compensation> compensation{};  ///< replaces the one that is there
  std::optional<IntentEvent> event{};          ///< appended to the history in the same transaction, where it applied
};

/// A record whose intents have changed.
struct RecordUpdate {
  RecordId id;
  std::optional<Answer> answer{};    ///< replaces the one that is there
  bool answer_dropped = false;       ///< none is kept from now on: a replay then says so
  std::chrono::seconds retention{};  ///< from now on, where the record is closed by this
};

/// Intents, inside a session's transaction: everything here commits with it or not at all. One thread at a time. Every
/// time is judged by the store's clock.
///
/// 14. `intend` keeps an intent byte for byte. An id that is there already is lost_race, remedy `reread`. It comes
/// after
///     `record` of its record: what an expired record with the same id has left goes there, and a race is lost there.
/// 15. `take` gives out at most `count_max` intents that need something: pending and due; started and their lease ran
///     out; with an outcome (abandoned is one), due and not settled. Oldest due first, and none that another open
///     transaction has taken. It changes nothing; until the transaction ends nobody else gets them.
/// 16. `change` applies a change only where attempt and state are as expected, and says so for each. Of two changes
///     that expect the same attempt and raise it, one applies. Where one of `change_all` does not apply, it or a later
///     call, the commit at the latest, is lost_race with the remedy `reread`.
/// 17. `note` appends to the history whatever state the intent is in: an outcome that comes late is evidence. Of an
///     intent that is gone nothing is kept.
/// 18. `refresh` decides a record's state anew, one refresh at a time for each record: ambiguous where an intent of it
///     is ambiguous, or open and flagged; else in_progress where one is open or not settled; else completed (a rejected
///     one stays rejected), and its retention begins. Says the state. A record that is gone is nothing. It comes after
///     `change` in its transaction, so that all take locks in one order.
/// 19. An open record, or one with a flagged intent, or with publications that are not sent or wait in a queue, is
///     never purged and never counts as expired. An intent goes in the step that purges its record, with its history,
///     and not before.
class Ledger {
 public:
  virtual ~Ledger() = default;
  virtual Result<void> intend(std::span<const Intent> intents) = 0;
  /// `effects`: only of these; those of others wait for a process that knows them.
  virtual Result<std::vector<Intent>> take(std::span<const std::string> effects, std::size_t count_max) = 0;
  /// `changes` are sorted by id and distinct. One answer a change.
  virtual Result<std::vector<bool>> change(std::span<const IntentChange> changes) = 0;
  /// For changes that are expected to apply, of intents that this transaction has not written before: a server need not
  /// be waited for.
  virtual Result<void> change_all(std::span<const IntentChange> changes);
  /// True where the intent's lease was prolonged: it is still started with this attempt.
  virtual Result<std::vector<bool>> renew(std::span<const std::pair<IntentId, int>> attempts,
                                          std::chrono::milliseconds lease) = 0;
  virtual Result<void> note(const IntentId& id, const IntentEvent& event) = 0;
  /// Of one record, by step. Locks nothing.
  virtual Result<std::vector<Intent>> intents_of(const RecordId& record) = 0;
  virtual Result<std::optional<Intent>> find(const IntentId& id) = 0;
  /// `updates` are sorted by id and distinct.
  virtual Result<std::vector<std::optional<RecordState>>> refresh(std::span<const RecordUpdate> updates) = 0;
  /// The same for the last statement of a transaction: `states` need not be there before the commit has succeeded, so
  /// that a server is not waited for twice. `states` lives until the transaction has ended.
  virtual Result<void> refresh_at_commit(std::span<const RecordUpdate> updates,
                                         std::vector<std::optional<RecordState>>& states);
};

}  // namespace semel
