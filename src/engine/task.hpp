// What a lane holds: deliveries in flight, and one task for each handler that wants one.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <semel/consumer.hpp>
#include <semel/source.hpp>
#include <semel/store.hpp>
#include <variant>
#include <vector>

#include "protocol/intake.hpp"

namespace semel::engine {

struct InFlight;

/// What became of a task, for good.
struct Fate {
  std::variant<Done, SetAside, Refused, HandedBack> verdict;
  Decision decision;
};

/// One delivery in one handler.
struct Task {
  InFlight* in_flight;
  const Handler* handler;
  std::optional<Key> key;  ///< nothing only where `set_aside` says why
  Fingerprint fingerprint;

  /// Nothing is claimed or run: only the dead letter is written.
  std::optional<protocol::Unusable> set_aside;
  /// The handler's no, after which its writes were rolled back: it is recorded without running the handler again.
  std::optional<Rejection> rejection;

  int failures = 0;   ///< the message's own, counted against RetryPolicy::attempts_max
  int postponed = 0;  ///< nobody's fault
  std::chrono::steady_clock::time_point not_before{};
  /// Committed, and its caller waits for the outside calls that it asked for.
  bool awaiting = false;
  bool own = false;  ///< it was this delivery that committed it
  std::chrono::steady_clock::time_point await_until{};
  std::chrono::steady_clock::time_point ask_at{};  ///< when the store is asked: another process may settle it

  std::optional<Fate> fate;

  const HandlerOptions& options() const { return handler->options; }
  Scope scope() const;
  RecordId id() const;
};

/// One delivery, and everything that is to happen because of it.
struct InFlight {
  Delivery delivery;
  protocol::Reading reading;
  std::size_t receiver;   ///< which of the lane's receivers it came from
  bool redelivers;        ///< its source brings it again when it is handed back
  std::string letter_id;  ///< the dead letter that is sent again; empty for a delivery
  bool resends_rejection = false;
  std::vector<std::unique_ptr<Task>> tasks{};

  bool finished() const;
};

inline Scope Task::scope() const { return {handler->options.name, in_flight->delivery.principal}; }

inline RecordId Task::id() const { return {scope(), *key}; }

}  // namespace semel::engine
