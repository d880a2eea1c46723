// The moments that the engine reports, so that tests can wait for one, or kill the process there.
#pragma once

#include <array>
#include <string_view>

namespace semel {

/// Every step of a message's life, in order. `semel steps` lists them; each has a crash test.
enum class Step {
  received,     ///< a batch is in hand, nothing is open
  begun,        ///< the transaction is open
  claimed,      ///< every message is known as fresh, replay or conflict
  handled,      ///< the fresh ones' handlers have run; their effects are sent
  recorded,     ///< the records are written with their answers
  set_aside,    ///< dead letters are written
  committed,    ///< the store has confirmed the commit; nothing is acknowledged yet
  settled,      ///< the source was told
  rolled_back,  ///< a failed transaction is undone
  intended,     ///< intents and publications are written beside the record, not committed
  started,      ///< an attempt's start is committed; the call has not gone out
  called,       ///< the call was handed to its performer
  reported,     ///< an outcome is in hand; nothing of it is written
  settling,     ///< outcome and settle step are written, not committed
  closed,       ///< the outcome is committed; nobody who waits was told
  relaying,     ///< publications are leased; none was handed to its performer
  relayed,      ///< a publication's receiver has confirmed; it is not taken out yet
  sent,         ///< confirmed publications are taken out
};

inline constexpr std::array all_steps{
    Step::received,  Step::begun,    Step::claimed,     Step::handled,  Step::recorded, Step::set_aside,
    Step::committed, Step::settled,  Step::rolled_back, Step::intended, Step::started,  Step::called,
    Step::reported,  Step::settling, Step::closed,      Step::relaying, Step::relayed,  Step::sent};

std::string_view step_name(Step step);

/// Called by every lane at every step; may block. Thread-safe.
class Probe {
 public:
  virtual ~Probe() = default;
  virtual void reached(Step step) = 0;

  /// Does nothing.
  static Probe& none();
};

}  // namespace semel
