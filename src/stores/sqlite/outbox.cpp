#include "stores/sqlite/outbox.hpp"

#include "stores/sqlite/rows.hpp"
#include "values/stored_form.hpp"

namespace semel::sqlite {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view outbox_columns =
    "SELECT number, id, handler, principal, key, target, body, attributes, order_key, attempt, failures, last_error,"
    " held, published_at FROM semel_outbox";

struct OutboxRow {
  std::int64_t number;
  OutboxMessage message;
};

Result<OutboxRow> read_row(const Statement& row) {
  auto key = read_key(row.bytes(4));
  if (!key) return std::move(key).error();
  auto attributes = decode_attributes(row.bytes(7));
  if (!attributes) return std::move(attributes).error();
  return OutboxRow{row.integer(0), OutboxMessage{.id = read_id(row.bytes(1)),
                                                 .record = {{row.bytes(2), row.bytes(3)}, std::move(*key)},
                                                 .publication = {.to = row.bytes(5),
                                                                 .body = row.bytes(6),
                                                                 .attributes = std::move(*attributes),
                                                                 .order_key = row.bytes(8)},
                                                 .attempt = static_cast<int>(row.integer(9)),
                                                 .failures = static_cast<int>(row.integer(10)),
                                                 .last_error = row.bytes(11),
                                                 .held = row.integer(12) != 0,
                                                 .published_at = time_of(row.integer(13))}};
}

Result<OutboxMessage> read_message(const Statement& row) {
  auto read = read_row(row);
  if (!read) return std::move(read).error();
  return std::move(read->message);
}

Result<void> insert_waiting(Connection& connection, const OutboxMessage& message, std::string_view id) {
  static const std::string insert = with_now(
      "INSERT INTO semel_outbox (id, record, handler, principal, key, target, order_key, attributes, body,"
      " due_at, published_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, {now}, {now})");
  auto statement = connection.prepare(insert);
  if (!statement) return statement.error();
  const auto& [scope, key] = message.record;
  Binder bind(*statement);
  bind.bytes(id).bytes(record_digest(scope, key).view()).text(scope.handler).bytes(scope.principal);
  bind.bytes(stored_key(key)).text(message.publication.to).bytes(message.publication.order_key);
  bind.bytes(encode_attributes(message.publication.attributes)).bytes(message.publication.body);
  return lost_race_if_taken(statement->finish(), "another transaction published the same message");
}

Result<void> insert_queued(Connection& connection, const OutboxMessage& message, std::string_view id) {
  static const std::string insert = with_now(
      "INSERT INTO semel_queue (id, record, queue, order_key, attributes, body, due_at, sent_at)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, {now}, {now})");
  auto statement = connection.prepare(insert);
  if (!statement) return statement.error();
  Binder bind(*statement);
  bind.bytes(id).bytes(record_digest(message.record.scope, message.record.key).view());
  bind.text(message.publication.to).bytes(message.publication.order_key);
  bind.bytes(encode_attributes(message.publication.attributes)).bytes(message.publication.body);
  return lost_race_if_taken(statement->finish(), "another transaction queued the same message");
}

/// In the order published. Whoever has an order key goes only if nothing before him waits, and what is before him and
/// does not wait is in the same answer. The plus keeps SQLite from an index that would have it sort all that there is.
std::string take_sql(std::size_t targets) {
  return with_now(std::string(outbox_columns) + " AS m WHERE due_at <= {now} AND held = 0 AND +target IN (" +
                  placeholders(2, targets) +
                  ") AND (order_key = x'' OR NOT EXISTS (SELECT 1 FROM semel_outbox AS earlier"
                  " WHERE earlier.target = m.target AND earlier.order_key = m.order_key AND earlier.number < m.number"
                  " AND (earlier.held = 1 OR earlier.due_at > {now}))) ORDER BY number LIMIT ?1");
}

Result<void> lease_row(Connection& connection, std::int64_t number, milliseconds lease) {
  static const std::string update =
      with_now("UPDATE semel_outbox SET attempt = attempt + 1, due_at = {now} + ?2 WHERE number = ?1");
  auto statement = connection.prepare(update);
  if (!statement) return statement.error();
  Binder(*statement).number(number).number(bounded_ms(lease));
  return statement->finish();
}

Result<void> finish_one(Connection& connection, const OutboxResult& result) {
  static const std::string wait = with_now(
      "UPDATE semel_outbox SET failures = failures + (?3 <> x''), last_error = CASE WHEN ?3 = x'' THEN last_error ELSE"
      " ?3 END, held = ?4, due_at = {now} + ?5 WHERE id = ?1 AND attempt = ?2");
  const auto id = stored_id(result.id);
  if (!id) return id.error();
  auto statement = connection.prepare(
      result.sent ? std::string_view("DELETE FROM semel_outbox WHERE id = ?1 AND attempt = ?2") : wait);
  if (!statement) return statement.error();
  Binder bind(*statement);
  bind.bytes(*id).number(result.attempt);
  if (!result.sent) bind.bytes(result.error).number(result.hold).number(bounded_ms(result.due_in));
  return statement->finish();
}

class FileOutbox final : public Outbox {
 public:
  explicit FileOutbox(OpenTransaction& transaction) : transaction_(transaction) {}

  Result<void> publish(std::span<const OutboxMessage> messages) override {
    return transaction_.run([&](Connection& connection) -> Result<void> {
      for (const OutboxMessage& message : messages) {
        const auto id = stored_id(message.id);
        if (!id) return id.error();
        auto put = message.queued ? insert_queued(connection, message, *id) : insert_waiting(connection, message, *id);
        if (!put) return put;
      }
      return {};
    });
  }

  Result<std::vector<OutboxMessage>> take(std::span<const std::string> targets, std::size_t count_max,
                                          milliseconds lease) override {
    return transaction_.run([&](Connection& connection) -> Result<std::vector<OutboxMessage>> {
      auto rows = ready(connection, targets, count_max);
      if (!rows) return std::move(rows).error();
      std::vector<OutboxMessage> taken;
      for (auto& [number, message] : *rows) {
        if (auto leased = lease_row(connection, number, lease); !leased) return leased.error();
        ++message.attempt;
        taken.push_back(std::move(message));
      }
      return taken;
    });
  }

  Result<void> finish(std::span<const OutboxResult> results) override {
    return transaction_.run([&](Connection& connection) -> Result<void> {
      for (const OutboxResult& result : results)
        if (auto finished = finish_one(connection, result); !finished) return finished;
      return {};
    });
  }

 private:
  static Result<std::vector<OutboxRow>> ready(Connection& connection, std::span<const std::string> targets,
                                              std::size_t count_max) {
    auto row = connection.prepare(take_sql(targets.size()));
    if (!row) return row.error();
    Binder bind(*row);
    bind.number(static_cast<std::int64_t>(count_max));
    for (const auto& target : targets) bind.text(target);
    return read_all<OutboxRow>(*row, read_row);
  }

  OpenTransaction& transaction_;
};

Result<bool> change_held(Connection& connection, std::string_view sql, const std::string& id) {
  const auto bytes = stored_id(id);
  if (!bytes) return false;
  auto statement = connection.prepare(sql);
  if (!statement) return statement.error();
  if (auto done = statement->bind_bytes(1, *bytes).finish(); !done) return done.error();
  return connection.changes() > 0;
}

}  // namespace

std::unique_ptr<Outbox> make_outbox(OpenTransaction& transaction) { return std::make_unique<FileOutbox>(transaction); }

Result<std::vector<OutboxMessage>> list_outbox(Connection& connection, const OutboxQuery& query) {
  // An id that has gone meanwhile is followed by everything: what was before it has most likely gone, too.
  static const std::string select = std::string(outbox_columns) +
                                    " WHERE (?1 IS NULL OR target = ?1) AND (?2 = 0 OR held = 1) AND number > coalesce("
                                    "(SELECT number FROM semel_outbox WHERE id = ?3), 0) ORDER BY number LIMIT ?4";
  auto row = connection.prepare(select);
  if (!row) return row.error();
  const auto after = stored_id(query.after_id);
  Binder bind(*row);
  bind.optional_text(query.to).number(query.held_only).optional_bytes(after ? std::optional(*after) : std::nullopt);
  bind.number(static_cast<std::int64_t>(query.count_max));
  return read_all<OutboxMessage>(*row, read_message);
}

Result<OutboxCounts> count_outbox(Connection& connection) {
  static const std::string select = with_now(
      "SELECT count(*) FILTER (WHERE held = 0), count(*) FILTER (WHERE held = 1), {now} - min(published_at)"
      " FROM semel_outbox");
  auto row = connection.prepare(select);
  if (!row) return row.error();
  if (const auto more = row->step(); !more) return more.error();
  OutboxCounts counts{.waiting = row->integer(0), .held = row->integer(1)};
  if (!row->is_null(2)) counts.oldest = milliseconds(std::max<std::int64_t>(0, row->integer(2)));
  return counts;
}

Result<bool> release_held(Connection& connection, const std::string& id) {
  static const std::string update =
      with_now("UPDATE semel_outbox SET held = 0, due_at = {now} WHERE id = ?1 AND held = 1");
  return change_held(connection, update, id);
}

Result<bool> drop_held(Connection& connection, const std::string& id) {
  return change_held(connection, "DELETE FROM semel_outbox WHERE id = ?1 AND held = 1", id);
}

Result<std::vector<QueuedMessage>> take_from_queue(Connection& connection, const std::string& queue,
                                                   std::size_t count_max, milliseconds lease) {
  static const std::string select = with_now(
      "SELECT id, body, attributes, order_key, receive_count, sent_at FROM semel_queue"
      " WHERE queue = ?1 AND due_at <= {now} ORDER BY number LIMIT ?2");
  static const std::string update =
      with_now("UPDATE semel_queue SET receive_count = receive_count + 1, due_at = {now} + ?2 WHERE id = ?1");
  auto row = connection.prepare(select);
  if (!row) return row.error();
  Binder(*row).text(queue).number(static_cast<std::int64_t>(count_max));
  auto taken = read_all<QueuedMessage>(*row, [](const Statement& read) -> Result<QueuedMessage> {
    auto attributes = decode_attributes(read.bytes(2));
    if (!attributes) return std::move(attributes).error();
    return QueuedMessage{.id = read_id(read.bytes(0)),
                         .body = read.bytes(1),
                         .attributes = std::move(*attributes),
                         .order_key = read.bytes(3),
                         .receive_count = static_cast<int>(read.integer(4)) + 1,
                         .sent_at = time_of(read.integer(5))};
  });
  if (!taken) return taken;
  for (const QueuedMessage& message : *taken) {
    auto statement = connection.prepare(update);
    if (!statement) return statement.error();
    Binder(*statement).bytes(*stored_id(message.id)).number(bounded_ms(lease));
    if (auto leased = statement->finish(); !leased) return leased.error();
  }
  return taken;
}

Result<void> end_in_queue(Connection& connection, const std::string& queue, std::span<const QueueEnd> ends) {
  static const std::string wait =
      with_now("UPDATE semel_queue SET due_at = {now} + ?4 WHERE id = ?1 AND receive_count = ?2 AND queue = ?3");
  for (const QueueEnd& end : ends) {
    const auto id = stored_id(end.id);
    if (!id) return id.error();
    auto statement = connection.prepare(
        end.due_in ? std::string_view(wait)
                   : std::string_view("DELETE FROM semel_queue WHERE id = ?1 AND receive_count = ?2 AND queue = ?3"));
    if (!statement) return statement.error();
    Binder bind(*statement);
    bind.bytes(*id).number(end.receive_count).text(queue);
    if (end.due_in) bind.number(bounded_ms(*end.due_in));
    if (auto done = statement->finish(); !done) return done;
  }
  return {};
}

}  // namespace semel::sqlite
