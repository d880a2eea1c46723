#include <semel/ledger.hpp>

namespace semel {

Result<void> Ledger::refresh_at_commit(std::span<const RecordUpdate> updates,
                                       std::vector<std::optional<RecordState>>& states) {
  auto refreshed = refresh(updates);
  if (!refreshed) return std::move(refreshed).error();
  states = *std::move(refreshed);
  return {};
}

}  // namespace semel
