// What happens to an intent next: pure functions of its status, of what has come to be known, and of the provider's
// policy.
//
//   pending ── perform (attempt + 1) ──► started ──► succeeded | failed | abandoned ── settle ──► settled
//      ▲                                    │ unknown, or the lease ran out
//      │                                    ▼
//      ├── the key is remembered ◄───── doubtful ── neither ──► ambiguous ── an operator ──► any of the above
//      └── not found, and visible ◄── look up (same attempt)
//
// A lookup keeps the attempt that it asks about: whatever that attempt still says itself is then still news.
#pragma once

#include <optional>
#include <semel/intent.hpp>
#include <semel/performer.hpp>

namespace semel::protocol {

/// What an intent needs from whoever has taken it.
enum class Need {
  nothing,
  perform,         ///< make the call; a repeat is safe, or there was none before
  look_up,         ///< ask the provider whether it happened
  settle,          ///< its outcome is known, the settle step has not committed
  give_up,         ///< it certainly did not happen and has been tried long enough: it has failed
  ask_an_operator  ///< nobody can know: ambiguous
};

/// How long things took, by the store's clock.
struct Ages {
  std::chrono::milliseconds intended{0};                      ///< since it was intended
  std::optional<std::chrono::milliseconds> since_started{};   ///< since the first attempt that may have reached anybody
  std::optional<std::chrono::milliseconds> since_doubtful{};  ///< since an attempt ended without an outcome
};
Ages ages_of(const Intent& intent);

Need need_of(const IntentStatus& status, bool lease_ran_out, const EffectOptions& effect, const Ages& ages);

/// The status of a started intent whose attempt is dead: it may have happened.
IntentStatus after_death(IntentStatus status);

/// What a report does.
struct Reported {
  enum class Effect {
    applied,      ///< the intent moves to `to`
    evidence,     ///< its attempt is not the current one any more: it goes into the history and changes nothing
    contradicts,  ///< the same, and an operator must see it: `to` is flagged
  } effect = Effect::applied;
  IntentStatus to{};
  bool operator==(const Reported&) const = default;
};

/// `now` is the status in the ledger, `attempt` and `looked_up` say what the report is of. `known` is the outcome that
/// the ledger holds.
struct ReportedCall {
  const IntentStatus& now;
  int attempt;
  bool looked_up;
  const CallReport& report;
  const std::optional<CallOutcome>& known;
};
Reported after_report(const ReportedCall& call, const EffectOptions& effect, const Ages& ages);

/// What an operator's word does; nothing where it is not asked for: a call is under way, or the outcome is known and
/// nothing contradicts it.
std::optional<IntentStatus> after_resolution(IntentStatus status, bool lease_ran_out, Resolution resolution);

}  // namespace semel::protocol
