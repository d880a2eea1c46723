// What a handler may do inside the claim's transaction.
#pragma once

#include <cstdint>
#include <optional>
#include <semel/intent.hpp>
#include <semel/message.hpp>
#include <semel/outbox.hpp>
#include <semel/sql.hpp>
#include <span>
#include <string_view>
#include <vector>

namespace semel {

/// Turns a C++ value into a parameter. Text is `std::string`, bytes are Blob, nothing is `nullptr`.
template <class T>
Value to_value(T&& value) {
  using U = std::decay_t<T>;
  if constexpr (std::is_same_v<U, bool>)
    return Value{std::in_place_type<bool>, value};
  else if constexpr (std::is_integral_v<U>)
    return Value{std::in_place_type<std::int64_t>, static_cast<std::int64_t>(value)};
  else if constexpr (std::is_convertible_v<T, std::string_view>)
    return Value{std::in_place_type<std::string>, std::string_view(value)};
  else
    return Value(std::forward<T>(value));
}

/// What a handler has done and asked for; the engine reads it when the handler has returned.
struct WorkLog {
  bool wrote = false;
  std::optional<bool> applied{};            ///< what `apply` said
  std::vector<Intention> intentions{};      ///< in the order asked
  std::vector<Publication> publications{};  ///< in the order asked
  std::optional<Compensation> compensation{};
  bool forget = false;
};

/// A handler's hand on its transaction. `S` is the store's session type. Errors are thrown as Failure, which the
/// engine catches: the message's writes are rolled back, and it is tried again or set aside.
template <class S>
class Work {
 public:
  Work(S& session, WorkLog& log) : session_(session), log_(log) {}

  /// A write that commits with the claim. May be sent without waiting.
  template <class... Parameters>
  void execute(std::string_view sql, Parameters&&... parameters) {
    log_.wrote = true;
    const Value values[] = {to_value(std::forward<Parameters>(parameters))..., Value{}};
    session_.execute(sql, std::span(values, sizeof...(parameters))).value();
  }

  /// The guarding write of a `unique` or `version` handler: false where it changed no row, so that the message was
  /// applied before (or is out of date) and the handler must write nothing else.
  template <class... Parameters>
  [[nodiscard]] bool apply(std::string_view sql, Parameters&&... parameters) {
    log_.wrote = true;
    const Value values[] = {to_value(std::forward<Parameters>(parameters))..., Value{}};
    log_.applied = session_.execute_counted(sql, std::span(values, sizeof...(parameters))).value() > 0;
    return *log_.applied;
  }

  /// The same two with parameters that are counted at run time.
  void execute(std::string_view sql, std::span<const Value> parameters) {
    log_.wrote = true;
    session_.execute(sql, parameters).value();
  }
  [[nodiscard]] bool apply(std::string_view sql, std::span<const Value> parameters) {
    log_.wrote = true;
    log_.applied = session_.execute_counted(sql, parameters).value() > 0;
    return *log_.applied;
  }

  /// A read inside the transaction.
  template <class... Parameters>
  Rows query(std::string_view sql, Parameters&&... parameters) {
    const Value values[] = {to_value(std::forward<Parameters>(parameters))..., Value{}};
    return session_.query(sql, std::span(values, sizeof...(parameters))).value();
  }

  /// Has an outside system called after the commit, by the effect's performer; what comes of it goes to the effect's
  /// settle handler. Needs the guard `record`. Until it is settled the message counts as in progress.
  void intend(Intention intention) { log_.intentions.push_back(std::move(intention)); }

  /// Sends a message after the commit, at least once, with an id by which its receiver can tell a repeat. Needs the
  /// guard `record`.
  void publish(Publication publication) { log_.publications.push_back(std::move(publication)); }

  /// The store's session itself. Whatever is written through it must be of this transaction.
  S& session() {
    log_.wrote = true;
    return session_;
  }

 protected:
  WorkLog& log() { return log_; }

 private:
  S& session_;
  WorkLog& log_;
};

/// What a settle handler is told: the outcome is known, and is committed together with what the handler writes.
class Settled {
 public:
  Settled(const Message& message, const Intent& intent, const CallOutcome& outcome)
      : message_(message), intent_(intent), outcome_(outcome) {}

  /// The message that it began with.
  const Message& message() const { return message_; }
  /// Its state is succeeded, failed, or abandoned by an operator.
  const Intent& intent() const { return intent_; }
  const CallOutcome& outcome() const { return outcome_; }
  bool succeeded() const { return intent_.status.state == IntentState::succeeded; }

 private:
  const Message& message_;
  const Intent& intent_;
  const CallOutcome& outcome_;
};

/// A settle handler's hand on its transaction. What it intends is the next step of the chain.
template <class S>
class SettleWork : public Work<S> {
 public:
  using Work<S>::Work;

  /// How the effect that has just succeeded is undone, should a later step of its chain fail for good.
  void compensate_with(Compensation compensation) { this->log().compensation = std::move(compensation); }

  /// Lets go of the message's record together with this answer: the same message may come again and is then fresh. Only
  /// where it is certain that no outside effect of the message has happened.
  void forget() { this->log().forget = true; }
};

/// A batch handler's hand on its transaction: one set-based write for all fresh messages.
template <class S>
class BatchWork {
 public:
  /// `logs` has one entry a message.
  BatchWork(S& session, std::optional<std::int64_t>& applied, std::span<WorkLog> logs)
      : session_(session), applied_(applied), logs_(logs) {}

  /// One statement over all messages; `columns` hold one value a message each. Says how many rows changed; with
  /// the `unique` and `version` guards the rest count as replays.
  std::int64_t execute_set(std::string_view sql, const std::vector<std::vector<Value>>& columns) {
    const auto count = session_.execute_set(sql, columns).value();
    if (!applied_) applied_ = count;
    return count;
  }

  /// As Work's, for the message with this place in the batch.
  void intend(std::size_t message, Intention intention) { logs_[message].intentions.push_back(std::move(intention)); }
  void publish(std::size_t message, Publication publication) {
    logs_[message].publications.push_back(std::move(publication));
  }

  S& session() { return session_; }

 private:
  S& session_;
  std::optional<std::int64_t>& applied_;
  std::span<WorkLog> logs_;
};

}  // namespace semel
