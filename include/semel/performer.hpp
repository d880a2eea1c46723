// The contract of a performer: whoever makes a call to the outside and says what came of it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <semel/intent.hpp>
#include <semel/source.hpp>
#include <string>
#include <vector>

namespace semel {

/// One attempt of one call, or one question whether it happened.
struct Call {
  std::string id;        ///< of the intent or of the publication
  std::string effect;    ///< or the publication's target
  int attempt = 1;       ///< counts the attempts of this id; several may be under way where one was believed dead
  bool look_up = false;  ///< do not do it: ask the provider whether an earlier attempt did
  std::string idempotency_key{};  ///< the same in every attempt
  std::string request{};
  std::string reference{};
  std::string order_key{};
  Attributes attributes{};   ///< a publication's
  Attributes credentials{};  ///< the caller's own, for the first attempt of a gateway's call; never stored
  bool fresh = true;         ///< the process that took the request in makes the first attempt
  std::chrono::milliseconds timeout{30'000};
};

/// What is known after an attempt.
enum class CallVerdict {
  succeeded,   ///< it did happen (looked up: it had)
  failed,      ///< it did not, and a repeat would not either: declined, malformed
  refused,     ///< turned away before it was looked at (401, 403, 404): it did not, but of an earlier attempt under the
               ///< same key this says nothing
  not_done,    ///< it did not; the same call may go through later: refused connection, 429, 503 with Retry-After
  unknown,     ///< it may have: a timeout or a reset after the request went out, a 500
  not_found,   ///< looked up: the provider knows of none (yet)
  unfinished,  ///< looked up, or in flight under the same key: the provider is at it; ask again
  mismatch,    ///< the provider has something else under this key or reference: an operator must look
};
std::string_view call_verdict_name(CallVerdict verdict);

struct CallReport {
  CallVerdict verdict = CallVerdict::unknown;
  CallOutcome outcome{};
  std::optional<std::chrono::milliseconds> retry_after{};  ///< the provider's own word
};

/// An attempt that has ended.
struct Performed {
  std::string id;
  int attempt = 0;
  CallReport report{};
};

/// Makes calls, many at a time, outside every transaction. One thread at a time; `begin`, `collect` and `room` never
/// wait. It is used from `open` to `close`, and may be used again.
///
///  1. Every call that was begun is collected exactly once before `close`, whatever happened; no later than about its
///     timeout.
///  2. The doorbell is rung when there is something to collect.
///  3. `unknown` is said unless it is certain that the provider did not act: what cannot be told apart is unknown.
///  4. `close` abandons what has not been collected; the outcomes are then unknown. After it returned, the doorbell is
///     never touched again, and nothing of this use is collected in the next one.
///  5. Destroying a performer closes it.
class Performer {
 public:
  virtual ~Performer() = default;
  /// Begins a use, for one caller at a time; called before `room`, `begin` and `collect`. `bell` lives until `close`.
  virtual void open(Doorbell& bell) = 0;
  /// Ends a use; nothing where there is none. A call that cannot be broken off may go on behind it, and takes up room.
  virtual void close() = 0;
  /// How many more calls it takes now.
  virtual std::size_t room() const = 0;
  /// No more than `room`.
  virtual void begin(Call call) = 0;
  virtual std::vector<Performed> collect() = 0;
};

/// Makes calls on a bounded pool of threads: `call` may block, is called from several threads at once, and should
/// return within the call's timeout (nobody interrupts it, and `close` does not wait for it). What it throws is
/// `unknown`; a Failure whose certainty is not_applied is not_done, or failed where its remedy is fix_call. Destroying
/// the performer waits for the calls that have entered the function, since it may use what its owner destroys next.
std::unique_ptr<Performer> blocking_performer(std::function<CallReport(const Call&)> call, std::size_t threads = 8);

/// The right to report one call, once, from any thread. Destroyed unused it reports `unknown`.
class Reply {
 public:
  explicit Reply(std::function<void(CallReport)> deliver) : deliver_(std::move(deliver)) {}
  Reply(Reply&& other) noexcept : deliver_(std::exchange(other.deliver_, nullptr)) {}
  Reply& operator=(Reply&&) = delete;
  ~Reply() {
    if (deliver_) deliver_({});
  }
  void report(CallReport report) && { std::exchange(deliver_, nullptr)(std::move(report)); }

 private:
  std::function<void(CallReport)> deliver_;
};

/// Makes calls that report later: `call` returns at once, and the Reply is used when the outcome is known. A call whose
/// timeout has passed without a report is `unknown`, and its Reply comes to nothing; so do Replies that outlive the
/// performer.
std::unique_ptr<Performer> later_performer(std::function<void(Call, Reply)> call, std::size_t calls_max = 256);

/// What makes a repeat safe where an attempt has ended without an outcome.
struct ProviderPolicy {
  enum class Kind {
    idempotent,  ///< the provider takes a key: the call is repeated with the same one while it is remembered
    lookup,      ///< the provider is asked by reference whether it happened
    neither,     ///< nothing does: an operator is asked
  } kind = Kind::neither;
  /// For `idempotent`: how long the provider remembers a key, counted from the first attempt; and how much of that is
  /// not used. Past it the provider is asked where it can be (`can_look_up`), else an operator.
  std::chrono::seconds key_lifetime{0};
  std::chrono::seconds margin{3600};
  bool can_look_up = false;
  /// How long after an attempt's end the provider may still not show what it did.
  std::chrono::seconds visibility_delay{60};
};

/// Bounds on the calls to one provider from one process.
struct ProviderLimits {
  std::size_t calls_max = 32;   ///< under way at once
  double calls_per_second = 0;  ///< 0: no limit
  int breaker_failures =
      10;  ///< in a row without any answer; then no call for `breaker_pause`, then one to try. 0: never
  std::chrono::milliseconds breaker_pause{10'000};
};

/// What is said of an effect.
struct EffectOptions {
  std::string name;
  std::string provider{};  ///< effects of one provider share its limits; empty: the effect's own name
  ProviderPolicy policy{};
  ProviderLimits limits{};
  std::chrono::milliseconds timeout{30'000};  ///< of one attempt
  std::chrono::milliseconds lease{15'000};    ///< renewed at a third; an attempt is dead when it ran out
  /// How long a call that certainly did not happen is tried again; then it failed, with the last answer or 504.
  std::chrono::seconds give_up_after = std::chrono::hours(24);
  std::chrono::milliseconds delay_first{500};  ///< between attempts; doubled each time, with full jitter
  std::chrono::milliseconds delay_max{300'000};
  /// Marked started in the transaction that intends it, which saves a commit; a crash before the call then looks like
  /// one after it. Nothing: where the policy makes a repeat safe.
  std::optional<bool> start_at_once{};

  bool starts_at_once() const { return start_at_once.value_or(policy.kind != ProviderPolicy::Kind::neither); }
  const std::string& provider_name() const { return provider.empty() ? name : provider; }
};

/// What is said of a target of publications.
struct TargetOptions {
  std::string name;
  std::size_t sends_max = 16;                 ///< under way at once
  std::chrono::milliseconds timeout{30'000};  ///< of one attempt
  std::chrono::milliseconds delay_first{500};
  std::chrono::milliseconds delay_max{60'000};
};

}  // namespace semel
