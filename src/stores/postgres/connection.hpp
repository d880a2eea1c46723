// One connection to a server, in libpq's pipeline mode: commands are sent without waiting, and `finish` collects what
// came of them.
//
//   send(BEGIN) send(INSERT) send(SELECT) finish()        one round trip
//      └─ after a failure the server skips the rest up to the sync that `finish` sends, a COMMIT among them
//
// Whoever sends much without reading could wait for a server that waits for him. Therefore the socket does not block,
// flushing reads what arrives meanwhile, and after a bounded number of commands or bytes `send` finishes by itself.
#pragma once

#include <libpq-fe.h>

#include <deque>
#include <memory>
#include <optional>
#include <semel/stores/postgres.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stores/postgres/errors.hpp"
#include "stores/postgres/wire.hpp"

namespace semel::postgres {

/// What a command is for; it decides what its failure means.
enum class Purpose { begin, own, effect, commit, rollback };

struct Command {
  Purpose purpose;
  std::string_view sql;
  const Parameters& parameters;
  std::optional<std::size_t> mark{};  ///< the message that it was sent for
  bool reusable = true;               ///< worth a named statement on the server
  bool binary_result = false;
  bool keeps_result = false;  ///< for `kept`
};

/// The first thing that went wrong since the last `finish`.
struct Breakdown {
  Purpose purpose;  ///< of the command that failed; meaningless where `lost`
  std::optional<std::size_t> mark;
  Complaint complaint;
  bool lost = false;  ///< the connection is gone
};

struct ResultDeleter {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultHandle = std::unique_ptr<PGresult, ResultDeleter>;

/// One thread at a time. Destroying it closes the connection, upon which the server rolls back.
class Connection {
 public:
  /// Errors: store_unreachable, permission_denied; no password in any message.
  static Result<std::unique_ptr<Connection>> connect(const Options& options);

  /// False where the server is known to be gone; one system call. True is no promise.
  bool alive();

  /// Queues one command. A Breakdown here is of one that was sent earlier, or the connection's.
  std::optional<Breakdown> send(const Command& command);

  /// Waits for everything that was sent. `last` is then the last command's result.
  std::optional<Breakdown> finish();
  const PGresult* last() const { return last_.get(); }
  /// What the last command that asked to keep its result has brought; null until a `finish` has read it. It may be read
  /// before the pipeline that ends the transaction: a pipeline that is full ends by itself.
  const PGresult* kept() const { return kept_.get(); }

  /// Runs several statements, waiting; only while nothing is queued. Ends at the first that fails.
  Result<void> run_script(const std::string& sql);

  /// After `finish`: whether a transaction is open on the server, failed or not.
  bool in_transaction() const;
  /// A setting that the server reports by itself, such as "in_hot_standby" (14 and newer); empty where it does not.
  std::string_view reported(const char* setting) const;
  int server_version() const { return PQserverVersion(handle_.get()); }

 private:
  struct HandleDeleter {
    void operator()(PGconn* handle) const { PQfinish(handle); }
  };
  using Handle = std::unique_ptr<PGconn, HandleDeleter>;

  struct Sent {
    Purpose purpose;
    std::optional<std::size_t> mark;
    std::string prepares{};  ///< the key of the statement that this one prepares
    bool keeps_result = false;
  };

  Connection(Handle handle, bool prepared_statements);

  static Handle attempt(const Options& options);
  static Result<Handle> attempt_for_reason(const Options& options, const std::string& first_message);

  /// A statement on the server. A plan fits the tables as they were when it was made: it is made anew after 16 uses,
  /// 32, 64 and so on, so that a table which grew by those uses is never much bigger than its plan took it for.
  struct Statement {
    std::string name;
    int uses = 0;
    int uses_max = 16;
  };

  /// The name to run `command` by; null for an unnamed statement. Queues its preparation where it is new or old.
  const std::string* statement_name(const Command& command);
  const std::string* prepare(const Command& command, const std::string& key, int uses_max);
  void deallocate(const Statement& statement);
  void forget_oldest_statement();
  bool dispatch(const Command& command);
  void collect(const Sent& sent, std::optional<Breakdown>& breakdown);
  bool flush();
  Breakdown lost();

  Handle handle_;
  bool prepared_statements_;
  std::vector<Sent> sent_;
  std::size_t bytes_sent_ = 0;
  ResultHandle last_;
  ResultHandle kept_;

  std::unordered_map<std::string, Statement> statements_;  ///< by SQL and parameter types
  std::deque<std::string> statements_by_age_;
  std::uint64_t statement_number_ = 0;
};

/// The statement that sets our timeouts.
enum class SettingsLast { session, transaction };
std::string settings_sql(const Options& options, SettingsLast last);

/// Reads a connection string. Errors: config_bad_value, whose message quotes nothing of it.
Result<void> check_connection_string(const std::string& text);

}  // namespace semel::postgres
