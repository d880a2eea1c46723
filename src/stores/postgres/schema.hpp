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

/// Our own statements. They read and send the binary format.
struct Statements {
  explicit Statements(std::string_view schema);

  std::string claim;           ///< $1 uuid[]; columns as read_record reads them
  std::string make_room;       ///< $1 uuid[] of expired records, $2 uuid[] of rejections sent again
  std::string record;          ///< ten arrays, one element a record
  std::string set_aside;       ///< arrays, one element a letter
  std::string purge;           ///< $1 int8: at most so many
  std::string list_letters;    ///< $1 handler, $2 reason, $3 waiting only, $4 before this id, $5 at most
  std::string find_letter;     ///< $1 id
  std::string resolve_letter;  ///< $1 id, $2 resolution
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
