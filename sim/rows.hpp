// How the simulated store's rows are read and changed, by the clock of its database.
#pragma once

#include "database.hpp"

namespace semel::sim {

Record read_record(const RecordRow& row);
/// `ahead`: how far the clock that judges leases is ahead of the store's; zero but for a planted bug.
Intent read_intent(const IntentRow& row, milliseconds now, milliseconds ahead = milliseconds(0));
RecordRow make_record_row(const Record& record, milliseconds now);
IntentRow make_intent_row(const Intent& intent, std::int64_t number, milliseconds now);
void apply_change(IntentRow& row, const IntentChange& change, milliseconds now);
RecordState state_of(const RecordRow& row);
milliseconds bounded(milliseconds span);
std::chrono::system_clock::time_point time_of(milliseconds at);

}  // namespace semel::sim
