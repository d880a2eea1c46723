// What a handler may do inside the claim's transaction.
#pragma once

#include <cstdint>
#include <optional>
#include <semel/message.hpp>
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

/// A handler's hand on its transaction. `S` is the store's session type. Errors are thrown as Failure, which the
/// engine catches: the message's writes are rolled back, and it is tried again or set aside.
template <class S>
class Work {
 public:
  Work(S& session, bool& wrote, std::optional<bool>& applied) : session_(session), wrote_(wrote), applied_(applied) {}

  /// A write that commits with the claim. May be sent without waiting.
  template <class... Parameters>
  void execute(std::string_view sql, Parameters&&... parameters) {
    wrote_ = true;
    const Value values[] = {to_value(std::forward<Parameters>(parameters))..., Value{}};
    session_.execute(sql, std::span(values, sizeof...(parameters))).value();
  }

  /// The guarding write of a `unique` or `version` handler: false where it changed no row, so that the message was
  /// applied before (or is out of date) and the handler must write nothing else.
  template <class... Parameters>
  [[nodiscard]] bool apply(std::string_view sql, Parameters&&... parameters) {
    wrote_ = true;
    const Value values[] = {to_value(std::forward<Parameters>(parameters))..., Value{}};
    applied_ = session_.execute_counted(sql, std::span(values, sizeof...(parameters))).value() > 0;
    return *applied_;
  }

  /// The same two with parameters that are counted at run time.
  void execute(std::string_view sql, std::span<const Value> parameters) {
    wrote_ = true;
    session_.execute(sql, parameters).value();
  }
  [[nodiscard]] bool apply(std::string_view sql, std::span<const Value> parameters) {
    wrote_ = true;
    applied_ = session_.execute_counted(sql, parameters).value() > 0;
    return *applied_;
  }

  /// A read inside the transaction.
  template <class... Parameters>
  Rows query(std::string_view sql, Parameters&&... parameters) {
    const Value values[] = {to_value(std::forward<Parameters>(parameters))..., Value{}};
    return session_.query(sql, std::span(values, sizeof...(parameters))).value();
  }

  /// The store's session itself. Whatever is written through it must be of this transaction.
  S& session() {
    wrote_ = true;
    return session_;
  }

 private:
  S& session_;
  bool& wrote_;
  std::optional<bool>& applied_;
};

/// A batch handler's hand on its transaction: one set-based write for all fresh messages.
template <class S>
class BatchWork {
 public:
  BatchWork(S& session, std::optional<std::int64_t>& applied) : session_(session), applied_(applied) {}

  /// One statement over all messages; `columns` hold one value a message each. Says how many rows changed; with
  /// the `unique` and `version` guards the rest count as replays.
  std::int64_t execute_set(std::string_view sql, const std::vector<std::vector<Value>>& columns) {
    const auto count = session_.execute_set(sql, columns).value();
    if (!applied_) applied_ = count;
    return count;
  }

  S& session() { return session_; }

 private:
  S& session_;
  std::optional<std::int64_t>& applied_;
};

}  // namespace semel
