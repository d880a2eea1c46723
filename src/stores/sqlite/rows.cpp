#include "stores/sqlite/rows.hpp"

#include <algorithm>
#include <array>

#include "stores/sqlite/ledger.hpp"
#include "values/stored_form.hpp"

namespace semel::sqlite {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr std::chrono::seconds retention_max = std::chrono::years(200);

constexpr int stored_state(RecordState state) { return state == RecordState::rejected ? 2 : 1; }

constexpr int stored_open(RecordState state) {
  return state == RecordState::in_progress ? 1 : state == RecordState::ambiguous ? 2 : 0;
}

Result<Record> read_record(const Statement& row, const RecordId& id) {
  Record record{.scope = id.scope, .key = id.key};
  record.state = record_state(row.integer(3), row.integer(10));
  record.fingerprint = Fingerprint::from_bytes(row.bytes(4));
  record.source = row.bytes(5);
  record.transport_id = row.bytes(6);
  record.recorded_at = time_of(row.integer(7));
  record.expires_at = time_of(row.integer(8));
  if (!row.integer(10))
    record.retention = std::chrono::duration_cast<std::chrono::seconds>(record.expires_at - record.recorded_at);
  if (row.is_null(9)) return record;
  auto answer = decode_answer(row.bytes(9));
  if (!answer) return std::move(answer).error();
  record.answer = std::move(*answer);
  return record;
}

bool is_row_of(const Statement& row, const RecordId& id) {
  return row.bytes(0) == id.scope.handler && row.bytes(1) == id.scope.principal && row.bytes(2) == stored_key(id.key);
}

SetAsideReason reason_of(std::string_view name) {
  constexpr std::array all{SetAsideReason::no_key, SetAsideReason::malformed, SetAsideReason::conflict,
                           SetAsideReason::rejected, SetAsideReason::exhausted};
  const auto found = std::ranges::find(all, name, reason_name);
  return found == all.end() ? SetAsideReason::malformed : *found;
}

constexpr std::string_view letter_columns =
    "SELECT id, reason, code, detail, handler, principal, key, fingerprint, recorded_fingerprint, source, sender,"
    " sender_verified, transport_id, body, attributes, attempts, times, set_aside_at, resolution"
    " FROM semel_dead_letters";

Result<DeadLetter> read_letter(const Statement& row) {
  DeadLetter letter;
  letter.id = row.bytes(0);
  letter.reason = reason_of(row.bytes(1));
  letter.code = static_cast<ErrorCode>(row.integer(2));
  letter.detail = row.bytes(3);
  letter.scope = {row.bytes(4), row.bytes(5)};
  letter.key = row.bytes(6);
  letter.fingerprint = Fingerprint::from_bytes(row.bytes(7));
  letter.recorded_fingerprint = Fingerprint::from_bytes(row.bytes(8));
  letter.source = row.bytes(9);
  letter.sender = row.integer(10) == 0 ? Sender::message : Sender::caller;
  letter.sender_verified = row.integer(11) != 0;
  letter.transport_id = row.bytes(12);
  letter.body = row.bytes(13);
  auto attributes = decode_attributes(row.bytes(14));
  if (!attributes) return std::move(attributes).error();
  letter.attributes = std::move(*attributes);
  letter.attempts = static_cast<int>(row.integer(15));
  letter.times = row.integer(16);
  letter.set_aside_at = time_of(row.integer(17));
  letter.resolution = row.bytes(18);
  return letter;
}

void bind_optional(Statement& statement, int number, std::optional<std::string_view> text) {
  text ? statement.bind_text(number, *text) : statement.bind_null(number);
}

}  // namespace

std::string with_now(std::string_view sql) {
  constexpr std::string_view mark = "{now}";
  std::string text(sql);
  for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at + now_sql.size()))
    text.replace(at, mark.size(), now_sql);
  return text;
}

std::string placeholders(int first, std::size_t count) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i)
    list.append(i ? ", ?" : "?").append(std::to_string(first + static_cast<int>(i)));
  return list;
}

system_clock::time_point time_of(std::int64_t since_epoch_ms) {
  if (since_epoch_ms == INT64_MAX) return system_clock::time_point::max();
  return system_clock::time_point(milliseconds(since_epoch_ms));
}

std::int64_t bounded_ms(milliseconds span) {
  return std::clamp<milliseconds>(span, -retention_max, retention_max).count();
}

RecordState record_state(std::int64_t state, std::int64_t open) {
  if (open == 2) return RecordState::ambiguous;
  if (open == 1) return RecordState::in_progress;
  return state == 2 ? RecordState::rejected : RecordState::completed;
}

Result<void> lost_race_if_taken(Result<void> inserted, std::string_view message) {
  if (inserted || inserted.error().code != ErrorCode::constraint_violated) return inserted;
  return Error{Remedy::reread, Certainty::not_applied, ErrorCode::lost_race, std::string(message)};
}

/// CASE, so that the other tables are looked at for rows past their time only.
std::string expired_sql() {
  return with_now(
      "CASE WHEN expires_at <= {now} THEN NOT EXISTS (SELECT 1 FROM semel_outbox WHERE record = semel_records.id)"
      " AND NOT EXISTS (SELECT 1 FROM semel_queue WHERE record = semel_records.id)"
      " AND NOT EXISTS (SELECT 1 FROM semel_intents WHERE record = semel_records.id AND flagged = 1) ELSE 0 END");
}

Result<std::optional<FoundRecord>> find_row(Connection& connection, const RecordId& id) {
  static const std::string select =
      "SELECT handler, principal, key, state, fingerprint, source, transport_id, recorded_at, expires_at, answer,"
      " open, rowid, " +
      expired_sql() + " FROM semel_records WHERE id = ?1";
  auto row = connection.prepare(select);
  if (!row) return row.error();
  const auto more = row->bind_bytes(1, record_digest(id.scope, id.key).view()).step();
  if (!more) return more.error();
  if (!*more) return std::optional<FoundRecord>();
  if (!is_row_of(*row, id))
    return Error{Remedy::ask_operator, Certainty::not_applied, ErrorCode::store_damaged,
                 "the record found by this id's digest belongs to another id"};
  auto record = read_record(*row, id);
  if (!record) return std::move(record).error();
  return std::optional(FoundRecord{std::move(*record), row->integer(11), row->integer(12) != 0});
}

Result<void> insert_record(Connection& connection, const Record& record) {
  static const std::string insert = with_now(
      "INSERT INTO semel_records (id, handler, principal, key, state, fingerprint, source, transport_id, answer,"
      " recorded_at, expires_at, open) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, now,"
      " CASE WHEN ?11 > 0 THEN 9223372036854775807 ELSE now + ?10 END, ?11 FROM (SELECT {now} AS now)");
  auto statement = connection.prepare(insert);
  if (!statement) return statement.error();
  statement->bind_bytes(1, record_digest(record.scope, record.key).view());
  statement->bind_text(2, record.scope.handler);
  statement->bind_bytes(3, record.scope.principal);
  statement->bind_bytes(4, stored_key(record.key));
  statement->bind(5, stored_state(record.state));
  statement->bind_bytes(6, record.fingerprint.bytes());
  statement->bind_text(7, record.source);
  statement->bind_bytes(8, record.transport_id);
  record.answer ? statement->bind_bytes(9, encode_answer(*record.answer)) : statement->bind_null(9);
  statement->bind(10, bounded_ms(std::clamp(record.retention, -retention_max, retention_max)));
  statement->bind(11, stored_open(record.state));
  return lost_race_if_taken(statement->finish(), "another transaction recorded this key");
}

Result<void> delete_rejected(Connection& connection, const RecordId& id) {
  auto statement = connection.prepare("DELETE FROM semel_records WHERE id = ?1 AND state = 2");
  if (!statement) return statement.error();
  return statement->bind_bytes(1, record_digest(id.scope, id.key).view()).finish();
}

Result<void> delete_row(Connection& connection, const FoundRecord& row) {
  auto statement = connection.prepare("DELETE FROM semel_records WHERE rowid = ?1");
  if (!statement) return statement.error();
  if (auto done = statement->bind(1, row.rowid).finish(); !done) return done;
  return delete_intents(connection, record_digest(row.record.scope, row.record.key).view());
}

Result<bool> delete_if_expired(Connection& connection, std::int64_t rowid) {
  static const std::string remove = "DELETE FROM semel_records WHERE rowid = ?1 AND " + expired_sql() + " RETURNING id";
  std::string digest;
  {
    auto row = connection.prepare(remove);
    if (!row) return row.error();
    const auto removed = row->bind(1, rowid).step();
    if (!removed || !*removed) return removed;
    digest = row->bytes(0);
  }
  if (auto done = delete_intents(connection, digest); !done) return done.error();
  return true;
}

Result<void> put_dead_letter(Connection& connection, const DeadLetter& letter) {
  static const std::string insert = with_now(
      "INSERT INTO semel_dead_letters (id, reason, code, detail, handler, principal, key, fingerprint,"
      " recorded_fingerprint, source, sender, sender_verified, transport_id, body, attributes, attempts, set_aside_at)"
      " VALUES (coalesce(?1, lower(hex(randomblob(16)))), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
      " ?16, {now}) ON CONFLICT (id) DO UPDATE SET times = times + 1, resolution = ''");
  auto prepared = connection.prepare(insert);
  if (!prepared) return prepared.error();
  Statement& statement = *prepared;
  bind_optional(statement, 1, letter.id.empty() ? std::nullopt : std::optional<std::string_view>(letter.id));
  statement.bind_text(2, reason_name(letter.reason)).bind(3, static_cast<int>(letter.code));
  statement.bind_text(4, letter.detail).bind_text(5, letter.scope.handler);
  statement.bind_bytes(6, letter.scope.principal).bind_bytes(7, letter.key);
  statement.bind_bytes(8, letter.fingerprint.bytes()).bind_bytes(9, letter.recorded_fingerprint.bytes());
  statement.bind_text(10, letter.source).bind(11, letter.sender == Sender::caller);
  statement.bind(12, letter.sender_verified).bind_bytes(13, letter.transport_id).bind_bytes(14, letter.body);
  statement.bind_bytes(15, encode_attributes(letter.attributes)).bind(16, letter.attempts);
  return statement.finish();
}

Result<std::vector<DeadLetter>> list_dead_letters(Connection& connection, const DeadLetterQuery& query) {
  static const std::string select =
      std::string(letter_columns) +
      " WHERE (?1 IS NULL OR handler = ?1) AND (?2 IS NULL OR reason = ?2) AND (?3 = 0 OR resolution = '')"
      " AND (?4 IS NULL OR seq < (SELECT seq FROM semel_dead_letters WHERE id = ?4)) ORDER BY seq DESC LIMIT ?5";
  auto row = connection.prepare(select);
  if (!row) return row.error();
  bind_optional(*row, 1, query.handler);
  bind_optional(*row, 2, query.reason ? std::optional(reason_name(*query.reason)) : std::nullopt);
  row->bind(3, query.waiting_only);
  bind_optional(*row, 4, query.before_id.empty() ? std::nullopt : std::optional<std::string_view>(query.before_id));
  row->bind(5, static_cast<std::int64_t>(query.count_max));
  std::vector<DeadLetter> letters;
  for (;;) {
    const auto more = row->step();
    if (!more) return more.error();
    if (!*more) return letters;
    auto letter = read_letter(*row);
    if (!letter) return std::move(letter).error();
    letters.push_back(std::move(*letter));
  }
}

Result<std::optional<DeadLetter>> find_dead_letter(Connection& connection, const std::string& id) {
  static const std::string select = std::string(letter_columns) + " WHERE id = ?1";
  auto row = connection.prepare(select);
  if (!row) return row.error();
  const auto more = row->bind_text(1, id).step();
  if (!more) return more.error();
  if (!*more) return std::optional<DeadLetter>();
  auto letter = read_letter(*row);
  if (!letter) return std::move(letter).error();
  return std::optional(std::move(*letter));
}

Result<bool> resolve_dead_letter(Connection& connection, const std::string& id, std::string_view resolution) {
  auto statement =
      connection.prepare("UPDATE semel_dead_letters SET resolution = ?2 WHERE id = ?1 AND resolution = ''");
  if (!statement) return statement.error();
  if (auto done = statement->bind_text(1, id).bind_text(2, resolution).finish(); !done) return done.error();
  return connection.changes() > 0;
}

}  // namespace semel::sqlite
