// The relay: sends publications after the commit, at least once, in order for each (target, order key). Its turn never
// waits for a send.
//
//   turn = what performers report → one transaction: confirmed ones leave, the others wait; due ones are leased → sends
//   begin
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <semel/consumer.hpp>
#include <semel/store.hpp>
#include <set>
#include <string>
#include <vector>

#include "engine/duty.hpp"
#include "engine/store_away.hpp"
#include "engine/waiting_room.hpp"

namespace semel::engine {

class Relay {
 public:
  /// The performers ring `bell`, and so does every commit that has publications.
  Relay(std::unique_ptr<Session> session, const ConsumerOptions& options, AfterCommit& after_commit, Doorbell& bell,
        std::uint64_t seed);
  ~Relay();

  /// One step. Waits for the store, never for a send.
  Turn turn();

  void end(Ending ending);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Item {
    OutboxMessage message;
    const Target* target = nullptr;
    bool sending = false;
    bool given_back = false;  ///< leased and not begun: it goes back to the outbox at once
    TimePoint leased_until{};
  };

  void collect();
  void count_result(const Item& item, const CallReport& report);
  void write();
  Result<void> take();
  void begin_sends();
  bool begin(Item& item);
  void give_back(Item& item);
  void give_back_behind(const OutboxMessage& message);
  void forget_given_back();
  void store_failed(const Error& error);
  bool finished() const;

  std::unique_ptr<Session> session_;
  const ConsumerOptions& options_;
  AfterCommit& after_commit_;
  Jitter jitter_;
  std::vector<std::string> targets_;  ///< those that are relayed
  std::set<Performer*> performers_;

  std::deque<Item> items_;  ///< leased, in the order published
  std::vector<OutboxResult> results_;
  std::vector<Item> taken_;  ///< in the transaction that is open
  bool more_ = true;
  TimePoint take_at_{};
  StoreAway store_away_;
  std::optional<Ending> ending_{};
  TimePoint patience_until_{};
};

}  // namespace semel::engine
