// The consumer: sources, handlers and a store, run as lanes.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <semel/answer.hpp>
#include <semel/clock.hpp>
#include <semel/handler.hpp>
#include <semel/key.hpp>
#include <semel/message.hpp>
#include <semel/observer.hpp>
#include <semel/performer.hpp>
#include <semel/probe.hpp>
#include <semel/source.hpp>
#include <semel/store.hpp>
#include <semel/work.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace semel {

struct ConsumerOptions {
  std::size_t batch_max = 100;  ///< messages a transaction
  int lanes_per_source = 2;     ///< one in all on a store with a single writer
  /// Names this process in an intent's history; empty: host name and process id.
  std::string process_name{};
  std::chrono::milliseconds shutdown_deadline{10'000};
  Clock* clock = &Clock::system();
  Probe* probe = &Probe::none();
  Observer* observer = &Observer::none();
};

/// What a run did, counted in messages.
struct Summary {
  std::uint64_t received = 0;
  std::uint64_t fresh = 0;
  std::uint64_t replays = 0;
  std::uint64_t set_aside = 0;  ///< kept in the store for people
  std::uint64_t refused = 0;    ///< a caller got the problem for an answer, and nothing is kept
  std::uint64_t handed_back = 0;
  std::uint64_t unmatched = 0;
};

namespace engine {

/// A handler with its session's type erased.
struct Handler {
  HandlerOptions options;
  /// Set for a per-message handler.
  std::function<Outcome(const Message&, Session&, WorkLog&)> run;
  /// Set for a batch handler: one outcome a message, or none for a plain Answer each.
  std::function<std::vector<Outcome>(std::span<const Message>, Session&, std::optional<std::int64_t>& applied,
                                     std::span<WorkLog>)>
      run_batch;
};

/// An effect, its performer, and what is written once its outcome is known, with the session's type erased.
struct Effect {
  EffectOptions options;
  Performer* performer = nullptr;
  /// Nothing: the outcome is recorded, and the first answer stands.
  std::function<std::optional<Answer>(const Settled&, Session&, WorkLog&)> settle;
};

/// Where publications go.
struct Target {
  TargetOptions options;
  Performer* performer = nullptr;  ///< null for a queue in the store
};

/// The engine behind Consumer; not part of the API.
class Runner {
 public:
  Runner(Store& store, ConsumerOptions options);
  ~Runner();
  void add(Handler handler);
  void add(Source& source);
  void add(EffectOptions effect, Performer& performer);
  void settle(std::string effect, std::function<std::optional<Answer>(const Settled&, Session&, WorkLog&)> handler);
  void add(TargetOptions target, Performer* performer);
  Result<Summary> run();
  Result<Summary> resend(std::span<const std::string> dead_letter_ids);
  void stop() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace engine

// clang-format 14 takes the ampersands of a concept for operators.
// clang-format off
template <class F, class S>
concept MessageHandler = std::invocable<F&, const Message&, Work<S>&>;
template <class F, class S>
concept BatchHandler = std::invocable<F&, std::span<const Message>, BatchWork<S>&>;
// clang-format on

/// Applies the effects of messages from its sources, each at most once per (scope, key), in its store.
/// `StoreT` names its session as `StoreT::SessionType`; handlers get that type.
template <class StoreT>
class Consumer {
 public:
  using SessionType = typename StoreT::SessionType;

  /// `store` outlives the consumer.
  explicit Consumer(StoreT& store, ConsumerOptions options = {}) : runner_(store, std::move(options)) {}

  /// Adds a handler: `f(const Message&, Work<SessionType>&)`, which returns nothing, an Answer, or an Outcome (for one
  /// that may reject: write the return type, `-> semel::Outcome`). It runs
  /// inside a transaction, on a lane's thread, possibly more often than it commits, and may throw.
  template <MessageHandler<SessionType> F>
  void handle(HandlerOptions options, F f) {
    engine::Handler handler{.options = std::move(options), .run = {}, .run_batch = {}};
    using Returned = std::invoke_result_t<F&, const Message&, Work<SessionType>&>;
    static_assert(std::is_void_v<Returned> || std::is_same_v<Returned, Answer> || std::is_same_v<Returned, Outcome>,
                  "a handler returns nothing, an Answer, or an Outcome; one that may reject says `-> semel::Outcome`");
    handler.run = [f = std::move(f)](const Message& message, Session& session, WorkLog& log) mutable -> Outcome {
      Work<SessionType> work(static_cast<SessionType&>(session), log);
      if constexpr (std::is_void_v<Returned>) {
        f(message, work);
        return Answer{};
      } else {
        return f(message, work);
      }
    };
    runner_.add(std::move(handler));
  }

  /// Adds a batch handler: `f(std::span<const Message>, BatchWork<SessionType>&)`, which returns nothing or one Outcome
  /// a message. It gets all fresh messages of a batch at once; no key is there twice.
  template <BatchHandler<SessionType> F>
  void handle_batch(HandlerOptions options, F f) {
    engine::Handler handler{.options = std::move(options), .run = {}, .run_batch = {}};
    handler.run_batch = [f = std::move(f)](std::span<const Message> messages, Session& session,
                                           std::optional<std::int64_t>& applied,
                                           std::span<WorkLog> logs) mutable -> std::vector<Outcome> {
      BatchWork<SessionType> work(static_cast<SessionType&>(session), applied, logs);
      if constexpr (std::is_void_v<decltype(f(messages, work))>) {
        f(messages, work);
        return {};
      } else {
        return f(messages, work);
      }
    };
    runner_.add(std::move(handler));
  }

  /// Says who makes the calls of an effect that handlers intend by its name. `performer` outlives the consumer, and
  /// makes the calls of one effect or of several.
  void perform(EffectOptions effect, Performer& performer) { runner_.add(std::move(effect), performer); }

  /// Says what is written once the outcome of an effect's call is known, for good or ill:
  /// `f(const Settled&, SettleWork<SessionType>&)`, which returns nothing (the answer stands), an Answer, or an
  /// optional one. It runs inside the transaction that commits the outcome, possibly more often than that commits.
  template <class F>
  void settle(std::string effect, F f) {
    runner_.settle(
        std::move(effect),
        [f = std::move(f)](const Settled& settled, Session& session, WorkLog& log) mutable -> std::optional<Answer> {
          SettleWork<SessionType> work(static_cast<SessionType&>(session), log);
          if constexpr (std::is_void_v<decltype(f(settled, work))>) {
            f(settled, work);
            return std::nullopt;
          } else {
            return f(settled, work);
          }
        });
  }

  /// Says who sends the publications to a target of this name. `performer` outlives the consumer.
  void publish_to(TargetOptions target, Performer& performer) { runner_.add(std::move(target), &performer); }
  /// Publications to this name go into a queue in the store, from which any handler or SQL client takes them.
  void publish_to_queue(std::string name) { runner_.add({.name = std::move(name)}, nullptr); }

  /// `source` outlives the consumer.
  void consume(Source& source) { runner_.add(source); }

  /// Checks the store, then runs until every source has ended or `stop` is called. Errors: what `Store::check` refuses,
  /// a store that is unreachable at the start, options that contradict each other. Once started it rides out what
  /// passes by itself.
  Result<Summary> run() { return runner_.run(); }

  /// Sends dead letters through their handlers again and marks "retried" those that got through; the others wait on.
  Result<Summary> resend(std::span<const std::string> dead_letter_ids) { return runner_.resend(dead_letter_ids); }

  /// Stops receiving, finishes what is open, settles, and lets `run` return. Any thread; again is harmless.
  void stop() noexcept { runner_.stop(); }

 private:
  engine::Runner runner_;
};

}  // namespace semel
