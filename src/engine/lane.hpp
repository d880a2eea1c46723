// A lane: one thread with one store session. Its turn is the whole engine, and never waits for a source.
//
//   turn = take what has arrived and what is due again
//          → one transaction (or several, where one fails and is divided)
//          → settle every delivery whose tasks all have their fate
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <semel/consumer.hpp>
#include <semel/source.hpp>
#include <semel/store.hpp>
#include <set>
#include <span>
#include <vector>

#include "engine/duty.hpp"
#include "engine/store_away.hpp"
#include "engine/task.hpp"
#include "engine/transaction.hpp"
#include "engine/waiting_room.hpp"

namespace semel::engine {

class LetterSource;

/// What a lane reads from: a receiver, and what its source is like.
struct Inlet {
  std::unique_ptr<Receiver> receiver;
  SourceTraits traits;
  const LetterSource* letters = nullptr;  ///< set where dead letters are sent again
  bool ended = false;
};

class Lane {
 public:
  /// `bell` wakes the lane.
  Lane(std::unique_ptr<Session> session, std::vector<Inlet> inlets, std::span<const Handler> handlers,
       const ConsumerOptions& options, AfterCommit& after_commit, Doorbell& bell, std::uint64_t seed);
  ~Lane();

  /// One step. Waits for the store, never for a source.
  Turn turn();

  /// Takes no more; hands back what waits to be tried again. The next turn finishes.
  void stop();

  const Summary& summary() const { return summary_; }
  /// The first inlet that could not be read to its end.
  const std::optional<Error>& damage() const { return damage_; }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void receive();
  void take(Delivery delivery, std::size_t inlet);
  void add_task(InFlight& in_flight, const Handler& handler);
  std::vector<Task*> due();

  void process(std::vector<Task*> tasks);
  void after_commit(Attempt attempt, std::span<Task* const> part);
  /// Callers who wait for outside calls: gives them what has come, takes up those for whom the store is to be asked.
  void look_after_waiting(std::vector<Task*>& due);
  /// What its caller gets now; nothing where it waits on, or the store knows.
  static std::optional<Fate> fate_of_waiting(const Task& task, const std::optional<WaitingRoom::Word>& word,
                                             TimePoint now);
  std::vector<Task*> withhold_blocked(std::vector<Task*> part);
  void after_failure(const Attempt& attempt, std::vector<Task*> part, int decided_again);
  void count_failure(Task& task, const Error& error);
  void postpone(Task& task, const Error& error);
  void wait_for_store(std::span<Task* const> tasks, const Error& error);
  void hold(Task& task, TimePoint until);
  std::chrono::milliseconds backoff(const RetryPolicy& policy, int failures);

  void settle();
  void report(const Task& task);
  void count(Decision decision);
  std::optional<TimePoint> next_poll() const;
  std::optional<TimePoint> next_due();

  struct Part {
    std::vector<Task*> tasks;
    int decided_again = 0;
  };

  std::unique_ptr<Session> session_;
  std::vector<Inlet> inlets_;
  std::span<const Handler> handlers_;
  const ConsumerOptions& options_;
  AfterCommit& after_commit_;
  Doorbell& bell_;
  Jitter jitter_;

  std::list<InFlight> in_flight_;
  std::vector<Task*> arrived_;   ///< this turn's new tasks
  std::vector<Task*> held_;      ///< to be tried again, in order of arrival
  std::vector<Task*> awaiting_;  ///< committed; their callers wait
  std::vector<Part> parts_;      ///< what is left of this turn's work, last part first
  StoreAway store_away_;
  std::size_t first_inlet_ = 0;
  Summary summary_;
  std::optional<Error> damage_{};
};

}  // namespace semel::engine
