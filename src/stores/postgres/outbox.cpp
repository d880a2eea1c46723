#include "stores/postgres/outbox.hpp"

#include <algorithm>
#include <utility>

#include "stores/postgres/rows.hpp"
#include "values/stored_form.hpp"

namespace semel::postgres {

namespace {

using std::chrono::milliseconds;

/// In the order of read_row.
constexpr std::string_view outbox_columns =
    "o.number, o.id, o.handler, o.principal, o.key, o.target, o.body, o.attributes, o.order_key, o.attempt, "
    "o.failures, o.last_error, o.held, o.published_at";

/// Rows are found by what they are, oldest number first, and never by a number greater than the last one: a smaller
/// number may be committed later. Whoever has an order key goes only if nothing before him waits, and what is before
/// him and does not wait is in the same answer.
///
/// Two at once could break the order: one sees A leased and its follower B free, because it looked before the other,
/// or meets A's row while its end is being written, and takes B alone. So those who take or finish are one at a time
/// (`lock`); their transactions hold two or three statements and no call, so what is shared is a millisecond a batch.
///
/// `heads` only saves work: it says of whole order keys that they wait, so that a receiver that is down costs a look
/// at a hash for each message that piles up, and not a search (200,000 of them: 0.2 s instead of 2). Its limit keeps
/// the planner from expecting more than it can hash. OFFSET 0 has the rows put in order before they are judged, and
/// judged until there are enough; a planner without statistics would judge them all first (200,000: 15 s).
constexpr std::string_view take_sql =
    "WITH heads AS MATERIALIZED (SELECT target, order_key FROM {}.outbox AS b WHERE target = ANY ($1) "
    "AND order_key <> '' AND due_at > statement_timestamp() AND NOT EXISTS (SELECT FROM {}.outbox AS e "
    "WHERE e.target = b.target AND e.order_key = b.order_key AND e.number < b.number) LIMIT 10000), "
    "ready AS MATERIALIZED (SELECT number FROM (SELECT number, target, order_key FROM {}.outbox "
    "WHERE target = ANY ($1) AND due_at <= statement_timestamp() ORDER BY number OFFSET 0) AS m "
    "WHERE order_key = '' OR ((target, order_key) NOT IN (SELECT target, order_key FROM heads) "
    "AND NOT EXISTS (SELECT FROM {}.outbox AS e WHERE e.target = m.target AND e.order_key = m.order_key "
    "AND e.number < m.number AND e.due_at > statement_timestamp())) ORDER BY number LIMIT $2) "
    "UPDATE {}.outbox AS o SET attempt = o.attempt + 1, due_at = statement_timestamp() + $3 * interval '1 ms' "
    "FROM ready WHERE o.number = ready.number RETURNING ";

constexpr std::string_view finish_sql =
    "WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1, $2, $3, $4, $5, $6) AS w (id, attempt, sent, pause, error, "
    "hold)), gone AS (DELETE FROM {}.outbox AS o USING wanted AS w WHERE o.id = w.id AND o.attempt = w.attempt AND "
    "w.sent) UPDATE {}.outbox AS o SET failures = o.failures + (w.error <> '')::int, last_error = CASE WHEN w.error = "
    "'' THEN o.last_error ELSE w.error END, held = w.hold, due_at = CASE WHEN w.hold THEN 'infinity' "
    "ELSE statement_timestamp() + w.pause * interval '1 ms' END FROM wanted AS w WHERE o.id = w.id AND o.attempt = "
    "w.attempt AND NOT w.sent";

struct OutboxRow {
  std::int64_t number = 0;
  OutboxMessage message;
};

/// In the order of OutboxStatements' columns.
Result<OutboxRow> read_row(const BinaryRow& row) {
  enum {
    number,
    id,
    handler,
    principal,
    key,
    target,
    body,
    attributes,
    order_key,
    attempt,
    failures,
    last_error,
    held,
    published_at
  };
  auto read_back = read_key(row.bytes(key));
  if (!read_back) return read_back.error();
  auto decoded = decode_attributes(row.bytes(attributes));
  if (!decoded) return decoded.error();
  return OutboxRow{.number = row.integer(number),
                   .message = {.id = read_id(row.bytes(id)),
                               .record = {.scope = {.handler = row.bytes(handler), .principal = row.bytes(principal)},
                                          .key = *std::move(read_back)},
                               .publication = {.to = row.bytes(target),
                                               .body = row.bytes(body),
                                               .attributes = *std::move(decoded),
                                               .order_key = row.bytes(order_key)},
                               .attempt = static_cast<int>(row.integer(attempt)),
                               .failures = static_cast<int>(row.integer(failures)),
                               .last_error = row.bytes(last_error),
                               .held = row.integer(held) != 0,
                               .published_at = row.time(published_at)}};
}

/// In the order of their numbers: an UPDATE returns its rows in any.
Result<std::vector<OutboxMessage>> read_messages(const PGresult* result) {
  auto rows = read_all<OutboxRow>(result, read_row);
  if (!rows) return rows.error();
  std::ranges::sort(*rows, {}, &OutboxRow::number);
  std::vector<OutboxMessage> messages;
  for (auto& row : *rows) messages.push_back(std::move(row.message));
  return messages;
}

struct QueueRow {
  std::int64_t number = 0;
  QueuedMessage message;
};

Result<QueueRow> read_queue_row(const BinaryRow& row) {
  auto attributes = decode_attributes(row.bytes(3));
  if (!attributes) return attributes.error();
  return QueueRow{.number = row.integer(0),
                  .message = {.id = read_id(row.bytes(1)),
                              .body = row.bytes(2),
                              .attributes = *std::move(attributes),
                              .order_key = row.bytes(4),
                              .receive_count = static_cast<int>(row.integer(5)),
                              .sent_at = row.time(6)}};
}

struct Identified {
  std::string id;
  const OutboxMessage* message;
};

Parameters waiting_parameters(const std::vector<Identified>& messages) {
  Columns columns;
  columns.uuids(messages, [](const Identified& m) { return m.id; });
  columns.uuids(messages,
                [](const Identified& m) { return record_digest(m.message->record.scope, m.message->record.key); });
  columns.bytes(messages, [](const Identified& m) { return m.message->record.scope.handler; });
  columns.bytes(messages, [](const Identified& m) { return m.message->record.scope.principal; });
  columns.bytes(messages, [](const Identified& m) { return stored_key(m.message->record.key); });
  columns.bytes(messages, [](const Identified& m) { return m.message->publication.to; });
  columns.bytes(messages, [](const Identified& m) { return m.message->publication.order_key; });
  columns.bytes(messages, [](const Identified& m) { return encode_attributes(m.message->publication.attributes); });
  columns.bytes(messages, [](const Identified& m) { return m.message->publication.body; });
  return std::move(columns).parameters();
}

Parameters queued_parameters(const std::vector<Identified>& messages) {
  Columns columns;
  columns.uuids(messages, [](const Identified& m) { return m.id; });
  columns.uuids(messages,
                [](const Identified& m) { return record_digest(m.message->record.scope, m.message->record.key); });
  columns.texts(messages, [](const Identified& m) { return m.message->publication.to; });
  columns.bytes(messages, [](const Identified& m) { return m.message->publication.order_key; });
  columns.bytes(messages, [](const Identified& m) { return encode_attributes(m.message->publication.attributes); });
  columns.bytes(messages, [](const Identified& m) { return m.message->publication.body; });
  return std::move(columns).parameters();
}

Result<Parameters> result_parameters(std::span<const OutboxResult> results) {
  std::vector<std::string> ids;
  for (const auto& result : results) {
    auto id = stored_id(result.id);
    if (!id) return id.error();
    ids.push_back(*std::move(id));
  }
  Columns columns;
  columns.uuids(ids, std::identity());
  columns.int4s(results, [](const OutboxResult& r) { return r.attempt; });
  columns.booleans(results, [](const OutboxResult& r) { return r.sent; });
  columns.int8s(results, [](const OutboxResult& r) { return bounded_ms(r.due_in); });
  columns.bytes(results, [](const OutboxResult& r) { return r.error; });
  columns.booleans(results, [](const OutboxResult& r) { return r.hold; });
  return std::move(columns).parameters();
}

class ServerOutbox final : public Outbox {
 public:
  ServerOutbox(OpenTransaction& transaction, const OutboxStatements& statements)
      : transaction_(transaction), statements_(statements) {}

  Result<void> publish(std::span<const OutboxMessage> messages) override;
  Result<std::vector<OutboxMessage>> take(std::span<const std::string> targets, std::size_t count_max,
                                          milliseconds lease) override;
  Result<void> finish(std::span<const OutboxResult> results) override;

 private:
  OpenTransaction& transaction_;
  const OutboxStatements& statements_;
};

Result<void> ServerOutbox::publish(std::span<const OutboxMessage> messages) {
  if (auto ready = transaction_.usable(); !ready) return ready;
  std::vector<Identified> waiting, queued;
  for (const auto& message : messages) {
    auto id = stored_id(message.id);
    if (!id) return transaction_.fail(id.error());
    (message.queued ? queued : waiting).push_back({*std::move(id), &message});
  }
  if (!waiting.empty())
    if (auto sent = transaction_.send(statements_.publish, waiting_parameters(waiting)); !sent) return sent;
  if (queued.empty()) return {};
  return transaction_.send(statements_.enqueue, queued_parameters(queued));
}

Result<std::vector<OutboxMessage>> ServerOutbox::take(std::span<const std::string> targets, std::size_t count_max,
                                                      milliseconds lease) {
  if (auto ready = transaction_.usable(); !ready) return ready.error();
  if (auto sent = transaction_.send(statements_.lock, Parameters()); !sent) return sent.error();
  Columns columns;
  columns.bytes(targets, std::identity());
  auto parameters = std::move(columns).parameters();
  parameters.add_binary(Type::int8, binary_int8(static_cast<std::int64_t>(count_max)));
  parameters.add_binary(Type::int8, binary_int8(bounded_ms(lease)));
  const auto result = transaction_.ask(statements_.take, parameters);
  if (!result) return result.error();
  auto messages = read_messages(*result);
  if (!messages) return transaction_.fail(messages.error());
  return messages;
}

Result<void> ServerOutbox::finish(std::span<const OutboxResult> results) {
  if (auto ready = transaction_.usable(); !ready || results.empty()) return ready;
  const auto parameters = result_parameters(results);
  if (!parameters) return transaction_.fail(parameters.error());
  if (auto sent = transaction_.send(statements_.lock, Parameters()); !sent) return sent;
  return transaction_.send(statements_.finish, *parameters);
}

}  // namespace

OutboxStatements::OutboxStatements(std::string_view schema_name, const std::string& schema) {
  publish = in_schema(
      "INSERT INTO {}.outbox (id, record, handler, principal, key, target, order_key, attributes, body, due_at, "
      "published_at) SELECT t.*, statement_timestamp(), statement_timestamp() FROM unnest($1, $2, $3, $4, $5, $6, $7, "
      "$8, $9) AS t",
      schema);
  enqueue = in_schema(
      "INSERT INTO {}.queue (id, record, queue, order_key, attributes, body, due_at, sent_at) SELECT t.*, "
      "statement_timestamp(), statement_timestamp() FROM unnest($1, $2, $3, $4, $5, $6) AS t",
      schema);
  lock = "SELECT pg_advisory_xact_lock(" + advisory_lock_number("semel outbox", schema_name) + ")";
  take = in_schema(std::string(take_sql) + std::string(outbox_columns), schema);
  finish = in_schema(finish_sql, schema);
  // An id that has gone meanwhile is followed by everything: what was before it has most likely gone, too.
  list =
      in_schema("SELECT " + std::string(outbox_columns) +
                    " FROM {}.outbox AS o WHERE ($1::bytea IS NULL OR target = $1) AND (NOT $2 OR held) AND number > "
                    "coalesce((SELECT number FROM {}.outbox WHERE id = $3), 0) ORDER BY number LIMIT $4",
                schema);
  count = in_schema(
      "SELECT count(*) FILTER (WHERE NOT held), count(*) FILTER (WHERE held), min(published_at), statement_timestamp() "
      "FROM {}.outbox",
      schema);
  release =
      in_schema("UPDATE {}.outbox SET held = false, due_at = statement_timestamp() WHERE id = $1 AND held", schema);
  drop = in_schema("DELETE FROM {}.outbox WHERE id = $1 AND held", schema);
  take_queued = in_schema(
      "UPDATE {}.queue SET receive_count = receive_count + 1, due_at = statement_timestamp() + $3 * interval '1 ms' "
      "WHERE number = ANY (ARRAY (SELECT number FROM {}.queue WHERE queue = $1 AND due_at <= statement_timestamp() "
      "ORDER BY number LIMIT $2 FOR UPDATE SKIP LOCKED)) "
      "RETURNING number, id, body, attributes, order_key, receive_count, sent_at",
      schema);
  end_queued = in_schema(
      "WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1, $2, $3) AS w (id, receive_count, pause)), gone AS (DELETE "
      "FROM {}.queue AS q USING wanted AS w WHERE q.id = w.id AND q.receive_count = w.receive_count AND q.queue = $4 "
      "AND w.pause IS NULL) UPDATE {}.queue AS q SET due_at = statement_timestamp() + w.pause * interval '1 ms' FROM "
      "wanted AS w WHERE q.id = w.id AND q.receive_count = w.receive_count AND q.queue = $4 AND w.pause IS NOT NULL",
      schema);
}

std::unique_ptr<Outbox> make_outbox(OpenTransaction& transaction, const OutboxStatements& statements) {
  return std::make_unique<ServerOutbox>(transaction, statements);
}

Result<std::vector<OutboxMessage>> list_outbox(Connection& connection, const OutboxStatements& statements,
                                               const OutboxQuery& query) {
  Parameters parameters;
  query.to ? parameters.add_binary(Type::bytes, *query.to) : parameters.add_null();
  parameters.add_binary(Type::boolean, binary_boolean(query.held_only));
  const auto after = stored_id(query.after_id);
  after ? parameters.add_binary(Type::uuid, *after) : parameters.add_null();
  parameters.add_binary(Type::int8, binary_int8(static_cast<std::int64_t>(query.count_max)));
  if (auto asked = run(connection, statements.list, parameters); !asked) return asked.error();
  return read_messages(connection.last());
}

Result<OutboxCounts> count_outbox(Connection& connection, const OutboxStatements& statements) {
  if (auto asked = run(connection, statements.count); !asked) return asked.error();
  const BinaryRow row(connection.last(), 0);
  OutboxCounts counts{.waiting = row.integer(0), .held = row.integer(1)};
  if (!row.is_null(2))
    counts.oldest = std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(row.time(3) - row.time(2)));
  return counts;
}

Result<bool> change_held(Connection& connection, const std::string& sql, const std::string& id) {
  const auto bytes = stored_id(id);
  if (!bytes) return false;
  Parameters parameters;
  parameters.add_binary(Type::uuid, *bytes);
  const auto changed = run(connection, sql, parameters);
  if (!changed) return changed.error();
  return *changed > 0;
}

Result<std::vector<QueuedMessage>> take_from_queue(Connection& connection, const OutboxStatements& statements,
                                                   const std::string& queue, std::size_t count_max,
                                                   milliseconds lease) {
  Parameters parameters;
  parameters.add_binary(Type::text, queue);
  parameters.add_binary(Type::int8, binary_int8(static_cast<std::int64_t>(count_max)));
  parameters.add_binary(Type::int8, binary_int8(bounded_ms(lease)));
  if (auto asked = run(connection, statements.take_queued, parameters); !asked) return asked.error();
  auto rows = read_all<QueueRow>(connection.last(), read_queue_row);
  if (!rows) return rows.error();
  std::ranges::sort(*rows, {}, &QueueRow::number);
  std::vector<QueuedMessage> messages;
  for (auto& row : *rows) messages.push_back(std::move(row.message));
  return messages;
}

Result<void> end_in_queue(Connection& connection, const OutboxStatements& statements, const std::string& queue,
                          std::span<const QueueEnd> ends) {
  std::vector<std::string> ids;
  for (const auto& end : ends) {
    auto id = stored_id(end.id);
    if (!id) return id.error();
    ids.push_back(*std::move(id));
  }
  Columns columns;
  columns.uuids(ids, std::identity());
  columns.int4s(ends, [](const QueueEnd& e) { return e.receive_count; });
  columns.optional_int8s(
      ends, [](const QueueEnd& e) { return e.due_in ? std::optional(bounded_ms(*e.due_in)) : std::nullopt; });
  auto parameters = std::move(columns).parameters();
  parameters.add_binary(Type::text, queue);
  const auto ended = run(connection, statements.end_queued, parameters);
  return ended ? Result<void>() : Result<void>(ended.error());
}

}  // namespace semel::postgres
