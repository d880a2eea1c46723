#include "rows.hpp"

#include <algorithm>

namespace semel::sim {
namespace {

using std::chrono::system_clock;

constexpr milliseconds span_max = std::chrono::years(200);
constexpr milliseconds never = milliseconds::max();

std::optional<milliseconds> since(const std::optional<milliseconds>& at, milliseconds now) {
  if (!at) return std::nullopt;
  return std::max(milliseconds(0), now - *at);
}

/// When the intent needs something next, where it does.
std::optional<milliseconds> due_at(const IntentStatus& status, milliseconds now, std::optional<milliseconds> lease,
                                   milliseconds pause, const std::optional<milliseconds>& running_lease) {
  if (status.state == IntentState::started) {
    if (lease) return now + bounded(*lease);
    return running_lease.value_or(now);
  }
  const bool waits = status.state == IntentState::pending || (!is_open(status.state) && !status.settled);
  if (waits) return now + bounded(pause);
  return std::nullopt;
}

int open_of(RecordState state) {
  return state == RecordState::in_progress ? 1 : state == RecordState::ambiguous ? 2 : 0;
}

}  // namespace

milliseconds bounded(milliseconds span) { return std::clamp(span, -span_max, span_max); }

system_clock::time_point time_of(milliseconds at) {
  return at == never ? system_clock::time_point::max() : system_clock::time_point(at);
}

RecordState state_of(const RecordRow& row) {
  if (row.open) return row.open == 2 ? RecordState::ambiguous : RecordState::in_progress;
  return row.rejected ? RecordState::rejected : RecordState::completed;
}

Record read_record(const RecordRow& row) {
  auto record = row.record;
  record.state = state_of(row);
  record.replaces_rejection = false;
  record.recorded_at = time_of(row.recorded_at);
  record.expires_at = time_of(row.expires_at);
  record.retention = std::chrono::seconds(0);
  if (!row.open) record.retention = std::chrono::duration_cast<std::chrono::seconds>(row.expires_at - row.recorded_at);
  return record;
}

RecordRow make_record_row(const Record& record, milliseconds now) {
  RecordRow row{.record = record, .rejected = record.state == RecordState::rejected, .open = open_of(record.state)};
  row.recorded_at = now;
  const auto retention = std::clamp(record.retention, std::chrono::duration_cast<std::chrono::seconds>(-span_max),
                                    std::chrono::duration_cast<std::chrono::seconds>(span_max));
  row.expires_at = row.open ? never : now + retention;
  return row;
}

Intent read_intent(const IntentRow& row, milliseconds now, milliseconds ahead) {
  auto intent = row.intent;
  intent.lease = milliseconds(0);
  intent.created_at = time_of(row.created_at);
  intent.age = std::max(milliseconds(0), now - row.created_at);
  intent.since_started = since(row.started_at, now);
  intent.since_doubtful = since(row.doubtful_since, now);
  intent.lease_ran_out = intent.status.state == IntentState::started && row.due_at && *row.due_at <= now + ahead;
  return intent;
}

IntentRow make_intent_row(const Intent& intent, std::int64_t number, milliseconds now) {
  IntentRow row{.intent = intent, .number = number, .created_at = now};
  if (intent.status.state == IntentState::started) row.started_at = now;
  if (intent.status.doubtful) row.doubtful_since = now;
  row.due_at = due_at(intent.status, now, intent.lease, milliseconds(0), std::nullopt);
  return row;
}

void apply_change(IntentRow& row, const IntentChange& change, milliseconds now) {
  auto& intent = row.intent;
  const auto& to = change.to;
  const auto running = intent.status.state == IntentState::started ? row.due_at : std::nullopt;
  if (to.state == IntentState::started) row.started_at = row.started_at.value_or(now);
  if (to.state == IntentState::pending && !to.doubtful) row.started_at.reset();
  // Of the last attempt: a new one is in no doubt yet.
  const bool in_doubt = to.doubtful && to.attempt == intent.status.attempt;
  row.doubtful_since = in_doubt ? std::optional(row.doubtful_since.value_or(now)) : std::nullopt;
  row.due_at = due_at(to, now, change.lease, change.due_in, running);
  intent.status = to;
  intent.failures = change.failures;
  if (change.outcome) intent.outcome = change.outcome;
  if (change.compensation) intent.compensation = change.compensation;
}

}  // namespace semel::sim
