// An operator's word, written down as an outcome is: by the protocol, and by the token.
#include <semel/resolve.hpp>

#include "protocol/intent.hpp"

namespace semel {
namespace {

Error refused(const IntentId& id, const std::string& why) {
  return fix_call(ErrorCode::resolution_refused, "intent " + id.hex + ": " + why);
}

Result<void> check(const ResolutionRequest& request) {
  if (request.by.empty() || request.why.empty())
    return refused(request.id, "say who resolves it, and why: both are kept with it");
  if (request.resolution == Resolution::happened && request.reference.empty())
    return refused(request.id, "say which one happened: the provider's own id");
  if (request.resolution != Resolution::happened && !request.reference.empty())
    return refused(request.id, "a reference is the provider's id of what happened");
  return {};
}

/// Why an intent takes no resolution.
std::string why_not(const IntentStatus& status) {
  if (status.state == IntentState::started)
    return "its call is under way (attempt " + std::to_string(status.attempt) + "); nobody is asked about it yet";
  return "it has " + std::string(intent_state_name(status.state)) + ", and nothing contradicts that";
}

IntentChange change_of(const Intent& intent, const IntentStatus& to, const ResolutionRequest& request) {
  IntentChange change{.id = intent.id,
                      .expected_attempt = intent.status.attempt,
                      .expected_states = {intent.status.state},
                      .to = to,
                      .failures = is_open(to.state) ? intent.failures : 0};
  change.event = IntentEvent{.kind = "resolved",
                             .attempt = intent.status.attempt,
                             .by = request.by,
                             .detail = std::string(resolution_name(request.resolution)) + ": " + request.why};
  // An outcome that was settled stands; the operator's word is evidence beside it.
  CallOutcome word{.reference = request.reference,
                   .answer = {.status = 0},
                   .detail = std::string(resolution_name(request.resolution)) + ", says " + request.by};
  if (is_open(intent.status.state) && !is_open(to.state)) change.outcome = word;
  if (request.resolution == Resolution::happened) change.event->evidence = std::move(word);
  return change;
}

/// Inside a transaction.
Result<IntentStatus> write(Session& session, const ResolutionRequest& request) {
  auto& ledger = session.ledger();
  const auto found = ledger.find(request.id);
  if (!found) return found.error();
  if (!*found) return refused(request.id, "there is none");
  const auto& intent = **found;
  const auto to = protocol::after_resolution(intent.status, intent.lease_ran_out, request.resolution);
  if (!to) return refused(request.id, why_not(intent.status));
  const auto change = change_of(intent, *to, request);
  const auto applied = ledger.change(std::span(&change, 1));
  if (!applied) return applied.error();
  if (!applied->front())
    return Error{Remedy::reread, Certainty::not_applied, ErrorCode::lost_race,
                 "intent " + request.id.hex + " has moved on meanwhile; look again"};
  const RecordUpdate update{.id = intent.record, .answer = std::nullopt, .retention = request.retention};
  const auto refreshed = ledger.refresh(std::span(&update, 1));
  if (!refreshed) return refreshed.error();
  return *to;
}

}  // namespace

Result<IntentStatus> resolve(Store& store, const ResolutionRequest& request) {
  if (auto checked = check(request); !checked) return checked.error();
  auto session = store.open_session();
  if (!session) return std::move(session).error();
  if (auto begun = (*session)->begin(); !begun) return begun.error();
  auto status = write(**session, request);
  if (!status) {
    (*session)->rollback();
    return status;
  }
  if (auto committed = (*session)->commit(); !committed) return committed.error();
  return status;
}

}  // namespace semel
