// The contract of a store: where records and effects commit together.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <semel/answer.hpp>
#include <semel/fingerprint.hpp>
#include <semel/key.hpp>
#include <semel/ledger.hpp>
#include <semel/outbox.hpp>
#include <semel/record.hpp>
#include <semel/result.hpp>
#include <span>
#include <string>
#include <vector>

namespace semel {

/// Why a message was set aside.
enum class SetAsideReason { no_key, malformed, conflict, rejected, exhausted };
std::string_view reason_name(SetAsideReason reason);

/// A message set aside with its reason.
struct DeadLetter {
  std::string
      id;  ///< set by the store where empty; two letters of one id are one: `times` counts up and it waits again
  SetAsideReason reason = SetAsideReason::malformed;
  ErrorCode code = ErrorCode::malformed_body;
  std::string detail;
  Scope scope;
  std::string key;  ///< bytes; empty where there is none
  Fingerprint fingerprint;
  Fingerprint recorded_fingerprint;  ///< for a conflict: what the record holds
  std::string source;
  Sender sender = Sender::message;
  bool sender_verified = false;
  std::string transport_id;
  std::string body;
  Attributes attributes;
  int attempts = 0;

  std::int64_t times = 1;                              ///< set by the store
  std::chrono::system_clock::time_point set_aside_at;  ///< set by the store
  std::string resolution;  ///< empty while it waits; "retried" or "dropped"; set by `resolve`
};

/// What an operator asks of the dead letters; they come newest first.
struct DeadLetterQuery {
  std::optional<std::string> handler;
  std::optional<SetAsideReason> reason;
  bool waiting_only = true;
  std::string before_id;  ///< continue after the page that ended with this id
  std::size_t count_max = 100;
};

/// A lane's connection. One thread at a time. It opens no transaction by itself and commits none by itself.
///
///  1. `begin` connects again where the connection was lost. After its success everything up to `commit` is one
///     transaction: all of it is durable, or none.
///  2. `claim` returns the committed record of each id asked for, in the order asked, or nothing. It sees every
///     record that was committed before the call.
///  3. Of two transactions that record one id, at most one commits. The other's `record` or `commit` fails with
///     lost_race, remedy `reread`; or, past the lock timeout, with lock_timeout, remedy `retry_later`; both
///     `not_applied`.
///  4. `record` compares ids as bytes, whole: no collation, digest or length merges two of them.
///  5. A record is found by `claim` with its fingerprint, state and answer byte for byte as they were given, until
///     it has expired by the store's clock.
///  6. Errors of `commit` are `unknown` where the store may have committed, `not_applied` where it cannot have.
///     A success is durable: it survives the process and, with the store's safe settings, the machine.
///  7. `rollback` always leaves a session that can `begin` again. Destroying a session rolls back. After an error
///     nothing of the transaction can be committed: every later call but `rollback` fails, `commit` too.
///  8. An error of a write that was sent earlier is attributed: `failed_mark` is the number given to `mark` before it.
///  9. `set_aside` keeps body and attributes byte for byte (NUL included), in the same transaction.
class Session {
 public:
  virtual ~Session() = default;

  virtual Result<void> begin() = 0;

  /// `ids` are sorted and distinct.
  virtual Result<std::vector<std::optional<Record>>> claim(std::span<const RecordId> ids) = 0;

  /// `records` are sorted by id and distinct; none of their ids was found by this transaction's `claim`, but for those
  /// with `replaces_rejection`.
  virtual Result<void> record(std::span<const Record> records) = 0;

  virtual Result<void> set_aside(std::span<const DeadLetter> letters) = 0;
  virtual Result<void> commit() = 0;
  virtual void rollback() noexcept = 0;

  /// Names what follows: the number of the message in its batch.
  virtual void mark(std::size_t number) = 0;
  /// Waits for every write sent so far.
  virtual Result<void> synchronise() = 0;
  /// Of the last failure in this transaction; nothing where it cannot be told.
  virtual std::optional<std::size_t> failed_mark() const = 0;

  /// Intents and publications of this session's transaction; as long-lived as the session. Their failures are the
  /// session's, as promise 7 says.
  virtual Ledger& ledger() = 0;
  virtual Outbox& outbox() = 0;
};

/// What a store cannot do, or does better, than the others.
struct StoreTraits {
  std::string_view name;
  bool single_writer = false;  ///< one transaction writes at a time: all sources share one lane
};

/// Something `check` found.
struct Finding {
  enum class Severity { note, warning, refuse };
  Severity severity;
  std::string message;
  ErrorCode code = ErrorCode::unsafe_durability;  ///< for `refuse`: what the run fails with
};

/// Opens sessions, and answers operators. Thread-safe. Outlives its sessions.
///
/// 10. `check` refuses settings that could lose an acknowledged commit, unless they were allowed by name, and a
///     schema that is missing, older or newer than this release.
/// 11. `migrate` brings the schema to this release's version; two at once are safe; on the newest it changes nothing.
/// 12. `purge` removes at most `count_max` expired records, in a short transaction of its own, and none that has not
///     expired; it says how many.
/// 13. `dead_letters` come newest first, and pages neither repeat nor skip one. `resolve` marks a waiting letter once.
/// 24. `intents` and `outbox` come oldest first, and pages neither repeat nor skip one; the counts count each once.
///     `release` and `drop` concern a held message, once.
/// 25. `take_queued` gives a message to one taker at a time, oldest first, with a receive count that grows; one that is
///     not ended comes again when its lease has run out. It passes over a row that another transaction has locked.
class Store {
 public:
  virtual ~Store() = default;

  virtual StoreTraits traits() const = 0;
  virtual Result<std::vector<Finding>> check() = 0;
  /// The versions that this call applied, oldest first; none on the newest schema.
  virtual Result<std::vector<int>> migrate() = 0;
  virtual Result<std::unique_ptr<Session>> open_session() = 0;

  virtual Result<std::size_t> purge(std::size_t count_max) = 0;
  virtual Result<std::optional<Record>> find_record(const RecordId& id) = 0;
  virtual Result<std::vector<DeadLetter>> dead_letters(const DeadLetterQuery& query) = 0;
  virtual Result<std::optional<DeadLetter>> dead_letter(const std::string& id) = 0;
  /// Marks a waiting letter "retried" or "dropped"; false where it was not waiting.
  virtual Result<bool> resolve(const std::string& id, std::string_view resolution) = 0;

  virtual Result<std::vector<Intent>> intents(const IntentQuery& query) = 0;
  /// Oldest first.
  virtual Result<std::vector<IntentEvent>> intent_history(const IntentId& id) = 0;
  virtual Result<IntentCounts> intent_counts() = 0;

  virtual Result<std::vector<OutboxMessage>> outbox(const OutboxQuery& query) = 0;
  virtual Result<OutboxCounts> outbox_counts() = 0;
  /// Lets a held message be tried again at once; false where it was not held.
  virtual Result<bool> release(const std::string& publication_id) = 0;
  /// Takes a held message out unsent; false where it was not held.
  virtual Result<bool> drop(const std::string& publication_id) = 0;

  /// Leases the oldest due messages of a queue, in a transaction of its own.
  virtual Result<std::vector<QueuedMessage>> take_queued(const std::string& queue, std::size_t count_max,
                                                         std::chrono::milliseconds lease) = 0;
  /// Ends messages, or makes them due again after `QueueEnd::due_in`; only where the receive count is still the
  /// current one.
  virtual Result<void> end_queued(const std::string& queue, std::span<const QueueEnd> ends) = 0;
};

}  // namespace semel
