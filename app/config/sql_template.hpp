// SQL as a user writes it, with parameters of a message, made into SQL with `$1`, `$2`, … and what to bind to them.
// Nothing of a message is ever pasted into SQL.
#pragma once

#include <semel/message.hpp>
#include <semel/result.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/parameter.hpp"

namespace semel::app {

/// Where the two stores' SQL differs in what a colon inside quotes looks like.
enum class SqlDialect { sqlite, postgres };

struct SqlTemplate {
  std::string written;                  ///< as it stands in the configuration
  std::string sql;                      ///< with `$1`, `$2`, …
  std::vector<Parameter> parameters{};  ///< what `$1`, `$2`, … are; each once
};

/// Colons in strings, quoted names, comments, casts (`::`) and array slices (`a[1:n]`) are SQL's own.
/// Errors: config_bad_expression for an unknown parameter, an unfinished string, or a placeholder that is written by
/// hand; config_bad_value for more than one statement, and for one that would end the transaction of the claim.
Result<SqlTemplate> parse_sql_template(std::string_view text, SqlDialect dialect);

/// What to bind for one message, or one settle step.
std::vector<Value> values_for(const SqlTemplate& sql, const Facts& facts);

}  // namespace semel::app
