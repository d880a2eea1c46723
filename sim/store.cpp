#include "store.hpp"

#include <algorithm>
#include <array>

#include "rows.hpp"
#include "session.hpp"

namespace semel::sim {
namespace {

constexpr std::string_view migrations = "semel_migrations";
constexpr std::array versions{1, 2};

template <class Row, class Rows>
std::vector<Row> in_order(const Rows& rows) {
  std::vector<Row> all;
  rows.each(nullptr, [&](const auto&, const Row& row) { all.push_back(row); });
  std::sort(all.begin(), all.end(), [](const Row& a, const Row& b) { return a.number < b.number; });
  return all;
}

std::vector<std::int64_t> applied_versions(Database& database) {
  std::vector<std::int64_t> applied;
  const auto table = database.user_tables.find(std::string(migrations));
  if (table == database.user_tables.end()) return applied;
  table->second.rows.each(nullptr, [&](std::int64_t, const std::vector<Value>& row) {
    applied.push_back(std::get<std::int64_t>(row.front()));
  });
  return applied;
}

/// Where a listing goes on.
template <class Row, class Id>
std::int64_t number_after(const std::vector<Row>& rows, const std::string& id, Id id_of) {
  for (const auto& row : rows)
    if (id_of(row) == id) return row.number;
  return 0;
}

bool waits_for_operator(const IntentRow& row) {
  return row.intent.status.state == IntentState::ambiguous || row.intent.status.flagged;
}

}  // namespace

Result<std::vector<Finding>> SimulatedStore::check() {
  const Visit visit(host_);
  const auto applied = applied_versions(database_);
  const auto refuse = [](ErrorCode code, std::string message) {
    return std::vector<Finding>{{Finding::Severity::refuse, std::move(message), code}};
  };
  for (const auto version : versions)
    if (std::find(applied.begin(), applied.end(), version) == applied.end())
      return refuse(ErrorCode::schema_missing, "the simulated schema is missing, or older");
  if (*std::max_element(applied.begin(), applied.end()) > versions.back())
    return refuse(ErrorCode::schema_newer, "the simulated schema is newer");
  return std::vector<Finding>();
}

Result<std::vector<int>> SimulatedStore::migrate() {
  const Visit visit(host_);
  auto& table = database_.user_tables[std::string(migrations)];
  if (table.columns.empty()) table.columns = {{.name = "version", .not_null = true, .primary_key = true}};
  const auto applied = applied_versions(database_);
  std::vector<int> now;
  for (const auto version : applied)
    if (version > versions.back())
      return Error{Remedy::ask_operator, Certainty::not_applied, ErrorCode::schema_newer, "the schema is newer"};
  for (const auto version : versions) {
    if (std::find(applied.begin(), applied.end(), version) != applied.end()) continue;
    table.rows.put(database_.next_number(), {Value(std::in_place_type<std::int64_t>, version)});
    now.push_back(version);
  }
  return now;
}

Result<std::unique_ptr<Session>> SimulatedStore::open_session() {
  return std::unique_ptr<Session>(std::make_unique<SimulatedSession>(database_, host_, lock_timeout_));
}

Result<std::size_t> SimulatedStore::purge(std::size_t count_max) {
  const Visit visit(host_);
  std::vector<RecordId> gone;
  database_.records.each(nullptr, [&](const RecordId& id, const RecordRow& row) {
    bool expired = database_.counts_as_expired(row);
    if (host_.has(Mutant::record_purged_too_early)) expired = expired || !row.open;
    if (host_.has(Mutant::purge_of_an_unfinished_intent)) expired = expired || row.open;
    if (expired && gone.size() < count_max && !database_.records.is_locked_by_another(id, nullptr)) gone.push_back(id);
  });
  std::size_t removed = 0;
  for (const auto& id : gone) {
    const auto writer = database_.begin(host_, lock_timeout_);
    auto slot = database_.records.lock(id, writer);
    auto done = slot ? database_.remove_intents_of(id, writer) : Result<void>(slot.error());
    if (done) (*slot)->reset();
    database_.end(writer, done.has_value());
    removed += done.has_value();
  }
  return removed;
}

Result<std::optional<Record>> SimulatedStore::find_record(const RecordId& id) {
  const Visit visit(host_);
  const auto* row = database_.records.find(id, nullptr);
  if (!row || database_.counts_as_expired(*row)) return std::optional<Record>();
  return std::optional(read_record(*row));
}

Result<std::vector<DeadLetter>> SimulatedStore::dead_letters(const DeadLetterQuery& query) {
  const Visit visit(host_);
  auto rows = in_order<LetterRow>(database_.letters);
  const auto before = number_after(rows, query.before_id, [](const LetterRow& row) { return row.letter.id; });
  std::reverse(rows.begin(), rows.end());
  std::vector<DeadLetter> letters;
  for (const auto& row : rows) {
    const auto& letter = row.letter;
    if (letters.size() == query.count_max) break;
    if (before && row.number >= before) continue;
    if (query.waiting_only && !letter.resolution.empty()) continue;
    if (query.handler && *query.handler != letter.scope.handler) continue;
    if (query.reason && *query.reason != letter.reason) continue;
    letters.push_back(letter);
  }
  return letters;
}

Result<std::optional<DeadLetter>> SimulatedStore::dead_letter(const std::string& id) {
  const Visit visit(host_);
  const auto* row = database_.letters.find(id, nullptr);
  return row ? std::optional(row->letter) : std::optional<DeadLetter>();
}

Result<bool> SimulatedStore::resolve(const std::string& id, std::string_view resolution) {
  const Visit visit(host_);
  auto* row = database_.letters.committed(id);
  if (!row || !row->letter.resolution.empty()) return false;
  row->letter.resolution = resolution;
  return true;
}

Result<std::vector<Intent>> SimulatedStore::intents(const IntentQuery& query) {
  const Visit visit(host_);
  const auto rows = in_order<IntentRow>(database_.intents);
  const auto after = number_after(rows, query.after_id, [](const IntentRow& row) { return row.intent.id.hex; });
  const auto& states = query.states;
  std::vector<Intent> found;
  for (const auto& row : rows) {
    if (found.size() == query.count_max) break;
    if (row.number <= after) continue;
    if (!states.empty() && std::find(states.begin(), states.end(), row.intent.status.state) == states.end()) continue;
    if (query.provider && *query.provider != row.intent.provider) continue;
    if (query.effect && *query.effect != row.intent.effect) continue;
    if (row.created_at > database_.now() - query.older_than) continue;
    if (query.waiting_for_operator && !waits_for_operator(row)) continue;
    found.push_back(read_intent(row, database_.now()));
  }
  return found;
}

Result<std::vector<IntentEvent>> SimulatedStore::intent_history(const IntentId& id) {
  const Visit visit(host_);
  std::vector<IntentEvent> history;
  database_.events.each(nullptr, [&](std::int64_t, const EventRow& row) {
    if (row.intent == id) history.push_back(row.event);
  });
  return history;
}

Result<IntentCounts> SimulatedStore::intent_counts() {
  const Visit visit(host_);
  IntentCounts counts;
  std::map<IntentState, std::int64_t> by_state;
  database_.intents.each(nullptr, [&](const std::string&, const IntentRow& row) {
    const auto& status = row.intent.status;
    if (!status.settled) ++by_state[status.state];
    counts.waiting_for_operator += waits_for_operator(row);
    if (!is_open(status.state)) return;
    const auto age = std::max(milliseconds(0), database_.now() - row.created_at);
    counts.oldest_open = std::max(counts.oldest_open.value_or(age), age);
  });
  counts.by_state.assign(by_state.begin(), by_state.end());
  return counts;
}

Result<std::vector<OutboxMessage>> SimulatedStore::outbox(const OutboxQuery& query) {
  const Visit visit(host_);
  const auto rows = in_order<OutboxRow>(database_.outbox);
  const auto after = number_after(rows, query.after_id, [](const OutboxRow& row) { return row.message.id; });
  std::vector<OutboxMessage> found;
  for (const auto& row : rows) {
    if (found.size() == query.count_max) break;
    if (row.number <= after || (query.held_only && !row.message.held)) continue;
    if (query.to && *query.to != row.message.publication.to) continue;
    found.push_back(row.message);
  }
  return found;
}

Result<OutboxCounts> SimulatedStore::outbox_counts() {
  const Visit visit(host_);
  OutboxCounts counts;
  const auto now = time_of(database_.now());
  database_.outbox.each(nullptr, [&](const std::string&, const OutboxRow& row) {
    ++(row.message.held ? counts.held : counts.waiting);
    const auto age = std::chrono::duration_cast<milliseconds>(now - row.message.published_at);
    counts.oldest = std::max(counts.oldest.value_or(age), age);
  });
  return counts;
}

Result<bool> SimulatedStore::release(const std::string& publication_id) {
  const Visit visit(host_);
  auto* row = database_.outbox.committed(publication_id);
  if (!row || !row->message.held) return false;
  row->message.held = false;
  row->due_at = database_.now();
  return true;
}

Result<bool> SimulatedStore::drop(const std::string& publication_id) {
  const Visit visit(host_);
  auto* row = database_.outbox.committed(publication_id);
  if (!row || !row->message.held) return false;
  database_.outbox.erase(publication_id);
  return true;
}

Result<std::vector<QueuedMessage>> SimulatedStore::take_queued(const std::string& queue, std::size_t count_max,
                                                               milliseconds lease) {
  const Visit visit(host_);
  std::vector<QueuedMessage> taken;
  for (const auto& one : in_order<QueueRow>(database_.queue)) {
    if (taken.size() == count_max) break;
    if (one.message.publication.to != queue || one.due_at > database_.now()) continue;
    if (database_.queue.is_locked_by_another(one.message.id, nullptr)) continue;
    auto& row = *database_.queue.committed(one.message.id);
    row.due_at = database_.now() + bounded(lease);
    taken.push_back({.id = row.message.id,
                     .body = row.message.publication.body,
                     .attributes = row.message.publication.attributes,
                     .order_key = row.message.publication.order_key,
                     .receive_count = ++row.receive_count,
                     .sent_at = time_of(row.sent_at)});
  }
  return taken;
}

Result<void> SimulatedStore::end_queued(const std::string& queue, std::span<const QueueEnd> ends) {
  const Visit visit(host_);
  for (const auto& end : ends) {
    auto* row = database_.queue.committed(end.id);
    if (!row || row->receive_count != end.receive_count || row->message.publication.to != queue) continue;
    if (end.due_in)
      row->due_at = database_.now() + bounded(*end.due_in);
    else
      database_.queue.erase(end.id);
  }
  return {};
}

}  // namespace semel::sim
