// Requests on their way to the lanes: one bounded queue a source, shared by all its receivers.
#pragma once

#include <deque>
#include <mutex>
#include <semel/source.hpp>
#include <vector>

#include "net/http_message.hpp"

namespace semel::http {

/// A delivery and whoever waits for its answer.
struct Waiting {
  Delivery delivery;
  net::Responder responder;
};

/// Thread-safe. Every request that comes in leaves to a receiver or is answered 503.
class Intake {
 public:
  explicit Intake(std::size_t queued_max) : queued_max_(queued_max) {}

  /// Queues it and wakes the lanes; answers 503 where the queue is full or no lane will take it any more, and
  /// then returns false. Before the first lane has joined, requests wait for it.
  bool put(Delivery delivery, net::Responder responder);

  /// At most `count_max`, oldest first.
  std::vector<Waiting> take(std::size_t count_max);

  /// One more lane takes. `bell` is rung at every arrival until it leaves.
  void join(Doorbell& bell);
  /// When the last lane leaves, what waits is answered 503.
  void leave(Doorbell& bell);

 private:
  std::mutex mutex_;
  const std::size_t queued_max_;
  std::deque<Waiting> waiting_;
  std::vector<Doorbell*> bells_;
  bool closed_ = false;
  std::uint64_t last_token_ = 0;
};

}  // namespace semel::http
