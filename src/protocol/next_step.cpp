#include "protocol/next_step.hpp"

namespace semel::protocol {

namespace {

bool store_is_away(ErrorCode code) {
  switch (code) {
    case ErrorCode::store_unreachable:
    case ErrorCode::connection_lost:
    case ErrorCode::disk_full:
    case ErrorCode::unsafe_durability:
    case ErrorCode::schema_missing:
    case ErrorCode::schema_newer:
    case ErrorCode::store_read_only:
    case ErrorCode::store_damaged:
      return true;
    default:
      return false;
  }
}

}  // namespace

NextStep next_step(const FailedTransaction& failed) {
  const auto& [error, attributed, alone, decided_again] = failed;
  // An unknown commit is repeated only because the repetition begins with a claim, which finds the record if it is
  // there.
  const bool unclear = error.certainty == Certainty::unknown || error.remedy == Remedy::reread ||
                       error.code == ErrorCode::serialization_failure;
  if (unclear && decided_again < decide_again_max) return NextStep::decide_again;
  if (error.certainty == Certainty::unknown || store_is_away(error.code)) return NextStep::wait_for_store;
  if (unclear) return alone ? NextStep::postpone : NextStep::isolate;
  if (error.remedy == Remedy::retry_later) return alone ? NextStep::postpone : NextStep::isolate;
  // A right that is missing for our own tables is missing for every message; for the handler's it is the handler's.
  if (error.remedy == Remedy::ask_operator && !attributed) return NextStep::wait_for_store;
  return alone ? NextStep::count_failure : NextStep::isolate;
}

}  // namespace semel::protocol
