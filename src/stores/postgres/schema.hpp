// Semel's tables: where they live, the statements on them, and how they come to be (migrations/postgres).
#pragma once

#include <semel/result.hpp>
#include <semel/stores/postgres.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "stores/postgres/connection.hpp"

namespace semel::postgres {

/// Errors: config_bad_value for a name that PostgreSQL would cut or cannot hold.
Result<void> check_schema_name(std::string_view name);
std::string quoted_identifier(std::string_view name);
/// `{}` in `text` becomes the schema, which is quoted.
std::string in_schema(std::string_view text, const std::string& schema);
/// The 64 bits at which those meet who do one thing in one schema. A digest, so that no other user of advisory locks is
/// likely to be met; who is, only waits.
std::string advisory_lock_number(std::string_view purpose, std::string_view schema);

/// Our own statements on intents and on the records that they belong to.
struct LedgerStatements {
  explicit LedgerStatements(const std::string& schema);

  std::string intend;     ///< arrays, one element an intent
  std::string take;       ///< $1 bytea[] of effects, $2 at most; columns as read_intent reads them
  std::string change;     ///< arrays, one element a change; then those of `note`. The ids that it applied to
  std::string renew;      ///< $1 uuid[], $2 int4[] attempts, $3 milliseconds; the ids and attempts that it applied to
  std::string note;       ///< arrays, one element an event
  std::string of_record;  ///< $1 record
  std::string find;       ///< $1 id
  std::string lock_records;  ///< $1 uuid[]
  std::string refresh;       ///< $1 uuid[], $2 answers, $3 seconds; ids and states
  std::string list;  ///< $1 states, $2 provider, $3 effect, $4 older than so many ms, $5 after this id, $6 at most
  std::string list_waiting;  ///< the same, of those that wait for an operator
  std::string history;       ///< $1 id
  std::string count;         ///< state, not settled, waiting for an operator, the oldest open one, now
};

/// Our own statements on the outbox and on queues.
struct OutboxStatements {
  OutboxStatements(std::string_view schema_name, const std::string& schema);

  std::string publish;      ///< arrays, one element a message
  std::string enqueue;      ///< arrays, one element a message
  std::string lock;         ///< until the transaction ends, nobody else takes or finishes
  std::string take;         ///< $1 bytea[] of targets, $2 at most, $3 milliseconds; columns as read_row reads them
  std::string finish;       ///< arrays, one element a result
  std::string list;         ///< $1 target, $2 held only, $3 after this id, $4 at most
  std::string count;        ///< not held, held, the oldest, now
  std::string release;      ///< $1 id
  std::string drop;         ///< $1 id
  std::string take_queued;  ///< $1 queue, $2 at most, $3 milliseconds
  std::string end_queued;   ///< $1 uuid[], $2 int4[] receive counts, $3 int8[] milliseconds or null, $4 queue
};

/// Our own statements. They read and send the binary format.
struct Statements {
  explicit Statements(std::string_view schema);

  std::string claim;           ///< $1 uuid[]; columns as read_record reads them
  std::string make_room;       ///< $1 uuid[] of expired records, $2 uuid[] of rejections sent again
  std::string record;          ///< ten arrays, one element a record
  std::string set_aside;       ///< arrays, one element a letter
  std::string purge;           ///< $1 int8: at most so many; says how many
  std::string list_letters;    ///< $1 handler, $2 reason, $3 waiting only, $4 before this id, $5 at most
  std::string find_letter;     ///< $1 id
  std::string resolve_letter;  ///< $1 id, $2 resolution
  LedgerStatements ledger;
  OutboxStatements outbox;
};

/// Runs one of our own statements outside a transaction and waits for it. The number of rows that it changed or read;
/// the rows are `connection.last()`.
Result<std::int64_t> run(Connection& connection, std::string_view sql, const Parameters& parameters = {});

/// The version of the schema; 0 where there is none.
Result<int> schema_version(Connection& connection, std::string_view schema);
/// This release's.
int newest_version();

/// Brings the schema to the newest version, in one transaction for each version, under a lock that two at once share.
/// The versions applied. Errors: schema_newer, permission_denied.
Result<std::vector<int>> migrate(Connection& connection, std::string_view schema);

/// What `check` finds in a server and in the schema.
Result<std::vector<Finding>> findings(Connection& connection, const Options& options);

}  // namespace semel::postgres
