// A lane's session on SQLite.
#pragma once

#include <memory>
#include <semel/sql.hpp>
#include <semel/stores/sqlite.hpp>
#include <utility>

#include "stores/sqlite/connection.hpp"

namespace semel::sqlite {

/// A session's transaction, as its ledger and its outbox use it.
class OpenTransaction {
 public:
  virtual ~OpenTransaction() = default;

  /// What `use(Connection&)` gives, where the transaction is open and nothing in it has failed; a failure is the
  /// transaction's.
  template <class Use>
  auto run(Use use) -> decltype(use(std::declval<Connection&>())) {
    if (auto ready = usable(); !ready) return ready.error();
    auto result = use(connection());
    if (!result) return fail(result.error());
    return result;
  }

 protected:
  virtual Result<void> usable() const = 0;
  virtual Connection& connection() = 0;
  virtual Error fail(Error error) = 0;
};

std::unique_ptr<SqlSession> make_session(const Options& options, std::unique_ptr<Connection> connection);

}  // namespace semel::sqlite
