// The contract of a source: where deliveries come from, and who is told what became of them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <semel/answer.hpp>
#include <semel/delivery.hpp>
#include <semel/result.hpp>
#include <string>
#include <variant>
#include <vector>

namespace semel {

/// Wakes a lane: a source rings it when a delivery has arrived or the source has ended. Thread-safe.
class Doorbell {
 public:
  void ring();
  /// Returns when it was rung since the last wait, or after `timeout`.
  void wait(std::chrono::milliseconds timeout);
  /// Whether it was rung since the last wait: for whoever turns duties without a thread of their own.
  bool is_ringing() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable rung_;
  bool ringing_ = false;
};

/// The effect is durable, or was before: acknowledge, and give the answer to whoever waits.
struct Done {
  Answer answer;
  bool replayed = false;
  bool answer_kept = true;  ///< false: done before, the answer is no longer kept
};
/// Durably set aside in the store: acknowledge.
struct SetAside {
  Error why;
};
/// Cannot be processed, and a caller waits: answer with the problem, keep nothing.
struct Refused {
  Error why;
};
/// Not processed: deliver again, no sooner than after `delay`.
struct HandedBack {
  Error why;
  std::chrono::milliseconds delay{0};
};

struct Settlement {
  Receipt receipt;
  std::variant<Done, SetAside, Refused, HandedBack> verdict;
};

struct Batch {
  std::vector<Delivery> deliveries;
  bool ended = false;  ///< nothing more will ever come from this receiver
};

/// One lane's end of a source. One thread at a time; `receive` and `settle` never wait for the other side.
///
///  1. `receive` returns at once with at most `count_max` deliveries, in order; nothing where none has arrived.
///     The doorbell is rung after an arrival, so that a lane that found nothing and waits is woken.
///  2. Every delivery is settled exactly once, by its receipt; in any order. A delivery that is not settled when the
///     receiver is destroyed is delivered again (or its caller sees the connection end).
///  3. `settle` with Done or SetAside acknowledges; a failed acknowledgement is the source's to log and to bear: the
///     next delivery is a replay.
///  4. HandedBack where the source `redelivers`: the message comes again. Others never get it: the lane retries.
///  5. After `stop` no new delivery is returned but those already taken may still be settled.
class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual Result<Batch> receive(std::size_t count_max) = 0;
  virtual void settle(std::vector<Settlement> settlements) = 0;
  virtual void stop() = 0;
};

struct SourceTraits {
  bool redelivers = true;  ///< a message handed back comes again; else the lane keeps it and retries in place
  bool ends = false;       ///< it comes to an end by itself (a file)
  bool ordered = false;    ///< its order counts: one lane takes all of it
  std::chrono::milliseconds poll_every{0};  ///< it cannot ring: an idle lane asks it this often
};

/// Outlives its receivers. `name` and `traits` are thread-safe.
class Source {
 public:
  virtual ~Source() = default;
  virtual const std::string& name() const = 0;
  virtual SourceTraits traits() const = 0;
  /// Starts delivering to one more lane; `bell` outlives the receiver.
  virtual Result<std::unique_ptr<Receiver>> open(Doorbell& bell) = 0;
};

}  // namespace semel
