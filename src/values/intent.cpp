#include <semel/intent.hpp>
#include <semel/performer.hpp>

#include "base/digest.hpp"
#include "base/encoding.hpp"
#include "values/stored_form.hpp"

namespace semel {

namespace {

/// What an id is derived from starts with its version, so that a later release can derive others.
constexpr std::string_view step_form = "\x01intent";
constexpr std::string_view compensation_form =
    "\x01"
    "compensation";

std::string id_of(std::initializer_list<std::string_view> fields) {
  return hex_encode(sha256(join_fields(fields))).substr(0, 32);
}

}  // namespace

IntentId derive_intent_id(const RecordId& record, const std::optional<IntentId>& parent, int ordinal) {
  return {id_of({step_form, record_digest(record.scope, record.key).view(), parent ? parent->hex : std::string(),
                 std::to_string(ordinal)})};
}

IntentId derive_compensation_id(const IntentId& compensated) { return {id_of({compensation_form, compensated.hex})}; }

std::string idempotency_key_of(const IntentId& id) {
  std::string key;
  for (std::size_t i = 0; i < id.hex.size(); ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) key += '-';
    key += id.hex[i];
  }
  return key;
}

std::string_view intent_state_name(IntentState state) {
  switch (state) {
    case IntentState::pending:
      return "pending";
    case IntentState::started:
      return "started";
    case IntentState::succeeded:
      return "succeeded";
    case IntentState::failed:
      return "failed";
    case IntentState::ambiguous:
      return "ambiguous";
    case IntentState::abandoned:
      return "abandoned";
  }
  return {};
}

bool is_open(IntentState state) {
  return state == IntentState::pending || state == IntentState::started || state == IntentState::ambiguous;
}

std::string_view resolution_name(Resolution resolution) {
  switch (resolution) {
    case Resolution::happened:
      return "happened";
    case Resolution::did_not_happen:
      return "did_not_happen";
    case Resolution::abandoned:
      return "abandoned";
  }
  return {};
}

std::string_view call_verdict_name(CallVerdict verdict) {
  switch (verdict) {
    case CallVerdict::succeeded:
      return "succeeded";
    case CallVerdict::failed:
      return "failed";
    case CallVerdict::refused:
      return "refused";
    case CallVerdict::not_done:
      return "not_done";
    case CallVerdict::unknown:
      return "unknown";
    case CallVerdict::not_found:
      return "not_found";
    case CallVerdict::unfinished:
      return "unfinished";
    case CallVerdict::mismatch:
      return "mismatch";
  }
  return {};
}

}  // namespace semel
