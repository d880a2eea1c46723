// One transaction: claim all, run the fresh ones' handlers, record, commit.
#pragma once

#include <optional>
#include <semel/clock.hpp>
#include <semel/observer.hpp>
#include <semel/probe.hpp>
#include <semel/store.hpp>
#include <span>
#include <vector>

#include "engine/task.hpp"
#include "engine/waiting_room.hpp"
#include "protocol/claim.hpp"

namespace semel::engine {

/// What a transaction came to. Without `error` and `rejected` it committed.
struct Attempt {
  std::optional<Error> error{};
  std::optional<std::size_t> at_fault{};  ///< the task whose own statement or handler failed
  bool rejected = false;  ///< rolled back to undo the writes of rejected messages, which are marked: decide again
  std::vector<HandedOver> intended{};  ///< committed; the clerk goes on with them
  bool published = false;              ///< publications were committed

  bool committed() const { return !error && !rejected; }
};

class Transaction {
 public:
  Transaction(Session& session, std::span<Task* const> tasks, AfterCommit& after_commit,
              const ConsumerOptions& options);

  /// Runs once. After a failure it is rolled back and no task has changed but for `rejection`. After a commit a task
  /// has its fate, or is `awaiting`.
  Attempt run();

 private:
  struct Slot {
    protocol::Claim claim = protocol::Fresh{};
    std::optional<std::size_t> leader{};  ///< the earlier task of this transaction that has the same key
    bool applied = true;                  ///< false: the guarding write changed nothing
    WorkLog log{};
    Wanted wanted{};
    std::optional<Outcome> outcome{};
  };

  Result<void> claim();
  Result<void> run_handlers();
  Result<void> run_one(std::size_t number);
  Result<void> run_batches();
  Result<void> run_round(const Handler& handler, std::span<const std::size_t> numbers);
  Result<void> note_wishes(std::size_t number, WorkLog log);
  Result<void> write_down();
  Result<void> write_wishes();
  bool undo_needed();
  void decide_fates();
  std::optional<Fate> fate_of(std::size_t number) const;
  std::optional<Fate> fate_of_open(const Task& task, bool first, bool ambiguous) const;
  void await(Task& task, bool first) const;
  Attempt committed(std::chrono::steady_clock::time_point since);
  Fate conflict_fate(const Task& task) const;

  bool is_fresh(std::size_t number) const;
  bool claims(std::size_t number) const;
  std::optional<protocol::Conflict> conflict_of(std::size_t number) const;
  std::vector<Record> records() const;
  std::vector<DeadLetter> letters() const;
  Attempt fail(Error error);

  Session& session_;
  std::span<Task* const> tasks_;
  std::vector<Slot> slots_;
  AfterCommit& after_commit_;
  const ConsumerOptions& options_;
  Clock& clock_;
  Probe& probe_;
  std::optional<std::size_t> running_{};  ///< whose handler is running
};

}  // namespace semel::engine
