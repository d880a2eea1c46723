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
};

inline constexpr std::array all_steps{Step::received,  Step::begun,     Step::claimed, Step::handled,    Step::recorded,
                                      Step::set_aside, Step::committed, Step::settled, Step::rolled_back};

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
