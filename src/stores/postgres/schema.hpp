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

/// A statement on arrays, one element a row, in two forms. In its text `{rows 1-3}` stands for the rows of the arrays
/// $1 to $3, `{any 1}` for a comparison with the elements of $1, and `{count 1}` for their number.
///
/// A plan for many rows that is kept from when a table was empty reads all of it, until somebody analyses it. The form
/// for one row compares with one value: that is an index scan from the start, and may be kept.
struct ArrayStatement {
  /// Whether a plan for many rows may be kept too: not where it reads a table.
  enum class Many { planned_anew, kept };

  ArrayStatement() = default;
  ArrayStatement(std::string_view text, const std::string& schema, Many plan_of_many = Many::planned_anew);

  std::string of_one;   ///< of Parameters::first_elements
  std::string of_many;  ///< of any number
  Many many = Many::planned_anew;
};

/// Our own statements on intents and on the records that they belong to.
struct LedgerStatements {
  explicit LedgerStatements(const std::string& schema);

  ArrayStatement intend;      ///< arrays, one element an intent
  std::string take;           ///< $1 bytea[] of effects, $2 at most; columns as read_intent reads them
  ArrayStatement lock;        ///< $1 uuid[]
  ArrayStatement change;      ///< arrays, one element a change; then those of `note`. The ids that it applied to
  ArrayStatement change_all;  ///< the same; fails where one did not apply
  std::string renew;      ///< $1 uuid[], $2 int4[] attempts, $3 milliseconds; the ids and attempts that it applied to
  std::string note;       ///< arrays, one element an event
  std::string of_record;  ///< $1 record
  std::string find;       ///< $1 id
  ArrayStatement lock_records;  ///< $1 uuid[]
  ArrayStatement refresh;       ///< $1 uuid[], $2 answers, $3 seconds; ids and states
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

  ArrayStatement claim;         ///< $1 uuid[]; columns as read_record reads them, "expired" only says that it may be
  ArrayStatement still_needed;  ///< $1 uuid[]; the ids of those that do not expire, since messages of theirs wait
  std::string find;             ///< $1 uuid; columns as read_record reads them
  std::string make_room;        ///< $1 uuid[] of expired records, $2 uuid[] of rejections sent again
  ArrayStatement record;        ///< ten arrays, one element a record
  std::string set_aside;        ///< arrays, one element a letter
  std::string purge;            ///< $1 int8: at most so many; says how many
  std::string list_letters;     ///< $1 handler, $2 reason, $3 waiting only, $4 before this id, $5 at most
  std::string find_letter;      ///< $1 id
  std::string resolve_letter;   ///< $1 id, $2 resolution
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
