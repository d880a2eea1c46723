// What PostgreSQL's and libpq's failures mean: SQLSTATE -> what to do next, and what is certain.
#pragma once

#include <libpq-fe.h>

#include <semel/error.hpp>
#include <string>
#include <string_view>

namespace semel::postgres {

/// What the server said of one command. All of it is empty where the connection ended without a word.
struct Complaint {
  std::string sqlstate{};
  std::string message{};
  std::string schema{};           ///< of the table whose constraint was violated
  std::string table{};            ///< the same
  std::string server_function{};  ///< in the server's own source: tells apart what one SQLSTATE covers
  bool fatal = false;             ///< the server ends the connection

  static Complaint of(const PGresult* result);
  /// A prepared read whose table got other columns meanwhile; prepared anew it works.
  bool is_about_an_outdated_statement() const;
};

/// The error of a command inside a transaction that has not been committed: certain to be `not_applied`.
Error translate(const Complaint& complaint);

/// The error of one of our own statements: a table that is not there means that the schema is missing.
Error translate_own(const Complaint& complaint);

/// The error of an attempt to connect; `message` is libpq's, `sqlstate` the server's where it said one.
Error translate_refusal(std::string_view sqlstate, std::string message);

/// The connection ended. After COMMIT was sent nobody can say what became of the transaction.
Error lost_connection(const Complaint& complaint, bool commit_sent);

/// `text` on one line, without what libpq quotes from a connection string that it could not read: part of it may be a
/// password.
std::string without_quotations(std::string_view text);

}  // namespace semel::postgres
