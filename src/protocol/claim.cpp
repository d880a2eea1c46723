#include "protocol/claim.hpp"

namespace semel::protocol {

Claim decide(const std::optional<Record>& committed, const Fingerprint& delivered, bool resend) {
  if (!committed) return Fresh{};
  // The fingerprint is compared before anything else is told of the record: no path to its answer goes round this line.
  if (committed->fingerprint.contradicts(delivered)) return Conflict{committed->fingerprint};
  if (resend && committed->state == RecordState::rejected) return Fresh{.replaces_rejection = true};
  if (is_open(committed->state)) return InProgress{committed->state == RecordState::ambiguous};
  return Replay{committed->answer, committed->state};
}

}  // namespace semel::protocol
