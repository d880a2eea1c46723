// A little SQL, enough for handlers and for the conformance suite, on the simulated database's tables.
//
//   CREATE TABLE t (c type [NOT NULL] [PRIMARY KEY], …)      INSERT INTO t [(c, …)] VALUES (v, …) [ON CONFLICT DO
//   NOTHING] UPDATE t SET c = v | c = c + v [WHERE v = v AND …]       DELETE FROM t [WHERE …] SELECT count(*) | * | c,
//   … FROM t [WHERE …]              v: a column, $1, 'text', a number, NULL; = and <>
#pragma once

#include <semel/sql.hpp>
#include <string_view>

#include "database.hpp"

namespace semel::sim {

struct SqlOutcome {
  Rows rows;
  std::int64_t changed = 0;
};

/// Errors: bad_statement for what is not of the grammar above, a table or a parameter that is not there;
/// constraint_violated; handler_misused for a statement that would end the transaction; lock_timeout.
Result<SqlOutcome> run_sql(Database& database, const Writer& writer, std::string_view sql,
                           std::span<const Value> parameters);

}  // namespace semel::sim
