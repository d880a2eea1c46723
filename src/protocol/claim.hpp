// What a claim decides: fresh, replay, conflict or in progress. A pure function of what is committed and what was
// delivered.
#pragma once

#include <optional>
#include <semel/answer.hpp>
#include <semel/fingerprint.hpp>
#include <semel/store.hpp>
#include <variant>

namespace semel::protocol {

/// No record is committed: this transaction may run the handler, and commits only if it wins the key.
struct Fresh {
  bool replaces_rejection = false;
};
/// Done before. `answer` is nothing where it is no longer kept.
struct Replay {
  std::optional<Answer> answer;
  RecordState state = RecordState::completed;
};
/// The key belongs to another message.
struct Conflict {
  Fingerprint recorded;
};
/// Committed, and an outside call of it has no settled outcome yet.
struct InProgress {
  bool ambiguous = false;  ///< an operator is asked
};
using Claim = std::variant<Fresh, Replay, Conflict, InProgress>;

/// `resend`: an operator sends a message again that was rejected before.
Claim decide(const std::optional<Record>& committed, const Fingerprint& delivered, bool resend);

}  // namespace semel::protocol
