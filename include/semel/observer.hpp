// What the engine tells whoever counts and logs.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <semel/answer.hpp>
#include <semel/delivery.hpp>
#include <semel/error.hpp>
#include <semel/key.hpp>
#include <semel/performer.hpp>
#include <string_view>

namespace semel {

/// What became of one message in one handler.
enum class Decision {
  fresh,        ///< its effect was committed now
  replay,       ///< its effect was committed before
  conflict,     ///< its key belongs to another message
  rejected,     ///< the handler said no for good, now
  no_key,       ///< set aside or refused: no key
  malformed,    ///< set aside or refused: not what the handler can read
  exhausted,    ///< set aside after the last attempt
  handed_back,  ///< failed, or the store was away: to be delivered again
  unmatched,    ///< no handler wants it; acknowledged
  in_progress,  ///< committed before; an outside call of it is not settled yet
  ambiguous,    ///< committed before; an operator is asked what became of an outside call
};
inline constexpr std::array all_decisions{Decision::fresh,       Decision::replay,      Decision::conflict,
                                          Decision::rejected,    Decision::no_key,      Decision::malformed,
                                          Decision::exhausted,   Decision::handed_back, Decision::unmatched,
                                          Decision::in_progress, Decision::ambiguous};
std::string_view decision_name(Decision decision);

/// Valid during the call.
struct MessageReport {
  std::string_view handler;  ///< empty for unmatched
  const Delivery& delivery;
  const Key* key = nullptr;
  Decision decision;
  const Error* error = nullptr;
};

/// One committed transaction.
struct BatchReport {
  std::size_t messages;
  std::chrono::nanoseconds claim;
  std::chrono::nanoseconds handlers;
  std::chrono::nanoseconds commit;
};

/// One attempt of an outside call, or one question about it, that has ended and whose report is committed.
struct CallReported {
  std::string_view effect;
  std::string_view provider;
  std::string_view intent;
  int attempt;
  bool looked_up;
  CallVerdict verdict;
  IntentState state;  ///< where the intent stands now
  std::chrono::nanoseconds duration;
  std::string_view detail;
};

/// One attempt to send a publication.
struct SendReported {
  std::string_view target;
  std::string_view publication;
  bool confirmed;
  std::string_view detail;  ///< why not
};

/// Called by lanes, clerk and relay; must not block for long, must not throw. Thread-safe.
class Observer {
 public:
  virtual ~Observer() = default;
  /// The store was checked and every lane is open: the run begins.
  virtual void started() {}
  virtual void message(const MessageReport&) {}
  virtual void batch(const BatchReport&) {}
  virtual void called(const CallReported&) {}
  virtual void sent(const SendReported&) {}
  /// The lane is in trouble that is no message's fault (the store is away), and goes on by itself.
  virtual void trouble(const Error&) {}
  /// The trouble is over.
  virtual void recovered() {}

  /// Ignores everything.
  static Observer& none();
};

}  // namespace semel
