// The clerk: has the intents of handlers performed, and writes down what came of them. Its turn never waits for a call.
//
//   turn = what performers report, what lanes hand over, what the ledger holds that is due
//          → one transaction: starts, outcomes with their settle steps, leases renewed
//          → calls begin; whoever waits for an outcome is told
//
// No transaction is open while a call is under way.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "engine/booking.hpp"
#include "engine/duty.hpp"
#include "engine/store_away.hpp"
#include "engine/throttle.hpp"
#include "engine/waiting_room.hpp"
#include "protocol/intent.hpp"

namespace semel::engine {

class Clerk {
 public:
  /// The performers ring `bell`, and so does every handover. `handlers` outlives the clerk.
  Clerk(std::unique_ptr<Session> session, const Handlers& handlers, const ConsumerOptions& options,
        AfterCommit& after_commit, Doorbell& bell, std::uint64_t seed);
  ~Clerk();

  /// One step. Waits for the store, never for a call.
  Turn turn();

  void end(Ending ending);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// An intent in this process's hands, from the commit that started it to the one that closes it.
  struct Item {
    Intent intent;
    Attributes credentials{};
    const Effect* effect = nullptr;
    enum class Stage { to_start, ready, calling, reported } stage = Stage::to_start;
    bool fresh = true;  ///< handed over by a lane of this process
    bool looks_up = false;
    bool lease_lost = false;
    TimePoint known_at{};      ///< when `intent` was read or written
    TimePoint leased_until{};  ///< no later than the lease in the store
    TimePoint begun_at{};
    TimePoint renew_at{};
    CallReport report{};

    /// What was not called yet is not renewed; it is given back when its lease has run out. By renewing, it could get
    /// hold of the lease of a lookup that asks about the same attempt, or go out when its key is forgotten.
    bool renews() const { return stage == Stage::calling && !lease_lost; }
  };

  void collect();
  void take_over();
  Result<std::vector<Entry>> take_due();
  void measure_rooms();
  bool has_room(const Effect& effect) const;
  bool reserve(const Effect& effect);
  std::chrono::milliseconds pause_of(const Effect& effect);

  bool takes_at(TimePoint now) const;
  bool something_to_write() const;
  void write();
  void write_entries(std::vector<Entry> entries);
  void leave_one(std::vector<Entry>& entries);
  std::vector<Entry> plan(std::vector<Entry> taken);
  Entry close(const Item& item);
  Result<void> renew();
  void after_renewal();
  void after_booking(const Booked& booked, std::vector<Entry>& entries);
  void tell_operator(const Entry& entry) const;
  void after_entry(const Entry& entry);
  void after_failure(const Booked& booked, std::vector<Entry>& entries);
  void withhold(const Entry& entry, const Error& error);
  void without_settling(Entry& entry) const;
  void adopt(HandedOver handed_over);
  void begin_calls();
  void begin(Item& item);
  void keep_credentials(Item& item, const Entry& entry);
  void report(const Item& item, const Entry& entry);
  static void not_called(Item& item, const char* why);
  void drop_ready();
  void drop_late();

  protocol::Ages ages_of(const Item& item) const;
  bool finished() const;
  std::optional<TimePoint> next_due() const;
  void note_due(std::chrono::milliseconds due_in);
  void note_open(const Entry& entry);
  void store_failed(const Error& error);

  std::unique_ptr<Session> session_;
  const Handlers& handlers_;
  const ConsumerOptions& options_;
  AfterCommit& after_commit_;
  Jitter jitter_;
  const std::string process_;

  std::vector<std::string> effects_;  ///< the names of those known here
  std::set<Performer*> performers_;
  std::map<std::string, Throttle> throttles_;          ///< by provider
  std::map<std::string, Item> items_;                  ///< by intent id
  std::map<std::string, Attributes> credentials_;      ///< of intents that wait for another attempt, by id
  std::map<std::string, std::size_t> provider_rooms_;  ///< calls that may begin in this turn
  std::map<Performer*, std::size_t> performer_rooms_;
  std::map<std::string, std::string> withheld_;  ///< whose settle step fails, and why

  /// Set where a transaction failed and nobody can be told apart: the last one that was written by itself.
  std::optional<IntentId> alone_{};
  /// Set where an intent was not as it was believed to be: the next transaction asks how they stand.
  bool doubts_ = false;

  TimePoint written_at_{};  ///< when the transaction that is open, or was the last, began
  std::vector<std::pair<std::string, std::chrono::milliseconds>> renewed_;  ///< in the open transaction
  TimePoint take_at_{};                                                     ///< when the ledger is asked again
  std::set<TimePoint> known_due_{};  ///< when intents that were seen here need something again
  bool took_any_ = false;
  StoreAway store_away_;
  std::optional<Ending> ending_{};
  TimePoint patience_until_{};
};

}  // namespace semel::engine
