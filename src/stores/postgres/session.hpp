// A lane's session on a PostgreSQL server.
#pragma once

#include <functional>
#include <memory>
#include <semel/stores/postgres.hpp>

#include "stores/postgres/schema.hpp"

namespace semel::postgres {

/// A session's transaction, as its ledger and its outbox write through it.
class OpenTransaction {
 public:
  virtual ~OpenTransaction() = default;

  /// Errors: handler_misused where none is open; what failed in it before.
  virtual Result<void> usable() const = 0;
  /// Queues one of our own statements, in the binary format.
  virtual Result<void> send(std::string_view sql, const Parameters& parameters) = 0;
  /// The same, of a statement on so many rows.
  virtual Result<void> send(const ArrayStatement& statement, std::size_t rows, const Parameters& parameters) = 0;
  /// Runs one of our own statements, planned anew: a plan kept from when its table was empty would read all of it. Its
  /// result lives until the next statement.
  virtual Result<const PGresult*> ask(std::string_view sql, const Parameters& parameters) = 0;
  /// The same, of a statement on so many rows; for one row its plan is kept.
  virtual Result<const PGresult*> ask(const ArrayStatement& statement, std::size_t rows,
                                      const Parameters& parameters) = 0;
  /// Queues one; `read` is given its result once the transaction is committed. One at a time.
  virtual Result<void> ask_at_commit(const ArrayStatement& statement, std::size_t rows, const Parameters& parameters,
                                     std::function<void(const PGresult*)> read) = 0;
  /// Nothing of the transaction can be committed any more.
  virtual Error fail(Error error) = 0;
};

/// Connects at the first `begin`. `options` and `statements` outlive it.
std::unique_ptr<SqlSession> make_session(const Options& options, const Statements& statements);

}  // namespace semel::postgres
