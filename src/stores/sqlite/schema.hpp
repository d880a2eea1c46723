// Which version of Semel's tables a file holds, and bringing it to this release's.
#pragma once

#include <semel/result.hpp>
#include <semel/store.hpp>
#include <vector>

#include "stores/sqlite/connection.hpp"

namespace semel::sqlite {

/// The version of this release's schema.
int newest_version();

/// The newest version applied to the file; 0 where there is none.
Result<int> schema_version(Connection& connection);

/// Applies what is missing in one transaction that nobody can write beside, and says what it applied. Errors:
/// schema_newer where the file was made by a later release.
Result<std::vector<int>> migrate(Connection& connection);

/// What `check` says of the schema.
Result<std::vector<Finding>> check_schema(Connection& connection);

}  // namespace semel::sqlite
