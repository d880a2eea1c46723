// What handlers may ask for after the commit, by name, and how it becomes rows.
#pragma once

#include <atomic>
#include <map>
#include <semel/consumer.hpp>
#include <semel/intent.hpp>
#include <semel/outbox.hpp>
#include <semel/result.hpp>
#include <string>
#include <vector>

namespace semel::engine {

/// The effects and targets that this consumer knows. Does not change while it runs.
struct Outside {
  Outside() = default;
  Outside(Outside&& other) noexcept { *this = std::move(other); }
  Outside& operator=(Outside&& other) noexcept {
    effects = std::move(other.effects);
    targets = std::move(other.targets);
    return *this;
  }

  std::map<std::string, Effect> effects{};
  std::map<std::string, Target> targets{};
  /// A clerk of this process makes the calls, and has room: only then is one started before it is known who makes it.
  std::atomic<bool> calls_here = true;

  bool empty() const { return effects.empty() && targets.empty(); }
  const Effect* effect(const std::string& name) const;
};

/// Where wishes come from.
struct Origin {
  RecordId record;
  const StoredMessage& message;
  const Intent* parent = nullptr;  ///< set in a settle step
};

/// Wishes as rows, in the order wished.
struct Wanted {
  std::vector<Intent> intents{};
  std::vector<Attributes> credentials{};  ///< one a intent; never stored
  std::vector<OutboxMessage> messages{};
};

/// Adds to `wanted`. Errors, remedy fix_call: effect_unknown for a name that nobody knows, handler_misused for a
/// request that is too large.
Result<void> write_out(const WorkLog& log, const Origin& origin, const Outside& outside, Wanted& wanted);

/// The intent that undoes another one.
Result<Intent> compensation_of(const Intent& compensated, const Outside& outside);

/// What a record keeps of an answer.
std::optional<Answer> answer_to_keep(const HandlerOptions& options, const Answer& answer);

StoredMessage stored_message(const Delivery& delivery);
/// As a settle step sees it.
Delivery delivery_of(const Intent& intent);

}  // namespace semel::engine
