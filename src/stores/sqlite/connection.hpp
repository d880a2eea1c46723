// One SQLite connection: statements, values and transactions, with every failure as an Error.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <semel/result.hpp>
#include <semel/sql.hpp>
#include <semel/stores/sqlite.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stores/sqlite/errors.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace semel::sqlite {

/// Whose SQL runs. A user's is kept from transaction control, ATTACH, and the pragmas that the promise rests on.
enum class Author { semel, user };

class Connection;

/// A prepared statement in the middle of its use. Reset when it goes; the Connection keeps it for the next time.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  /// Parameter `number` (`?1` is 1: these are numbered, `$1` is only a name) of Semel's own statements. Bytes are
  /// copied.
  Statement& bind(int number, std::int64_t value);
  Statement& bind_text(int number, std::string_view text);
  Statement& bind_bytes(int number, std::string_view bytes);
  Statement& bind_null(int number);

  /// True where there is a row to read, false at the end.
  Result<bool> step();
  /// Steps to the end.
  Result<void> finish();

  int column_count() const;
  std::string column_name(int column) const;
  Value column(int column) const;
  std::int64_t integer(int column) const;
  std::string bytes(int column) const;
  bool is_null(int column) const;

 private:
  friend class Connection;
  Statement(Connection& connection, sqlite3_stmt* handle, Author author)
      : connection_(&connection), handle_(handle), author_(author) {}

  Connection* connection_;
  sqlite3_stmt* handle_;
  Author author_;
};

/// One thread at a time. Heap-allocated and never moved: SQLite holds its address.
class Connection {
 public:
  enum class Create { yes, no };

  /// Errors say what is wrong with the path, in words.
  static Result<std::unique_ptr<Connection>> open(const Options& options, Create create);
  /// Makes `connection` one to the file that the path leads to now: opens it where there is none, or where the file
  /// was moved, deleted or replaced. Never creates a file, which would look like a store that has seen nothing.
  static Result<void> renew(std::unique_ptr<Connection>& connection, const Options& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// One of Semel's own statements, kept prepared.
  Result<Statement> prepare(std::string_view sql);
  /// A user's statement with its parameters bound. Errors: bad_statement for what is not exactly one statement or does
  /// not use exactly the parameters `$1` to `$n`, bad_value, handler_misused.
  Result<Statement> prepare_user(std::string_view sql, std::span<const Value> parameters);

  Result<void> begin();
  Result<void> commit();
  void rollback() noexcept;
  /// Runs a script of Semel's own.
  Result<void> run_script(const std::string& sql);
  /// One integer or text that a statement of Semel's own returns; nothing where it returns no row.
  Result<std::optional<Value>> look_up(std::string_view sql);

  bool in_transaction() const;
  /// The path leads elsewhere, or nowhere, since the file was opened: what is written here is lost.
  bool file_has_moved() const;
  std::int64_t total_changes() const;
  std::int64_t changes() const;
  Error error(int result, Phase phase, std::string_view doing) const;

 private:
  struct Prepared {
    sqlite3_stmt* handle = nullptr;
    std::vector<std::size_t> parameters;  ///< of each of SQLite's parameters, which value it takes, from 0
  };

  explicit Connection(std::string path) : path_(std::move(path)) {}
  Result<void> open_file(Create create);
  Result<void> apply(const Options& options);
  Result<void> use_write_ahead_log(std::chrono::milliseconds patience);
  Result<void> control(std::string_view sql, Phase phase, std::string_view doing);
  Result<const Prepared*> prepared(std::string_view sql, Author author);
  Result<sqlite3_stmt*> compile(std::string_view sql, Author author);
  Result<void> refuse_second_statement(const char* rest, const char* end) const;
  static int authorise(void* self, int action, const char*, const char*, const char*, const char*);

  friend class Statement;
  std::string path_;
  sqlite3* handle_ = nullptr;
  Author author_ = Author::semel;
  std::unordered_map<std::string, Prepared> cache_[2];
};

}  // namespace semel::sqlite
