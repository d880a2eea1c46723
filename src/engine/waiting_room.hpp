// Where callers wait for outside calls, and what lanes and clerk leave there for each other. Nothing here decides
// anything: whoever finds no word here asks the store.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <semel/answer.hpp>
#include <semel/record.hpp>
#include <semel/source.hpp>
#include <set>
#include <span>
#include <vector>

#include "engine/outside.hpp"

namespace semel::engine {

/// An intent on its way from the lane that committed it to the clerk of this process.
struct HandedOver {
  Intent intent;
  Attributes credentials{};
  std::chrono::steady_clock::time_point since{};  ///< its transaction began; the lease of a started one, no earlier
};

/// Intents that lanes have just committed. Thread-safe.
class Handover {
 public:
  /// A lane is about to commit them: from now until they are taken, or let go of, they `come`. Whoever finds one of
  /// them in the ledger meanwhile leaves it there, for its credentials are on their way too.
  void expect(std::span<const Intent> intents);
  void let_go(std::span<const Intent> intents);
  bool comes(const IntentId& id);
  void put(std::vector<HandedOver> intents);
  std::vector<HandedOver> take();
  /// Rung by every `put`.
  void listen(Doorbell* bell);

 private:
  std::mutex mutex_;
  std::vector<HandedOver> waiting_;
  std::set<IntentId> coming_;
  Doorbell* bell_ = nullptr;
};

/// Word that a record's calls are settled. Thread-safe.
class WaitingRoom {
 public:
  /// The answer that the settle step gave, whole; nothing where the record's own stands, or an operator is asked: the
  /// store knows.
  struct Word {
    std::optional<Answer> answer{};
  };

  /// From now on a word on this record is kept for whoever asks, and `bell` is rung. `leave` ends it.
  void enter(const RecordId& record, Doorbell& bell);
  void leave(const RecordId& record, Doorbell& bell);
  std::optional<Word> ask(const RecordId& record);
  void tell(const RecordId& record, Word word);

 private:
  struct Seat {
    std::vector<Doorbell*> bells;  ///< one for each who waits
    std::optional<Word> word;
  };
  std::mutex mutex_;
  std::map<RecordId, Seat> seats_;
};

/// What lanes, clerk and relay of one consumer share.
struct AfterCommit {
  Outside outside{};
  Handover handover{};
  WaitingRoom waiting_room{};
  Doorbell* relay_bell = nullptr;
  std::atomic<bool> published = false;  ///< since the relay last asked the store

  /// After a commit that has publications.
  void tell_relay();
};

}  // namespace semel::engine
