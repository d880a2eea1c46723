#include "stores/postgres/ledger.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "stores/postgres/rows.hpp"
#include "values/stored_form.hpp"

namespace semel::postgres {

namespace {

using std::chrono::milliseconds;

constexpr int number_of(IntentState state) { return static_cast<int>(state) + 1; }
static_assert(number_of(IntentState::pending) == 1 && number_of(IntentState::abandoned) == 6,
              "the numbers are those of migrations/postgres/0002");

/// As a set of bits, one a number.
template <class States>
std::int32_t bits_of(const States& states) {
  std::int32_t bits = 0;
  for (const IntentState state : states) bits |= 1 << number_of(state);
  return bits;
}

/// In the order of read_intent.
constexpr std::string_view intent_columns =
    "id, handler, principal, key, parent, compensates, step, effect, provider, reference, idempotency_key, request, "
    "compensation, message, state, attempt, doubtful, settled, flagged, outcome, failures, created_at, started_at, "
    "doubtful_since, coalesce(state = 2 AND due_at <= statement_timestamp(), false), statement_timestamp()";

/// In the words of the index intents_unfinished.
constexpr std::string_view unfinished = "(NOT settled OR flagged OR state IN (1, 2, 5))";

constexpr std::string_view intend_sql =
    "INSERT INTO {}.intents (id, record, handler, principal, key, parent, compensates, step, effect, provider, "
    "reference, idempotency_key, request, compensation, message, state, attempt, doubtful, settled, flagged, outcome, "
    "failures, created_at, started_at, doubtful_since, due_at) "
    "SELECT t.id, t.record, t.handler, t.principal, t.key, t.parent, t.compensates, t.step, t.effect, t.provider, "
    "t.reference, t.idempotency_key, t.request, t.compensation, t.message, t.state, t.attempt, t.doubtful, t.settled, "
    "t.flagged, t.outcome, t.failures, statement_timestamp(), "
    "CASE WHEN t.state = 2 THEN statement_timestamp() END, CASE WHEN t.doubtful THEN statement_timestamp() END, "
    "CASE WHEN t.state = 2 THEN statement_timestamp() + t.lease * interval '1 ms' "
    "WHEN t.state = 1 OR (t.state IN (3, 4, 6) AND NOT t.settled) THEN statement_timestamp() END "
    "FROM {rows 1-23} AS t (id, record, handler, principal, key, parent, compensates, step, effect, provider, "
    "reference, "
    "idempotency_key, request, compensation, message, state, attempt, doubtful, settled, flagged, outcome, failures, "
    "lease)";

constexpr std::string_view change_sql =
    "WITH changed AS (UPDATE {}.intents AS i SET state = w.state, attempt = w.attempt, doubtful = w.doubtful, "
    "settled = w.settled, flagged = w.flagged, failures = w.failures, outcome = coalesce(w.outcome, i.outcome), "
    "compensation = coalesce(w.compensation, i.compensation), "
    "started_at = CASE WHEN w.state = 2 THEN coalesce(i.started_at, statement_timestamp()) "
    "WHEN w.state = 1 AND NOT w.doubtful THEN NULL ELSE i.started_at END, "
    "doubtful_since = CASE WHEN w.doubtful AND w.attempt = i.attempt "
    "THEN coalesce(i.doubtful_since, statement_timestamp()) END, "
    "due_at = CASE WHEN w.state = 2 THEN coalesce(statement_timestamp() + w.lease * interval '1 ms', "
    "CASE WHEN i.state = 2 THEN i.due_at END, statement_timestamp()) "
    "WHEN w.state = 1 OR (w.state IN (3, 4, 6) AND NOT w.settled) THEN "
    "statement_timestamp() + w.pause * interval '1 ms' END "
    "FROM {rows 1-13} AS w (id, expected_attempt, expected_states, "
    "state, attempt, doubtful, settled, flagged, lease, pause, failures, outcome, compensation) "
    "WHERE w.id = i.id AND i.attempt = w.expected_attempt "
    "AND (w.expected_states >> i.state) & 1 = 1 RETURNING i.id), "
    "noted AS (INSERT INTO {}.intent_events (intent, kind, attempt, by, detail, evidence, at) "
    "SELECT e.*, statement_timestamp() FROM {rows 14-19} AS e (intent, kind, attempt, by, "
    "detail, evidence) JOIN changed ON changed.id = e.intent) ";

constexpr std::string_view those_changed = "SELECT id FROM changed";
/// The number that is none ends the transaction: invalid_text_representation, which LaneSession reads as lost_race.
constexpr std::string_view unless_all_changed =
    "SELECT CASE WHEN count(*) < {count 1} THEN (count(*) || ' intents are as expected')::integer END "
    "FROM changed";

constexpr std::string_view refresh_sql =
    "UPDATE {}.records AS r SET state = CASE WHEN its.open > 0 THEN its.open WHEN r.state = 2 THEN 2 ELSE 1 END, "
    "answer = nullif(coalesce(w.answer, r.answer), ''), expires_at = CASE WHEN its.open > 0 THEN 'infinity' "
    "WHEN r.state IN (3, 4) THEN statement_timestamp() + w.seconds * interval '1 s' ELSE r.expires_at END "
    "FROM {rows 1-3} AS w (id, answer, seconds) CROSS JOIN LATERAL ("
    "SELECT CASE WHEN bool_or(i.state = 5 OR i.flagged AND i.state IN (1, 2)) THEN 4 "
    "WHEN bool_or(i.state IN (1, 2) OR NOT i.settled) THEN 3 ELSE 0 END AS open FROM {}.intents AS i WHERE i.record = "
    "w.id) AS its "
    "WHERE r.id = w.id RETURNING r.id, r.state";

std::optional<IntentId> optional_id(const BinaryRow& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return IntentId{read_id(row.bytes(column))};
}

/// Since the time in `column`; nothing where there is none.
std::optional<milliseconds> span_since(const BinaryRow& row, int column, int now) {
  if (row.is_null(column)) return std::nullopt;
  const auto span = std::chrono::duration_cast<milliseconds>(row.time(now) - row.time(column));
  return std::max(span, milliseconds(0));
}

std::optional<std::string> stored_outcome(const std::optional<CallOutcome>& outcome) {
  return outcome ? std::optional(encode_outcome(*outcome)) : std::nullopt;
}

std::optional<std::string> stored_compensation(const std::optional<Compensation>& compensation) {
  return compensation ? std::optional(encode_compensation(*compensation)) : std::nullopt;
}

Result<std::optional<CallOutcome>> read_outcome(const BinaryRow& row, int column) {
  if (row.is_null(column)) return std::optional<CallOutcome>();
  auto outcome = decode_outcome(row.bytes(column));
  if (!outcome) return outcome.error();
  return std::optional(*std::move(outcome));
}

Result<std::optional<Compensation>> read_compensation(const BinaryRow& row, int column) {
  if (row.is_null(column)) return std::optional<Compensation>();
  auto compensation = decode_compensation(row.bytes(column));
  if (!compensation) return compensation.error();
  return std::optional(*std::move(compensation));
}

IntentStatus read_status(const BinaryRow& row, int first) {
  return {.state = static_cast<IntentState>(row.integer(first) - 1),
          .attempt = static_cast<int>(row.integer(first + 1)),
          .doubtful = row.integer(first + 2) != 0,
          .settled = row.integer(first + 3) != 0,
          .flagged = row.integer(first + 4) != 0};
}

/// In the order of intent_columns.
Result<Intent> read_intent(const BinaryRow& row) {
  enum { id, handler, principal, key, parent, compensates, step, effect, provider, reference, idempotency_key };
  enum { request = idempotency_key + 1, compensation, message, status, outcome = status + 5, failures };
  enum { created_at = failures + 1, started_at, doubtful_since, lease_ran_out, now };
  auto read_back = read_key(row.bytes(key));
  if (!read_back) return read_back.error();
  auto began_with = decode_message(row.bytes(message));
  if (!began_with) return began_with.error();
  auto known = read_outcome(row, outcome);
  if (!known) return known.error();
  auto undo = read_compensation(row, compensation);
  if (!undo) return undo.error();
  return Intent{.id = {read_id(row.bytes(id))},
                .record = {.scope = {.handler = row.bytes(handler), .principal = row.bytes(principal)},
                           .key = *std::move(read_back)},
                .parent = optional_id(row, parent),
                .compensates = optional_id(row, compensates),
                .step = static_cast<int>(row.integer(step)),
                .effect = row.bytes(effect),
                .provider = row.bytes(provider),
                .reference = row.bytes(reference),
                .idempotency_key = row.bytes(idempotency_key),
                .request = row.bytes(request),
                .compensation = *std::move(undo),
                .message = *std::move(began_with),
                .status = read_status(row, status),
                .outcome = *std::move(known),
                .failures = static_cast<int>(row.integer(failures)),
                .created_at = row.time(created_at),
                .age = span_since(row, created_at, now).value_or(milliseconds(0)),
                .since_started = span_since(row, started_at, now),
                .since_doubtful = span_since(row, doubtful_since, now),
                .lease_ran_out = row.integer(lease_ran_out) != 0};
}

Result<IntentEvent> read_event(const BinaryRow& row) {
  auto evidence = read_outcome(row, 4);
  if (!evidence) return evidence.error();
  return IntentEvent{.kind = row.bytes(0),
                     .attempt = static_cast<int>(row.integer(1)),
                     .by = row.bytes(2),
                     .detail = row.bytes(3),
                     .evidence = *std::move(evidence),
                     .at = row.time(5)};
}

/// The ids as they are stored, one an item; of `id(item)`.
template <class Items, class Id>
Result<std::vector<std::string>> stored_ids(const Items& items, Id id) {
  std::vector<std::string> ids;
  for (const auto& item : items) {
    auto bytes = stored_id(id(item));
    if (!bytes) return bytes.error();
    ids.push_back(*std::move(bytes));
  }
  return ids;
}

Result<std::vector<std::optional<std::string>>> stored_ids_of_others(std::span<const Intent> intents,
                                                                     std::optional<IntentId> Intent::*other) {
  std::vector<std::optional<std::string>> ids;
  for (const auto& intent : intents) {
    auto& id = ids.emplace_back();
    if (!(intent.*other)) continue;
    auto bytes = stored_id((intent.*other)->hex);
    if (!bytes) return bytes.error();
    id = *std::move(bytes);
  }
  return ids;
}

Result<Parameters> intent_parameters(std::span<const Intent> intents) {
  const auto ids = stored_ids(intents, [](const Intent& i) { return i.id.hex; });
  if (!ids) return ids.error();
  const auto parents = stored_ids_of_others(intents, &Intent::parent);
  if (!parents) return parents.error();
  const auto compensated = stored_ids_of_others(intents, &Intent::compensates);
  if (!compensated) return compensated.error();
  Columns columns;
  columns.uuids(*ids, std::identity());
  columns.uuids(intents, [](const Intent& i) { return record_digest(i.record.scope, i.record.key); });
  columns.bytes(intents, [](const Intent& i) { return i.record.scope.handler; });
  columns.bytes(intents, [](const Intent& i) { return i.record.scope.principal; });
  columns.bytes(intents, [](const Intent& i) { return stored_key(i.record.key); });
  columns.optional_uuids(*parents, std::identity());
  columns.optional_uuids(*compensated, std::identity());
  columns.int4s(intents, [](const Intent& i) { return i.step; });
  columns.bytes(intents, [](const Intent& i) { return i.effect; });
  columns.bytes(intents, [](const Intent& i) { return i.provider; });
  columns.bytes(intents, [](const Intent& i) { return i.reference; });
  columns.bytes(intents, [](const Intent& i) { return i.idempotency_key; });
  columns.bytes(intents, [](const Intent& i) { return i.request; });
  columns.optional_bytes(intents, [](const Intent& i) { return stored_compensation(i.compensation); });
  columns.bytes(intents, [](const Intent& i) { return encode_message(i.message); });
  columns.int4s(intents, [](const Intent& i) { return number_of(i.status.state); });
  columns.int4s(intents, [](const Intent& i) { return i.status.attempt; });
  columns.booleans(intents, [](const Intent& i) { return i.status.doubtful; });
  columns.booleans(intents, [](const Intent& i) { return i.status.settled; });
  columns.booleans(intents, [](const Intent& i) { return i.status.flagged; });
  columns.optional_bytes(intents, [](const Intent& i) { return stored_outcome(i.outcome); });
  columns.int4s(intents, [](const Intent& i) { return i.failures; });
  columns.int8s(intents, [](const Intent& i) { return bounded_ms(i.lease); });
  return std::move(columns).parameters();
}

struct Noted {
  std::string id;
  const IntentEvent* event;
};

void add_events(Columns& columns, std::span<const Noted> events) {
  columns.uuids(events, [](const Noted& n) { return n.id; });
  columns.bytes(events, [](const Noted& n) { return n.event->kind; });
  columns.int4s(events, [](const Noted& n) { return n.event->attempt; });
  columns.bytes(events, [](const Noted& n) { return n.event->by; });
  columns.bytes(events, [](const Noted& n) { return n.event->detail; });
  columns.optional_bytes(events, [](const Noted& n) { return stored_outcome(n.event->evidence); });
}

Parameters change_parameters(std::span<const IntentChange> changes, const std::vector<std::string>& ids) {
  std::vector<Noted> events;
  for (std::size_t i = 0; i < changes.size(); ++i)
    if (changes[i].event) events.push_back({ids[i], &*changes[i].event});
  Columns columns;
  columns.uuids(ids, std::identity());
  columns.int4s(changes, [](const IntentChange& c) { return c.expected_attempt; });
  columns.int4s(changes, [](const IntentChange& c) { return bits_of(c.expected_states); });
  columns.int4s(changes, [](const IntentChange& c) { return number_of(c.to.state); });
  columns.int4s(changes, [](const IntentChange& c) { return c.to.attempt; });
  columns.booleans(changes, [](const IntentChange& c) { return c.to.doubtful; });
  columns.booleans(changes, [](const IntentChange& c) { return c.to.settled; });
  columns.booleans(changes, [](const IntentChange& c) { return c.to.flagged; });
  columns.optional_int8s(
      changes, [](const IntentChange& c) { return c.lease ? std::optional(bounded_ms(*c.lease)) : std::nullopt; });
  columns.int8s(changes, [](const IntentChange& c) { return bounded_ms(c.due_in); });
  columns.int4s(changes, [](const IntentChange& c) { return c.failures; });
  columns.optional_bytes(changes, [](const IntentChange& c) { return stored_outcome(c.outcome); });
  columns.optional_bytes(changes, [](const IntentChange& c) { return stored_compensation(c.compensation); });
  add_events(columns, events);
  return std::move(columns).parameters();
}

std::vector<RecordDigest> digests_of(std::span<const RecordUpdate> updates) {
  std::vector<RecordDigest> digests;
  for (const auto& update : updates) digests.push_back(record_digest(update.id.scope, update.id.key));
  return digests;
}

Parameters refresh_parameters(std::span<const RecordUpdate> updates, std::span<const RecordDigest> digests) {
  Columns columns;
  columns.uuids(digests, std::identity());
  columns.optional_bytes(updates, stored_answer);
  columns.int8s(updates, [](const RecordUpdate& u) { return seconds_kept(u.retention); });
  return std::move(columns).parameters();
}

/// One a digest; nothing for those whose record is gone.
std::vector<std::optional<RecordState>> read_states(const PGresult* result, std::span<const RecordDigest> digests) {
  std::vector<std::optional<RecordState>> states(digests.size());
  for (int row = 0; row < PQntuples(result); ++row) {
    const BinaryRow refreshed(result, row);
    const auto id = refreshed.bytes(0);
    for (std::size_t i = 0; i < digests.size(); ++i)
      if (digests[i].view() == id) states[i] = record_state(refreshed.integer(1));
  }
  return states;
}

class ServerLedger final : public Ledger {
 public:
  ServerLedger(OpenTransaction& transaction, const LedgerStatements& statements)
      : transaction_(transaction), statements_(statements) {}

  Result<void> intend(std::span<const Intent> intents) override;
  Result<std::vector<Intent>> take(std::span<const std::string> effects, std::size_t count_max) override;
  Result<std::vector<bool>> change(std::span<const IntentChange> changes) override;
  Result<void> change_all(std::span<const IntentChange> changes) override;
  Result<std::vector<bool>> renew(std::span<const std::pair<IntentId, int>> attempts, milliseconds lease) override;
  Result<void> note(const IntentId& id, const IntentEvent& event) override;
  Result<std::vector<Intent>> intents_of(const RecordId& record) override;
  Result<std::optional<Intent>> find(const IntentId& id) override;
  Result<std::vector<std::optional<RecordState>>> refresh(std::span<const RecordUpdate> updates) override;
  Result<void> refresh_at_commit(std::span<const RecordUpdate> updates,
                                 std::vector<std::optional<RecordState>>& states) override;

 private:
  Result<void> lock_intents(const std::vector<std::string>& ids);
  Result<void> lock_records(std::span<const RecordDigest> digests);
  Result<std::vector<Intent>> read(std::string_view sql, const Parameters& parameters) {
    const auto result = transaction_.ask(sql, parameters);
    if (!result) return result.error();
    auto intents = read_all<Intent>(*result, read_intent);
    if (!intents) return transaction_.fail(intents.error());
    return intents;
  }

  OpenTransaction& transaction_;
  const LedgerStatements& statements_;
};

Result<void> ServerLedger::intend(std::span<const Intent> intents) {
  if (auto ready = transaction_.usable(); !ready || intents.empty()) return ready;
  const auto parameters = intent_parameters(intents);
  if (!parameters) return transaction_.fail(parameters.error());
  return transaction_.send(statements_.intend, intents.size(), *parameters);
}

Result<std::vector<Intent>> ServerLedger::take(std::span<const std::string> effects, std::size_t count_max) {
  Columns columns;
  columns.bytes(effects, std::identity());
  auto parameters = std::move(columns).parameters();
  parameters.add_binary(Type::int8, binary_int8(static_cast<std::int64_t>(count_max)));
  return read(statements_.take, parameters);
}

/// In one order, so that two that change the same ones cannot wait for each other.
Result<void> ServerLedger::lock_intents(const std::vector<std::string>& ids) {
  if (ids.size() < 2) return {};
  Columns columns;
  columns.uuids(ids, std::identity());
  return transaction_.send(statements_.lock, ids.size(), std::move(columns).parameters());
}

Result<std::vector<bool>> ServerLedger::change(std::span<const IntentChange> changes) {
  if (auto ready = transaction_.usable(); !ready) return ready.error();
  if (changes.empty()) return std::vector<bool>();
  const auto ids = stored_ids(changes, [](const IntentChange& c) { return c.id.hex; });
  if (!ids) return transaction_.fail(ids.error());
  if (auto locked = lock_intents(*ids); !locked) return locked.error();
  const auto result = transaction_.ask(statements_.change, changes.size(), change_parameters(changes, *ids));
  if (!result) return result.error();
  std::set<std::string> changed;
  for (int row = 0; row < PQntuples(*result); ++row) changed.insert(BinaryRow(*result, row).bytes(0));
  std::vector<bool> applied;
  for (const auto& id : *ids) applied.push_back(changed.contains(id));
  return applied;
}

Result<void> ServerLedger::change_all(std::span<const IntentChange> changes) {
  if (auto ready = transaction_.usable(); !ready || changes.empty()) return ready;
  const auto ids = stored_ids(changes, [](const IntentChange& c) { return c.id.hex; });
  if (!ids) return transaction_.fail(ids.error());
  if (auto locked = lock_intents(*ids); !locked) return locked;
  return transaction_.send(statements_.change_all, changes.size(), change_parameters(changes, *ids));
}

Result<std::vector<bool>> ServerLedger::renew(std::span<const std::pair<IntentId, int>> attempts, milliseconds lease) {
  if (auto ready = transaction_.usable(); !ready) return ready.error();
  if (attempts.empty()) return std::vector<bool>();
  const auto ids = stored_ids(attempts, [](const auto& attempt) { return attempt.first.hex; });
  if (!ids) return transaction_.fail(ids.error());
  Columns columns;
  columns.uuids(*ids, std::identity());
  columns.int4s(attempts, [](const auto& attempt) { return attempt.second; });
  auto parameters = std::move(columns).parameters();
  parameters.add_binary(Type::int8, binary_int8(bounded_ms(lease)));
  const auto result = transaction_.ask(statements_.renew, parameters);
  if (!result) return result.error();
  std::set<std::pair<std::string, std::int64_t>> renewed;
  for (int row = 0; row < PQntuples(*result); ++row)
    renewed.emplace(BinaryRow(*result, row).bytes(0), BinaryRow(*result, row).integer(1));
  std::vector<bool> prolonged;
  for (std::size_t i = 0; i < attempts.size(); ++i)
    prolonged.push_back(renewed.contains({(*ids)[i], attempts[i].second}));
  return prolonged;
}

Result<void> ServerLedger::note(const IntentId& id, const IntentEvent& event) {
  if (auto ready = transaction_.usable(); !ready) return ready;
  auto bytes = stored_id(id.hex);
  if (!bytes) return transaction_.fail(bytes.error());
  const Noted noted{*std::move(bytes), &event};
  Columns columns;
  add_events(columns, {&noted, 1});
  return transaction_.send(statements_.note, std::move(columns).parameters());
}

Result<std::vector<Intent>> ServerLedger::intents_of(const RecordId& record) {
  Parameters parameters;
  parameters.add_binary(Type::uuid, std::string(record_digest(record.scope, record.key).view()));
  return read(statements_.of_record, parameters);
}

Result<std::optional<Intent>> ServerLedger::find(const IntentId& id) {
  if (auto ready = transaction_.usable(); !ready) return ready.error();
  const auto bytes = stored_id(id.hex);
  if (!bytes) return std::optional<Intent>();
  Parameters parameters;
  parameters.add_binary(Type::uuid, *bytes);
  auto found = read(statements_.find, parameters);
  if (!found) return found.error();
  return found->empty() ? std::optional<Intent>() : std::optional(std::move(found->front()));
}

/// The rows first, and only then the intents in a statement of its own: it sees what whoever held a row before us has
/// committed. In one statement, two settlements of two intents could each see the other's as open.
Result<void> ServerLedger::lock_records(std::span<const RecordDigest> digests) {
  return transaction_.send(statements_.lock_records, digests.size(), digest_parameters(digests));
}

Result<std::vector<std::optional<RecordState>>> ServerLedger::refresh(std::span<const RecordUpdate> updates) {
  if (auto ready = transaction_.usable(); !ready) return ready.error();
  if (updates.empty()) return std::vector<std::optional<RecordState>>();
  const auto digests = digests_of(updates);
  if (auto locked = lock_records(digests); !locked) return locked.error();
  const auto result = transaction_.ask(statements_.refresh, updates.size(), refresh_parameters(updates, digests));
  if (!result) return result.error();
  return read_states(*result, digests);
}

Result<void> ServerLedger::refresh_at_commit(std::span<const RecordUpdate> updates,
                                             std::vector<std::optional<RecordState>>& states) {
  states.clear();
  if (auto ready = transaction_.usable(); !ready || updates.empty()) return ready;
  auto digests = digests_of(updates);
  if (auto locked = lock_records(digests); !locked) return locked;
  const auto parameters = refresh_parameters(updates, digests);
  return transaction_.ask_at_commit(
      statements_.refresh, updates.size(), parameters,
      [&states, of = std::move(digests)](const PGresult* result) { states = read_states(result, of); });
}

}  // namespace

LedgerStatements::LedgerStatements(const std::string& schema) {
  const auto select = "SELECT " + std::string(intent_columns) + " FROM {}.intents ";
  intend = ArrayStatement(intend_sql, schema, ArrayStatement::Many::kept);
  take = in_schema(select +
                       "WHERE due_at <= statement_timestamp() AND effect = ANY ($1) ORDER BY due_at, number "
                       "LIMIT $2 FOR UPDATE SKIP LOCKED",
                   schema);
  lock = ArrayStatement("SELECT id FROM {}.intents WHERE id {any 1} ORDER BY id FOR UPDATE", schema);
  change = ArrayStatement(std::string(change_sql) + std::string(those_changed), schema);
  change_all = ArrayStatement(std::string(change_sql) + std::string(unless_all_changed), schema);
  renew = in_schema(
      "WITH locked AS MATERIALIZED (SELECT id FROM {}.intents WHERE id = ANY ($1) ORDER BY id FOR UPDATE) "
      "UPDATE {}.intents AS i SET due_at = statement_timestamp() + $3 * interval '1 ms' "
      "FROM unnest($1, $2) AS w (id, attempt), locked "
      "WHERE locked.id = i.id AND w.id = i.id AND i.attempt = w.attempt AND i.state = 2 RETURNING i.id, i.attempt",
      schema);
  // Of an intent that is gone nothing is kept.
  note = in_schema(
      "INSERT INTO {}.intent_events (intent, kind, attempt, by, detail, evidence, at) "
      "SELECT e.*, statement_timestamp() FROM unnest($1, $2, $3, $4, $5, $6) AS e (intent, kind, attempt, by, detail, "
      "evidence) WHERE EXISTS (SELECT FROM {}.intents AS i WHERE i.id = e.intent)",
      schema);
  of_record = in_schema(select + "WHERE record = $1 ORDER BY step, number", schema);
  find = in_schema(select + "WHERE id = $1", schema);
  lock_records = ArrayStatement("SELECT id FROM {}.records WHERE id {any 1} ORDER BY id FOR UPDATE", schema);
  refresh = ArrayStatement(refresh_sql, schema);
  // An id that has gone meanwhile is followed by everything: a page may then repeat, but skips none.
  const auto list_all =
      select +
      "WHERE ($1 = 0 OR ($1 >> state) & 1 = 1) AND ($2::bytea IS NULL OR provider = $2) AND ($3::bytea "
      "IS NULL OR effect = $3) AND created_at <= statement_timestamp() - $4 * interval '1 ms' AND "
      "number > coalesce((SELECT number FROM {}.intents WHERE id = $5), 0)";
  const std::string_view page = " ORDER BY number LIMIT $6";
  list = in_schema(list_all + std::string(page), schema);
  list_waiting =
      in_schema(list_all + " AND (state = 5 OR flagged) AND " + std::string(unfinished) + std::string(page), schema);
  history = in_schema(
      "SELECT kind, attempt, by, detail, evidence, at FROM {}.intent_events WHERE intent = $1 ORDER BY number", schema);
  count = in_schema(
      "SELECT state, count(*) FILTER (WHERE NOT settled), count(*) FILTER (WHERE state = 5 OR flagged), "
      "min(created_at) FILTER (WHERE state IN (1, 2, 5)), statement_timestamp() FROM {}.intents WHERE " +
          std::string(unfinished) + " GROUP BY state ORDER BY state",
      schema);
}

std::unique_ptr<Ledger> make_ledger(OpenTransaction& transaction, const LedgerStatements& statements) {
  return std::make_unique<ServerLedger>(transaction, statements);
}

Result<std::vector<Intent>> list_intents(Connection& connection, const LedgerStatements& statements,
                                         const IntentQuery& query) {
  Parameters parameters;
  const auto optional = [&](const std::optional<std::string>& text) {
    text ? parameters.add_binary(Type::bytes, *text) : parameters.add_null();
  };
  parameters.add_binary(Type::int4, binary_int4(bits_of(query.states)));
  optional(query.provider);
  optional(query.effect);
  parameters.add_binary(Type::int8, binary_int8(bounded_ms(query.older_than)));
  const auto after = stored_id(query.after_id);
  after ? parameters.add_binary(Type::uuid, *after) : parameters.add_null();
  parameters.add_binary(Type::int8, binary_int8(static_cast<std::int64_t>(query.count_max)));
  const auto& sql = query.waiting_for_operator ? statements.list_waiting : statements.list;
  if (auto asked = run(connection, sql, parameters); !asked) return asked.error();
  return read_all<Intent>(connection.last(), read_intent);
}

Result<std::vector<IntentEvent>> list_events(Connection& connection, const LedgerStatements& statements,
                                             const IntentId& id) {
  const auto bytes = stored_id(id.hex);
  if (!bytes) return std::vector<IntentEvent>();
  Parameters parameters;
  parameters.add_binary(Type::uuid, *bytes);
  if (auto asked = run(connection, statements.history, parameters); !asked) return asked.error();
  return read_all<IntentEvent>(connection.last(), read_event);
}

Result<IntentCounts> count_intents(Connection& connection, const LedgerStatements& statements) {
  if (auto asked = run(connection, statements.count); !asked) return asked.error();
  IntentCounts counts;
  for (int number = 0; number < PQntuples(connection.last()); ++number) {
    const BinaryRow row(connection.last(), number);
    if (row.integer(1) > 0) counts.by_state.emplace_back(static_cast<IntentState>(row.integer(0) - 1), row.integer(1));
    counts.waiting_for_operator += row.integer(2);
    if (const auto age = span_since(row, 3, 4)) counts.oldest_open = std::max(counts.oldest_open.value_or(*age), *age);
  }
  return counts;
}

}  // namespace semel::postgres
