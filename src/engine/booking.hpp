// One transaction of the clerk: intents change by their token, and where an outcome is known the settle step is written
// with it.
//
//   change → settle steps of those that applied → what they intend and publish → records → commit
#pragma once

#include <map>
#include <optional>
#include <semel/consumer.hpp>
#include <semel/store.hpp>
#include <span>
#include <vector>

#include "engine/outside.hpp"
#include "engine/waiting_room.hpp"

namespace semel::engine {

/// What is to become of one intent.
struct Entry {
  Intent intent;  ///< as it is believed to stand
  const Effect* effect = nullptr;
  IntentStatus to{};
  std::optional<std::chrono::milliseconds> lease{};
  std::chrono::milliseconds due_in{0};
  int failures = 0;
  std::optional<CallOutcome> outcome{};
  std::optional<IntentEvent> event{};
  bool settles = false;  ///< `to` is an outcome, and its settle step is written now
  bool calls = false;    ///< once it is committed, a call begins; `looked_up`: a question

  bool was_flagged = false;            ///< before this change
  std::optional<CallReport> report{};  ///< of a call: judged anew where the intent has moved on meanwhile
  bool looked_up = false;
  /// Of a report of a lookup: the intent's age in doubt when the provider was asked.
  std::optional<std::chrono::milliseconds> asked_since_doubtful{};

  // What the transaction made of it.
  bool applied = false;
  std::optional<Answer> answer{};  ///< the settle step's
  bool forgets = false;            ///< the settle step lets go of the record
};

/// What a booking came to. Without `error` it committed.
struct Booked {
  std::optional<Error> error{};
  std::optional<std::size_t> at_fault{};  ///< the entry whose settle step failed
  std::vector<HandedOver> intended{};
  bool published = false;
  std::map<RecordId, RecordState> records{};  ///< those whose state was decided anew
};

/// What handlers say of their records, by name.
using Handlers = std::map<std::string, const HandlerOptions*>;

class Booking {
 public:
  /// `entries` are sorted by id and distinct. The session is inside a transaction.
  Booking(Session& session, std::span<Entry> entries, const Outside& outside, const Handlers& handlers, Probe& probe);

  /// Runs once, up to the commit or the rollback. `believed`: every intent is taken to stand as its entry says, and the
  /// store is not waited for to say so; where one does not, all fails with lost_race.
  Booked run(bool believed);

 private:
  Result<void> change(bool believed);
  Result<void> judge_anew(Entry& entry);
  Result<void> settle();
  Result<void> settle_one(std::size_t number);
  Result<void> compensate(const Entry& entry);
  Result<void> keep_compensation(Entry& entry, Compensation compensation);
  Result<void> write_wanted();
  Result<void> refresh();
  const HandlerOptions* handler_of(const Intent& intent) const;

  Session& session_;
  std::span<Entry> entries_;
  const Outside& outside_;
  const Handlers& handlers_;
  Probe& probe_;
  Wanted wanted_{};
  std::optional<std::size_t> running_{};
  std::vector<RecordId> refreshed_{};
  std::vector<std::optional<RecordState>> states_{};  ///< of those, once they are committed
};

}  // namespace semel::engine
