// What the simulated store keeps, with the isolation of PostgreSQL's READ COMMITTED: who reads sees what was committed
// before the statement, who writes a row that another transaction has written waits for it and then looks again.
//
// A row has its committed version and, while a transaction has written it, that transaction's next one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <semel/sql.hpp>
#include <semel/store.hpp>
#include <string>
#include <vector>

#include "faults.hpp"
#include "mutants.hpp"

namespace semel::sim {

using std::chrono::milliseconds;

/// What a store's clients run on: simulated threads, or, under the conformance suite, real ones.
class Host {
 public:
  virtual ~Host() = default;
  /// Around every call to the store. `enter` is a step of the world, and may throw for a process that is gone.
  virtual void enter() = 0;
  virtual void leave() noexcept {}
  /// Instead of `enter` where nothing may be thrown, and no step is made.
  virtual void enter_quietly() noexcept {}
  virtual bool is_gone() const { return false; }
  /// Inside a call: until `ready`, at most `time`; false for the latter.
  virtual bool wait(milliseconds time, const std::function<bool()>& ready) = 0;
  virtual bool strikes(Fault) { return false; }
  /// How far the client's clock is ahead of the store's.
  virtual milliseconds skew() const { return milliseconds(0); }
  virtual bool has(Mutant) const { return false; }
  /// Whose transactions end when it vanishes.
  virtual const void* owner() const { return nullptr; }
  virtual void say(const std::function<std::string()>&) {}
  /// Counts that this was reached.
  virtual void cover(const std::string&) {}
};

/// What the server itself runs on.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  /// The store's clock, since 1970.
  virtual milliseconds now() const = 0;
  /// `action` after a while: what the server does once it finds a client gone.
  virtual void later(std::function<void()> action) = 0;
  /// A transaction has ended: whoever waits looks again.
  virtual void ended() {}
};

class Transaction {
 public:
  Transaction(Host& host, milliseconds lock_timeout)
      : host_(&host), owner_(host.owner()), lock_timeout_(lock_timeout) {}

  bool is_open() const { return open_; }
  const void* owner() const { return owner_; }
  /// Waits until `other` has ended. Errors: lock_timeout.
  Result<void> wait_for(const std::shared_ptr<Transaction>& other);
  void at_end(std::function<void(bool commits)> action) { ends_.push_back(std::move(action)); }
  void end(bool commits);

 private:
  Host* host_;
  const void* owner_;
  milliseconds lock_timeout_;
  bool open_ = true;
  std::vector<std::function<void(bool)>> ends_;
};

using Writer = std::shared_ptr<Transaction>;

/// Rows by their id.
template <class Id, class Row>
class Table {
 public:
  struct Slot {
    std::optional<Row> committed;
    std::optional<Row> next;
    Writer writer;
  };
  using Slots = std::map<Id, Slot>;

  /// The version that `reader` sees; null where there is none.
  static const Row* seen(const Slot& slot, const Writer& reader) {
    const auto& version = reader && slot.writer == reader ? slot.next : slot.committed;
    return version ? &*version : nullptr;
  }
  const Row* find(const Id& id, const Writer& reader) const {
    const auto slot = slots_.find(id);
    return slot == slots_.end() ? nullptr : seen(slot->second, reader);
  }

  /// Locks the row, which need not be there, for `writer`: from now on `next` is what it will be. Waits for another
  /// transaction that has written it.
  Result<std::optional<Row>*> lock(const Id& id, const Writer& writer) {
    for (;;) {
      Slot& slot = slots_[id];
      if (slot.writer == writer) return &slot.next;
      if (!slot.writer) {
        slot.writer = writer;
        slot.next = slot.committed;
        writer->at_end([this, id](bool commits) { end(id, commits); });
        return &slot.next;
      }
      if (auto waited = writer->wait_for(slot.writer); !waited) return waited.error();
    }
  }
  /// The same for a row that is there; null where there is none when nobody else has it any more.
  Result<std::optional<Row>*> lock_seen(const Id& id, const Writer& writer) {
    if (!find(id, writer)) return static_cast<std::optional<Row>*>(nullptr);
    auto row = lock(id, writer);
    if (!row) return row;
    return **row ? *row : nullptr;
  }

  /// In the order of their ids, each as `reader` sees it.
  template <class Each>
  void each(const Writer& reader, Each call) const {
    for (const auto& [id, slot] : slots_)
      if (const Row* row = seen(slot, reader)) call(id, *row);
  }
  bool is_locked_by_another(const Id& id, const Writer& reader) const {
    const auto slot = slots_.find(id);
    return slot != slots_.end() && slot->second.writer && slot->second.writer != reader;
  }

  const Slots& slots() const { return slots_; }
  /// At once, outside of every transaction.
  void put(const Id& id, Row row) { slots_[id].committed = std::move(row); }
  void erase(const Id& id) { slots_.erase(id); }
  Row* committed(const Id& id) {
    const auto slot = slots_.find(id);
    return slot == slots_.end() || !slot->second.committed ? nullptr : &*slot->second.committed;
  }

 private:
  void end(const Id& id, bool commits) {
    const auto found = slots_.find(id);
    if (found == slots_.end()) return;
    Slot& slot = found->second;
    if (commits) slot.committed = std::move(slot.next);
    slot.next.reset();
    slot.writer.reset();
    if (!slot.committed) slots_.erase(found);
  }

  Slots slots_;
};

struct RecordRow {
  Record record;
  bool rejected = false;
  int open = 0;  ///< 1 in progress, 2 ambiguous
  milliseconds recorded_at{0};
  milliseconds expires_at{0};
};

struct IntentRow {
  Intent intent;
  std::int64_t number = 0;
  milliseconds created_at{0};
  std::optional<milliseconds> started_at{};
  std::optional<milliseconds> doubtful_since{};
  std::optional<milliseconds> due_at{};
};

struct EventRow {
  IntentId intent;
  IntentEvent event;
};

struct OutboxRow {
  OutboxMessage message;
  std::int64_t number = 0;
  milliseconds due_at{0};
};

struct QueueRow {
  OutboxMessage message;
  std::int64_t number = 0;
  int receive_count = 0;
  milliseconds due_at{0};
  milliseconds sent_at{0};
};

struct LetterRow {
  DeadLetter letter;
  std::int64_t number = 0;
};

/// A table of the user's own.
struct UserTable {
  struct Column {
    std::string name;
    bool not_null = false;
    bool primary_key = false;
  };
  std::vector<Column> columns;
  Table<std::int64_t, std::vector<Value>> rows;
};

struct SqlStatement;

/// One simulated database, which outlives its stores and sessions.
class Database {
 public:
  explicit Database(Surroundings& surroundings) : surroundings_(surroundings) {}

  milliseconds now() const { return surroundings_.now(); }
  std::int64_t next_number() { return ++number_; }

  Writer begin(Host& host, milliseconds lock_timeout);
  /// Now.
  void end(const Writer& transaction, bool commits);
  /// Its client is gone, and the server finds out later.
  void orphan(const Writer& transaction, bool commits);
  /// Everything of this client's is orphaned.
  void vanished(const void* owner);

  bool counts_as_expired(const RecordRow& row) const;
  /// What an expired record leaves, inside a transaction.
  Result<void> remove_intents_of(const RecordId& id, const Writer& writer);

  Table<RecordId, RecordRow> records;
  Table<std::string, IntentRow> intents;
  Table<std::int64_t, EventRow> events;
  Table<std::string, OutboxRow> outbox;
  Table<std::string, QueueRow> queue;
  Table<std::string, LetterRow> letters;
  std::map<std::string, UserTable> user_tables;
  std::map<std::string, std::shared_ptr<const SqlStatement>, std::less<>> statements;  ///< parsed before

  Writer relaying;  ///< who has taken or finished publications

 private:
  Surroundings& surroundings_;
  std::int64_t number_ = 0;
  std::vector<Writer> open_;
};

}  // namespace semel::sim
