#include "stores/sqlite/ledger.hpp"

#include <algorithm>

#include "stores/sqlite/rows.hpp"
#include "values/stored_form.hpp"

namespace semel::sqlite {
namespace {

using std::chrono::milliseconds;

constexpr int number_of(IntentState state) { return static_cast<int>(state) + 1; }
static_assert(number_of(IntentState::pending) == 1 && number_of(IntentState::abandoned) == 6,
              "the numbers are those of migrations/sqlite/0002");

/// As a set of bits, one a number.
template <class States>
std::int64_t bits_of(const States& states) {
  std::int64_t bits = 0;
  for (const IntentState state : states) bits |= std::int64_t{1} << number_of(state);
  return bits;
}

constexpr std::string_view intent_columns =
    "SELECT id, handler, principal, key, parent, compensates, step, effect, provider, reference, idempotency_key,"
    " request, compensation, message, state, attempt, doubtful, settled, flagged, outcome, failures, created_at,"
    " {now} - created_at, {now} - started_at, {now} - doubtful_since, state = 2 AND due_at <= {now} FROM semel_intents";

milliseconds not_negative(std::int64_t ms) { return milliseconds(std::max<std::int64_t>(0, ms)); }

std::optional<milliseconds> optional_span(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return not_negative(row.integer(column));
}

std::optional<IntentId> optional_id(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return IntentId{read_id(row.bytes(column))};
}

IntentStatus read_status(const Statement& row, int first) {
  return {.state = static_cast<IntentState>(row.integer(first) - 1),
          .attempt = static_cast<int>(row.integer(first + 1)),
          .doubtful = row.integer(first + 2) != 0,
          .settled = row.integer(first + 3) != 0,
          .flagged = row.integer(first + 4) != 0};
}

Result<Intent> read_intent(const Statement& row) {
  auto key = read_key(row.bytes(3));
  if (!key) return std::move(key).error();
  Intent intent{.id = {read_id(row.bytes(0))},
                .record = {.scope = {row.bytes(1), row.bytes(2)}, .key = std::move(*key)},
                .parent = optional_id(row, 4),
                .compensates = optional_id(row, 5),
                .step = static_cast<int>(row.integer(6)),
                .effect = row.bytes(7),
                .provider = row.bytes(8),
                .reference = row.bytes(9),
                .idempotency_key = row.bytes(10),
                .request = row.bytes(11),
                .status = read_status(row, 14),
                .failures = static_cast<int>(row.integer(20)),
                .created_at = time_of(row.integer(21)),
                .age = not_negative(row.integer(22)),
                .since_started = optional_span(row, 23),
                .since_doubtful = optional_span(row, 24),
                .lease_ran_out = row.integer(25) != 0};
  if (!row.is_null(12)) {
    auto compensation = decode_compensation(row.bytes(12));
    if (!compensation) return std::move(compensation).error();
    intent.compensation = std::move(*compensation);
  }
  auto message = decode_message(row.bytes(13));
  if (!message) return std::move(message).error();
  intent.message = std::move(*message);
  if (row.is_null(19)) return intent;
  auto outcome = decode_outcome(row.bytes(19));
  if (!outcome) return std::move(outcome).error();
  intent.outcome = std::move(*outcome);
  return intent;
}

Result<std::vector<Intent>> read_intents(Statement& row) { return read_all<Intent>(row, read_intent); }

Result<void> insert_event(Connection& connection, std::string_view intent, const IntentEvent& event) {
  // Of an intent that is gone nothing is kept.
  static const std::string insert = with_now(
      "INSERT INTO semel_intent_events (intent, kind, attempt, by, detail, evidence, at)"
      " SELECT ?1, ?2, ?3, ?4, ?5, ?6, {now} WHERE EXISTS (SELECT 1 FROM semel_intents WHERE id = ?1)");
  auto statement = connection.prepare(insert);
  if (!statement) return statement.error();
  Binder bind(*statement);
  bind.bytes(intent).text(event.kind).number(event.attempt).bytes(event.by).bytes(event.detail);
  bind.optional_bytes(event.evidence ? std::optional(encode_outcome(*event.evidence)) : std::nullopt);
  return statement->finish();
}

/// What `due_at` becomes, from the state ?4, settled ?7, a lease ?12 and a pause ?13: when it needs something next.
constexpr std::string_view change_sql =
    "UPDATE semel_intents SET state = ?4, attempt = ?5, doubtful = ?6, settled = ?7, flagged = ?8, failures = ?9,"
    " outcome = coalesce(?10, outcome), compensation = coalesce(?11, compensation),"
    " started_at = CASE WHEN ?4 = 2 THEN coalesce(started_at, {now}) WHEN ?4 = 1 AND ?6 = 0 THEN NULL"
    "              ELSE started_at END,"
    " doubtful_since = CASE WHEN ?6 = 1 AND ?5 = attempt THEN coalesce(doubtful_since, {now}) END,"
    " due_at = CASE WHEN ?4 = 2 THEN coalesce({now} + ?12, CASE WHEN state = 2 THEN due_at END, {now})"
    "               WHEN ?4 = 1 OR (?4 IN (3, 4, 6) AND ?7 = 0) THEN {now} + ?13 END"
    " WHERE id = ?1 AND attempt = ?2 AND (?3 >> state) & 1 = 1";

Result<bool> change_one(Connection& connection, const IntentChange& change) {
  static const std::string update = with_now(change_sql);
  const auto id = stored_id(change.id.hex);
  if (!id) return id.error();
  auto statement = connection.prepare(update);
  if (!statement) return statement.error();
  Binder bind(*statement);
  bind.bytes(*id).number(change.expected_attempt).number(bits_of(change.expected_states));
  bind.number(number_of(change.to.state)).number(change.to.attempt).number(change.to.doubtful);
  bind.number(change.to.settled).number(change.to.flagged).number(change.failures);
  bind.optional_bytes(change.outcome ? std::optional(encode_outcome(*change.outcome)) : std::nullopt);
  bind.optional_bytes(change.compensation ? std::optional(encode_compensation(*change.compensation)) : std::nullopt);
  bind.optional_number(change.lease ? std::optional(bounded_ms(*change.lease)) : std::nullopt);
  bind.number(bounded_ms(change.due_in));
  if (auto done = statement->finish(); !done) return done.error();
  if (connection.changes() == 0) return false;
  if (!change.event) return true;
  if (auto noted = insert_event(connection, *id, *change.event); !noted) return noted.error();
  return true;
}

Result<bool> renew_one(Connection& connection, const IntentId& intent, int attempt, milliseconds lease) {
  static const std::string update =
      with_now("UPDATE semel_intents SET due_at = {now} + ?3 WHERE id = ?1 AND attempt = ?2 AND state = 2");
  const auto id = stored_id(intent.hex);
  if (!id) return id.error();
  auto statement = connection.prepare(update);
  if (!statement) return statement.error();
  Binder(*statement).bytes(*id).number(attempt).number(bounded_ms(lease));
  if (auto done = statement->finish(); !done) return done.error();
  return connection.changes() > 0;
}

Result<void> insert_intent(Connection& connection, const Intent& intent) {
  static const std::string insert = with_now(
      "INSERT INTO semel_intents (id, record, handler, principal, key, parent, compensates, step, effect, provider,"
      " reference, idempotency_key, request, compensation, message, state, attempt, doubtful, settled, flagged, "
      "outcome,"
      " failures, created_at, started_at, doubtful_since, due_at)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,"
      " {now}, CASE WHEN ?16 = 2 THEN {now} END, CASE WHEN ?18 = 1 THEN {now} END,"
      " CASE WHEN ?16 = 2 THEN {now} + ?23 WHEN ?16 = 1 OR (?16 IN (3, 4, 6) AND ?19 = 0) THEN {now} END)");
  const auto id = stored_id(intent.id.hex);
  if (!id) return id.error();
  auto statement = connection.prepare(insert);
  if (!statement) return statement.error();
  Binder bind(*statement);
  bind.bytes(*id).bytes(record_digest(intent.record.scope, intent.record.key).view());
  bind.text(intent.record.scope.handler).bytes(intent.record.scope.principal).bytes(stored_key(intent.record.key));
  for (const auto& other : {intent.parent, intent.compensates}) {
    const auto bytes = other ? stored_id(other->hex) : Result<std::string>(std::string());
    if (!bytes) return bytes.error();
    bind.optional_bytes(other ? std::optional(*bytes) : std::nullopt);
  }
  bind.number(intent.step).text(intent.effect).text(intent.provider).bytes(intent.reference);
  bind.bytes(intent.idempotency_key).bytes(intent.request);
  bind.optional_bytes(intent.compensation ? std::optional(encode_compensation(*intent.compensation)) : std::nullopt);
  bind.bytes(encode_message(intent.message)).number(number_of(intent.status.state)).number(intent.status.attempt);
  bind.number(intent.status.doubtful).number(intent.status.settled).number(intent.status.flagged);
  bind.optional_bytes(intent.outcome ? std::optional(encode_outcome(*intent.outcome)) : std::nullopt);
  bind.number(intent.failures).number(bounded_ms(intent.lease));
  return lost_race_if_taken(statement->finish(), "another transaction intended the same call");
}

constexpr std::string_view refresh_sql =
    "UPDATE semel_records SET open = its.open, answer = nullif(coalesce(?2, answer), x''), expires_at ="
    " CASE WHEN its.open > 0 THEN 9223372036854775807 WHEN semel_records.open > 0 THEN {now} + ?3 ELSE expires_at END"
    " FROM (SELECT CASE WHEN max(state = 5 OR (flagged = 1 AND state IN (1, 2))) THEN 2"
    "              WHEN max(state IN (1, 2) OR settled = 0) THEN 1 ELSE 0 END AS open FROM semel_intents WHERE record "
    "= ?1) AS its"
    " WHERE id = ?1 RETURNING state, open";

Result<std::optional<RecordState>> refresh_one(Connection& connection, const RecordUpdate& record) {
  static const std::string update = with_now(refresh_sql);
  auto row = connection.prepare(update);
  if (!row) return row.error();
  Binder bind(*row);
  bind.bytes(record_digest(record.id.scope, record.id.key).view());
  bind.optional_bytes(stored_answer(record));
  bind.number(bounded_ms(record.retention));
  const auto more = row->step();
  if (!more) return more.error();
  if (!*more) return std::optional<RecordState>();
  return std::optional(record_state(row->integer(0), row->integer(1)));
}

class FileLedger final : public Ledger {
 public:
  explicit FileLedger(OpenTransaction& transaction) : transaction_(transaction) {}

  Result<void> intend(std::span<const Intent> intents) override {
    return transaction_.run([&](Connection& connection) -> Result<void> {
      for (const Intent& intent : intents)
        if (auto inserted = insert_intent(connection, intent); !inserted) return inserted;
      return {};
    });
  }

  Result<std::vector<Intent>> take(std::span<const std::string> effects, std::size_t count_max) override;

  Result<std::vector<bool>> change(std::span<const IntentChange> changes) override {
    return each<bool>(changes, change_one);
  }

  Result<std::vector<bool>> renew(std::span<const std::pair<IntentId, int>> attempts, milliseconds lease) override {
    return each<bool>(attempts, [&](Connection& connection, const std::pair<IntentId, int>& attempt) {
      return renew_one(connection, attempt.first, attempt.second, lease);
    });
  }

  Result<void> note(const IntentId& id, const IntentEvent& event) override {
    return transaction_.run([&](Connection& connection) -> Result<void> {
      const auto bytes = stored_id(id.hex);
      return bytes ? insert_event(connection, *bytes, event) : Result<void>(bytes.error());
    });
  }

  Result<std::vector<Intent>> intents_of(const RecordId& record) override;
  Result<std::optional<Intent>> find(const IntentId& id) override;

  Result<std::vector<std::optional<RecordState>>> refresh(std::span<const RecordUpdate> updates) override {
    return each<std::optional<RecordState>>(updates, refresh_one);
  }

 private:
  /// One answer an item.
  template <class Answer, class Items, class One>
  Result<std::vector<Answer>> each(const Items& items, One one) {
    return transaction_.run([&](Connection& connection) -> Result<std::vector<Answer>> {
      std::vector<Answer> answers;
      for (const auto& item : items) {
        auto answer = one(connection, item);
        if (!answer) return std::move(answer).error();
        answers.push_back(std::move(*answer));
      }
      return answers;
    });
  }

  OpenTransaction& transaction_;
};

/// Nobody else can have taken any: a transaction has the file to itself.
Result<std::vector<Intent>> FileLedger::take(std::span<const std::string> effects, std::size_t count_max) {
  return transaction_.run([&](Connection& connection) -> Result<std::vector<Intent>> {
    auto row = connection.prepare(with_now(std::string(intent_columns) + " WHERE due_at <= {now} AND effect IN (" +
                                           placeholders(2, effects.size()) + ") ORDER BY due_at, number LIMIT ?1"));
    if (!row) return row.error();
    Binder bind(*row);
    bind.number(static_cast<std::int64_t>(count_max));
    for (const auto& effect : effects) bind.text(effect);
    return read_intents(*row);
  });
}

Result<std::vector<Intent>> FileLedger::intents_of(const RecordId& record) {
  static const std::string select = with_now(std::string(intent_columns) + " WHERE record = ?1 ORDER BY step, number");
  return transaction_.run([&](Connection& connection) -> Result<std::vector<Intent>> {
    auto row = connection.prepare(select);
    if (!row) return row.error();
    row->bind_bytes(1, record_digest(record.scope, record.key).view());
    return read_intents(*row);
  });
}

Result<std::optional<Intent>> FileLedger::find(const IntentId& id) {
  static const std::string select = with_now(std::string(intent_columns) + " WHERE id = ?1");
  return transaction_.run([&](Connection& connection) -> Result<std::optional<Intent>> {
    const auto bytes = stored_id(id.hex);
    if (!bytes) return std::optional<Intent>();
    auto row = connection.prepare(select);
    if (!row) return row.error();
    row->bind_bytes(1, *bytes);
    auto found = read_intents(*row);
    if (!found) return std::move(found).error();
    return found->empty() ? std::optional<Intent>() : std::optional(std::move(found->front()));
  });
}

/// In the words of the index semel_intents_unfinished.
constexpr std::string_view unfinished = "(settled = 0 OR flagged = 1 OR state IN (1, 2, 5))";

}  // namespace

std::unique_ptr<Ledger> make_ledger(OpenTransaction& transaction) { return std::make_unique<FileLedger>(transaction); }

Result<void> delete_intents(Connection& connection, std::string_view digest) {
  for (const std::string_view sql :
       {"DELETE FROM semel_intent_events WHERE intent IN (SELECT id FROM semel_intents WHERE record = ?1)",
        "DELETE FROM semel_intents WHERE record = ?1"}) {
    auto statement = connection.prepare(sql);
    if (!statement) return statement.error();
    if (auto done = statement->bind_bytes(1, digest).finish(); !done) return done;
  }
  return {};
}

Result<std::vector<Intent>> list_intents(Connection& connection, const IntentQuery& query) {
  // An id that has gone meanwhile is followed by everything: a page may then repeat, but skips none.
  auto sql =
      std::string(intent_columns) +
      " WHERE (?1 = 0 OR (?1 >> state) & 1 = 1) AND (?2 IS NULL OR provider = ?2) AND (?3 IS NULL OR effect = ?3)"
      " AND created_at <= {now} - ?4 AND number > coalesce((SELECT number FROM semel_intents WHERE id = ?5), 0)";
  if (query.waiting_for_operator) sql.append(" AND (state = 5 OR flagged = 1) AND ").append(unfinished);
  auto row = connection.prepare(with_now(sql + " ORDER BY number LIMIT ?6"));
  if (!row) return row.error();
  const auto after = stored_id(query.after_id);
  Binder bind(*row);
  bind.number(bits_of(query.states)).optional_text(query.provider).optional_text(query.effect);
  bind.number(bounded_ms(query.older_than)).optional_bytes(after ? std::optional(*after) : std::nullopt);
  bind.number(static_cast<std::int64_t>(query.count_max));
  return read_intents(*row);
}

Result<std::vector<IntentEvent>> list_events(Connection& connection, const IntentId& id) {
  const auto bytes = stored_id(id.hex);
  if (!bytes) return std::vector<IntentEvent>();
  auto row = connection.prepare(
      "SELECT kind, attempt, by, detail, evidence, at FROM semel_intent_events WHERE intent = ?1 ORDER BY number");
  if (!row) return row.error();
  row->bind_bytes(1, *bytes);
  return read_all<IntentEvent>(*row, [](const Statement& read) -> Result<IntentEvent> {
    IntentEvent event{.kind = read.bytes(0),
                      .attempt = static_cast<int>(read.integer(1)),
                      .by = read.bytes(2),
                      .detail = read.bytes(3),
                      .at = time_of(read.integer(5))};
    if (read.is_null(4)) return event;
    auto evidence = decode_outcome(read.bytes(4));
    if (!evidence) return std::move(evidence).error();
    event.evidence = std::move(*evidence);
    return event;
  });
}

Result<IntentCounts> count_intents(Connection& connection) {
  static const std::string select =
      with_now(std::string("SELECT state, sum(settled = 0), sum(state = 5 OR flagged = 1),"
                           " {now} - min(created_at) FILTER (WHERE state IN (1, 2, 5)) FROM semel_intents WHERE ")
                   .append(unfinished) +
               " GROUP BY state ORDER BY state");
  auto row = connection.prepare(select);
  if (!row) return row.error();
  IntentCounts counts;
  for (;;) {
    const auto more = row->step();
    if (!more) return more.error();
    if (!*more) return counts;
    if (row->integer(1) > 0)
      counts.by_state.emplace_back(static_cast<IntentState>(row->integer(0) - 1), row->integer(1));
    counts.waiting_for_operator += row->integer(2);
    if (const auto age = optional_span(*row, 3)) counts.oldest_open = std::max(counts.oldest_open.value_or(*age), *age);
  }
}

}  // namespace semel::sqlite
