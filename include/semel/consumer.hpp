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
  std::function<Outcome(const Message&, Session&, bool& wrote, std::optional<bool>& applied)> run;
  /// Set for a batch handler: one outcome a message, or none for a plain Answer each.
  std::function<std::vector<Outcome>(std::span<const Message>, Session&, std::optional<std::int64_t>& applied)>
      run_batch;
};

/// The engine behind Consumer; not part of the API.
class Runner {
 public:
  Runner(Store& store, ConsumerOptions options);
  ~Runner();
  void add(Handler handler);
  void add(Source& source);
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
    handler.run = [f = std::move(f)](const Message& message, Session& session, bool& wrote,
                                     std::optional<bool>& applied) mutable -> Outcome {
      Work<SessionType> work(static_cast<SessionType&>(session), wrote, applied);
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
                                           std::optional<std::int64_t>& applied) mutable -> std::vector<Outcome> {
      BatchWork<SessionType> work(static_cast<SessionType&>(session), applied);
      if constexpr (std::is_void_v<decltype(f(messages, work))>) {
        f(messages, work);
        return {};
      } else {
        return f(messages, work);
      }
    };
    runner_.add(std::move(handler));
  }

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
