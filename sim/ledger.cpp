// Intents of the simulated store: see <semel/ledger.hpp>.
#include <algorithm>

#include "rows.hpp"
#include "session.hpp"

namespace semel::sim {
namespace {

std::string place_of(const IntentStatus& status) {
  return std::string(intent_state_name(status.state)) + (status.doubtful ? ", in doubt" : "") +
         (status.settled ? ", settled" : "") + (status.flagged ? ", flagged" : "");
}

class SimulatedLedger final : public Ledger {
 public:
  explicit SimulatedLedger(Connection& connection) : connection_(connection), database_(connection.database()) {}

  Result<void> intend(std::span<const Intent> intents) override;
  Result<std::vector<Intent>> take(std::span<const std::string> effects, std::size_t count_max) override;
  Result<std::vector<bool>> change(std::span<const IntentChange> changes) override;
  Result<std::vector<bool>> renew(std::span<const std::pair<IntentId, int>> attempts, milliseconds lease) override;
  Result<void> note(const IntentId& id, const IntentEvent& event) override;
  Result<std::vector<Intent>> intents_of(const RecordId& record) override;
  Result<std::optional<Intent>> find(const IntentId& id) override;
  Result<std::vector<std::optional<RecordState>>> refresh(std::span<const RecordUpdate> updates) override;

 private:
  Intent read(const IntentRow& row) const { return read_intent(row, database_.now(), ahead()); }
  milliseconds ahead() const {
    return connection_.host().has(Mutant::lease_by_local_clock) ? connection_.host().skew() : milliseconds(0);
  }
  Result<void> append(const Writer& writer, const IntentId& id, const IntentEvent& event);
  Result<bool> change_one(const Writer& writer, const IntentChange& change);
  Result<std::optional<RecordState>> refresh_one(const Writer& writer, const RecordUpdate& update);

  Connection& connection_;
  Database& database_;
};

Result<void> SimulatedLedger::intend(std::span<const Intent> intents) {
  return connection_.run("intend", [&](const Writer& writer) -> Result<void> {
    for (const auto& intent : intents) {
      auto slot = database_.intents.lock(intent.id.hex, writer);
      if (!slot) return slot.error();
      if (**slot)
        return Error{Remedy::reread, Certainty::not_applied, ErrorCode::lost_race, "the intent is there already"};
      auto written = intent;
      if (connection_.host().has(Mutant::start_not_durable)) written.status = {};
      **slot = make_intent_row(written, database_.next_number(), database_.now());
    }
    return {};
  });
}

Result<std::vector<Intent>> SimulatedLedger::take(std::span<const std::string> effects, std::size_t count_max) {
  return connection_.run("take intents", [&](const Writer& writer) -> Result<std::vector<Intent>> {
    const auto now = database_.now();
    std::vector<std::pair<std::pair<milliseconds, std::int64_t>, std::string>> due;
    database_.intents.each(writer, [&](const std::string& id, const IntentRow& row) {
      const bool started = row.intent.status.state == IntentState::started;
      const bool is_due = row.due_at && *row.due_at <= now + (started ? ahead() : milliseconds(0));
      const bool wanted = std::find(effects.begin(), effects.end(), row.intent.effect) != effects.end();
      if (is_due && wanted && !database_.intents.is_locked_by_another(id, writer))
        due.push_back({{*row.due_at, row.number}, id});
    });
    std::sort(due.begin(), due.end());
    if (due.size() > count_max) due.resize(count_max);
    std::vector<Intent> taken;
    for (const auto& [at, id] : due) {
      auto slot = database_.intents.lock(id, writer);
      if (!slot) return slot.error();
      if (**slot) taken.push_back(read(***slot));
    }
    return taken;
  });
}

Result<void> SimulatedLedger::append(const Writer& writer, const IntentId& id, const IntentEvent& event) {
  auto slot = database_.events.lock(database_.next_number(), writer);
  if (!slot) return slot.error();
  **slot = EventRow{id, event};
  (**slot)->event.at = time_of(database_.now());
  return {};
}

Result<bool> SimulatedLedger::change_one(const Writer& writer, const IntentChange& change) {
  const bool fenced = !connection_.host().has(Mutant::no_fence_on_completion);
  const auto fits = [&](const IntentRow& row) {
    const auto& status = row.intent.status;
    const auto& states = change.expected_states;
    if (!fenced) return true;
    return status.attempt == change.expected_attempt &&
           std::find(states.begin(), states.end(), status.state) != states.end();
  };
  const auto* seen = database_.intents.find(change.id.hex, writer);
  if (!seen || !fits(*seen)) return false;
  const bool starts = change.to.state == IntentState::started;
  if (starts && connection_.host().has(Mutant::start_not_durable)) return true;
  if (change.to.settled && connection_.host().has(Mutant::settled_outside_its_transaction)) {
    const auto own = database_.begin(connection_.host(), milliseconds(300));
    auto slot = database_.intents.lock_seen(change.id.hex, own);
    if (slot && *slot) apply_change(***slot, change, database_.now());
    database_.end(own, true);
    return true;
  }
  auto slot = database_.intents.lock_seen(change.id.hex, writer);
  if (!slot) return slot.error();
  if (!*slot || !fits(***slot)) return false;
  connection_.host().cover("intent " + place_of((**slot)->intent.status) + " to " + place_of(change.to));
  apply_change(***slot, change, database_.now());
  if (!change.event) return true;
  if (auto appended = append(writer, change.id, *change.event); !appended) return appended.error();
  return true;
}

Result<std::vector<bool>> SimulatedLedger::change(std::span<const IntentChange> changes) {
  return connection_.run("change intents", [&](const Writer& writer) -> Result<std::vector<bool>> {
    std::vector<bool> applied;
    for (const auto& change : changes) {
      const auto one = change_one(writer, change);
      if (!one) return one.error();
      applied.push_back(*one);
      connection_.host().say([&] {
        return "  intent " + change.id.hex.substr(0, 6) + " to " + std::string(intent_state_name(change.to.state)) +
               " attempt " + std::to_string(change.to.attempt) + (change.to.doubtful ? " doubtful" : "") +
               (change.to.settled ? " settled" : "") + (change.to.flagged ? " flagged" : "") +
               (change.event ? " (" + change.event->kind + ")" : "") + (*one ? "" : ": not as expected");
      });
    }
    return applied;
  });
}

Result<std::vector<bool>> SimulatedLedger::renew(std::span<const std::pair<IntentId, int>> attempts,
                                                 milliseconds lease) {
  return connection_.run("renew leases", [&](const Writer& writer) -> Result<std::vector<bool>> {
    std::vector<bool> renewed;
    for (const auto& [id, attempt] : attempts) {
      auto slot = database_.intents.lock_seen(id.hex, writer);
      if (!slot) return slot.error();
      const auto* row = *slot ? &***slot : nullptr;
      const bool current =
          row && row->intent.status.attempt == attempt && row->intent.status.state == IntentState::started;
      if (current) (**slot)->due_at = database_.now() + bounded(lease);
      renewed.push_back(current);
    }
    return renewed;
  });
}

Result<void> SimulatedLedger::note(const IntentId& id, const IntentEvent& event) {
  return connection_.run("note", [&](const Writer& writer) -> Result<void> {
    if (!database_.intents.find(id.hex, writer)) return {};
    return append(writer, id, event);
  });
}

Result<std::vector<Intent>> SimulatedLedger::intents_of(const RecordId& record) {
  return connection_.run("intents of a record", [&](const Writer& writer) -> Result<std::vector<Intent>> {
    std::vector<std::pair<std::pair<int, std::int64_t>, Intent>> found;
    database_.intents.each(writer, [&](const std::string&, const IntentRow& row) {
      if (row.intent.record == record) found.push_back({{row.intent.step, row.number}, read(row)});
    });
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Intent> intents;
    for (auto& [place, intent] : found) intents.push_back(std::move(intent));
    return intents;
  });
}

Result<std::optional<Intent>> SimulatedLedger::find(const IntentId& id) {
  return connection_.run("find an intent", [&](const Writer& writer) -> Result<std::optional<Intent>> {
    if (connection_.host().has(Mutant::late_outcome_dropped)) return std::optional<Intent>();
    const auto* row = database_.intents.find(id.hex, writer);
    return row ? std::optional(read(*row)) : std::optional<Intent>();
  });
}

Result<std::optional<RecordState>> SimulatedLedger::refresh_one(const Writer& writer, const RecordUpdate& update) {
  auto slot = database_.records.lock_seen(update.id, writer);
  if (!slot) return slot.error();
  if (!*slot) return std::optional<RecordState>();
  auto& row = ***slot;
  // Only now: what whoever held the row has committed is seen.
  int open = 0;
  database_.intents.each(writer, [&](const std::string&, const IntentRow& one) {
    if (one.intent.record != update.id) return;
    const auto& status = one.intent.status;
    if (status.state == IntentState::ambiguous || (status.flagged && is_open(status.state)))
      open = 2;
    else if (is_open(status.state) || !status.settled)
      open = std::max(open, 1);
  });
  if (update.answer_dropped) row.record.answer.reset();
  if (update.answer && !connection_.host().has(Mutant::answer_not_stored)) row.record.answer = update.answer;
  if (open > 0)
    row.expires_at = milliseconds::max();
  else if (row.open > 0)
    row.expires_at = database_.now() + bounded(std::min<milliseconds>(update.retention, std::chrono::years(200)));
  row.open = open;
  return std::optional(state_of(row));
}

Result<std::vector<std::optional<RecordState>>> SimulatedLedger::refresh(std::span<const RecordUpdate> updates) {
  return connection_.run("refresh", [&](const Writer& writer) -> Result<std::vector<std::optional<RecordState>>> {
    std::vector<std::optional<RecordState>> states;
    for (const auto& update : updates) {
      const auto state = refresh_one(writer, update);
      if (!state) return state.error();
      states.push_back(*state);
    }
    return states;
  });
}

}  // namespace

std::unique_ptr<Ledger> make_ledger(Connection& connection) { return std::make_unique<SimulatedLedger>(connection); }

}  // namespace semel::sim
