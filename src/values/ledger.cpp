#include <algorithm>
#include <semel/ledger.hpp>

namespace semel {

Result<void> Ledger::change_all(std::span<const IntentChange> changes) {
  const auto applied = change(changes);
  if (!applied) return applied.error();
  if (std::find(applied->begin(), applied->end(), false) == applied->end()) return {};
  return Error{Remedy::reread, Certainty::not_applied, ErrorCode::lost_race, "an intent has moved on"};
}

Result<void> Ledger::refresh_at_commit(std::span<const RecordUpdate> updates,
                                       std::vector<std::optional<RecordState>>& states) {
  auto refreshed = refresh(updates);
  if (!refreshed) return std::move(refreshed).error();
  states = *std::move(refreshed);
  return {};
}

}  // namespace semel
