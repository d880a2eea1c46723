// PostgreSQL (13 or newer) as a store.
#pragma once

#include <chrono>
#include <memory>
#include <semel/sql.hpp>
#include <semel/store.hpp>
#include <string>

namespace semel::postgres {

using semel::SqlSession;

struct Options {
  /// A libpq connection string or URI; its TLS options are honoured.
  std::string connection;
  /// The schema that holds Semel's tables.
  std::string schema = "semel";
  /// How long a transaction waits for a row or key that another one holds, before lock_timeout.
  std::chrono::milliseconds lock_timeout{2'000};
  std::chrono::milliseconds statement_timeout{30'000};
  std::chrono::milliseconds connect_timeout{5'000};
  /// False behind a transaction pooler (PgBouncer): no named statements, no session state.
  bool prepared_statements = true;
  /// Says by name that an acknowledged commit may be lost (fsync or synchronous_commit off).
  bool allow_unsafe_durability = false;
};

class Store : public semel::Store {
 public:
  using SessionType = SqlSession;
};

/// Makes the store; connects at the first use. Errors: config_bad_value for a connection string that libpq cannot read.
Result<std::unique_ptr<Store>> open(Options options);

}  // namespace semel::postgres
