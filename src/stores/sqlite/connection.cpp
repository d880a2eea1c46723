#include "stores/sqlite/connection.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "stores/sqlite/binding.hpp"

namespace semel::sqlite {
namespace {

namespace fs = std::filesystem;

/// Above this many kept statements all are dropped: SQL is meant to be a handful of constant texts with parameters.
constexpr std::size_t kept_statements_max = 256;

/// Pragmas that could undo what the store promises.
constexpr std::array guarded_pragmas{"synchronous",
                                     "journal_mode",
                                     "locking_mode",
                                     "writable_schema",
                                     "schema_version",
                                     "fullfsync",
                                     "ignore_check_constraints",
                                     "query_only",
                                     "wal_checkpoint"};

bool may_write(const fs::path& path) { return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0; }

fs::path folder_of(const std::string& path) {
  const auto folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

Error store_error(Remedy remedy, ErrorCode code, std::string message) {
  return {remedy, Certainty::not_applied, code, std::move(message)};
}

/// What people can do something about, looked for once opening has failed; else `error` as it is.
Error explain(const std::string& path, Error error) {
  std::error_code ignored;
  const auto folder = folder_of(path);
  if (fs::is_directory(path, ignored))
    return store_error(Remedy::fix_call, ErrorCode::store_unreachable, path + " is a directory, not a database file");
  if (!fs::is_directory(folder, ignored))
    return store_error(Remedy::retry_later, ErrorCode::store_unreachable,
                       "cannot open " + path + ": there is no directory " + folder.string());
  if (fs::exists(path, ignored) && ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0)
    return store_error(Remedy::ask_operator, ErrorCode::permission_denied, "no permission to read " + path);
  if (error.code != ErrorCode::store_damaged && !may_write(folder))
    return store_error(Remedy::ask_operator, ErrorCode::permission_denied,
                       "no permission to create files in " + folder.string() + ", which SQLite needs for " + path);
  return error;
}

/// "$3" is 3; nothing for any other name.
std::optional<std::size_t> placeholder_number(const char* name) {
  if (!name || name[0] != '$') return std::nullopt;
  const std::string_view digits(name + 1);
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failed != std::errc{} || end != digits.data() + digits.size() || number == 0) return std::nullopt;
  return number;
}

/// Which value each of SQLite's parameters takes. `$2, $1, $1` becomes 1, 0: SQLite numbers by first appearance.
Result<std::vector<std::size_t>> placeholders(sqlite3_stmt* statement) {
  std::vector<std::size_t> numbers;
  for (int index = 1; index <= sqlite3_bind_parameter_count(statement); ++index) {
    const auto* name = sqlite3_bind_parameter_name(statement, index);
    const auto number = placeholder_number(name);
    if (!number)
      return fix_call(ErrorCode::bad_statement,
                      std::string("placeholders are $1, $2, and so on; this is ") + (name ? name : "a bare ?"));
    numbers.push_back(*number - 1);
  }
  return numbers;
}

Result<void> check_parameter_count(std::span<const std::size_t> used, std::size_t given) {
  const auto needed = used.empty() ? 0 : *std::ranges::max_element(used) + 1;
  if (needed == given && used.size() == given) return {};
  if (needed == given) return fix_call(ErrorCode::bad_statement, "the statement does not use all of its parameters");
  return fix_call(ErrorCode::bad_statement, "the statement uses parameters up to $" + std::to_string(needed) +
                                                ", but " + std::to_string(given) + " were given");
}

int synchronous_level(Options::Synchronous setting) {
  switch (setting) {
    case Options::Synchronous::full:
      return 2;
    case Options::Synchronous::normal:
      return 1;
    case Options::Synchronous::off:
      return 0;
  }
  return 2;
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : connection_(other.connection_), handle_(std::exchange(other.handle_, nullptr)), author_(other.author_) {}

Statement::~Statement() {
  if (!handle_) return;
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
}

Statement& Statement::bind(int number, std::int64_t value) { return sqlite3_bind_int64(handle_, number, value), *this; }
Statement& Statement::bind_null(int number) { return sqlite3_bind_null(handle_, number), *this; }
Statement& Statement::bind_text(int number, std::string_view text) {
  sqlite3_bind_text64(handle_, number, text.data() ? text.data() : "", text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}
Statement& Statement::bind_bytes(int number, std::string_view bytes) {
  sqlite3_bind_blob64(handle_, number, bytes.data() ? bytes.data() : "", bytes.size(), SQLITE_TRANSIENT);
  return *this;
}

Result<bool> Statement::step() {
  connection_->author_ = author_;  // SQLite may compile the statement anew here, and ask `authorise` again
  const int result = sqlite3_step(handle_);
  connection_->author_ = Author::semel;
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return connection_->error(result, Phase::statement, "statement failed");
}

Result<void> Statement::finish() {
  for (;;) {
    const auto more = step();
    if (!more) return more.error();
    if (!*more) return {};
  }
}

int Statement::column_count() const { return sqlite3_column_count(handle_); }
std::string Statement::column_name(int column) const { return sqlite3_column_name(handle_, column); }
Value Statement::column(int column) const { return read_value(handle_, column); }
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }
bool Statement::is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
std::string Statement::bytes(int column) const {
  const auto* start = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  return {start ? start : "", static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
}

Result<std::unique_ptr<Connection>> Connection::open(const Options& options, Create create) {
  if (options.path.empty() || options.path == ":memory:" || options.path.find('\0') != std::string::npos)
    return fix_call(ErrorCode::config_bad_value, "the store needs the path of a file");
  std::unique_ptr<Connection> connection(new Connection(options.path));
  if (auto opened = connection->open_file(create); !opened) return explain(options.path, std::move(opened).error());
  if (auto applied = connection->apply(options); !applied) return explain(options.path, std::move(applied).error());
  return connection;
}

Connection::~Connection() {
  for (auto& cache : cache_)
    for (auto& [sql, prepared] : cache) sqlite3_finalize(prepared.handle);
  sqlite3_close(handle_);
}

Result<void> Connection::open_file(Create create) {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (create == Create::yes ? SQLITE_OPEN_CREATE : 0);
  const int result = sqlite3_open_v2(path_.c_str(), &handle_, flags, nullptr);
  if (result != SQLITE_OK) return error(result, Phase::statement, "cannot open " + path_);
  if (sqlite3_db_readonly(handle_, "main") == 1)
    return store_error(Remedy::ask_operator, ErrorCode::store_read_only, "no permission to write " + path_);
  return {};
}

Result<void> Connection::apply(const Options& options) {
  sqlite3_busy_timeout(handle_, static_cast<int>(options.lock_timeout.count()));
  sqlite3_set_authorizer(handle_, &Connection::authorise, this);
  if (auto readable = look_up("PRAGMA schema_version"); !readable) {
    auto error = std::move(readable).error();
    error.message = path_ + ": " + error.message;
    return error;
  }
  if (auto set = use_write_ahead_log(options.lock_timeout); !set) return set;
  // fullfsync is for the one system whose fsync does not reach the platter; elsewhere it means nothing.
  return run_script("PRAGMA synchronous=" + std::to_string(synchronous_level(options.synchronous)) +
                    "; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1; PRAGMA cache_size=-" +
                    std::to_string(options.cache_mebibytes * 1024));
}

/// Changing the mode needs the file alone, and SQLite does not wait for that by itself: two processes that create one
/// file at once meet here. A mode that stays another is for `check` to refuse.
Result<void> Connection::use_write_ahead_log(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto mode = look_up("PRAGMA journal_mode=WAL");
    if (mode) return {};
    if (mode.error().code != ErrorCode::lock_timeout || std::chrono::steady_clock::now() >= deadline)
      return mode.error();
    sqlite3_sleep(5);
  }
}

Result<Statement> Connection::prepare(std::string_view sql) {
  const auto found = prepared(sql, Author::semel);
  if (!found) return found.error();
  return Statement(*this, (*found)->handle, Author::semel);
}

Result<Statement> Connection::prepare_user(std::string_view sql, std::span<const Value> parameters) {
  const auto found = prepared(sql, Author::user);
  if (!found) return found.error();
  const auto& numbers = (*found)->parameters;
  if (auto counted = check_parameter_count(numbers, parameters.size()); !counted) return counted.error();
  Statement statement(*this, (*found)->handle, Author::user);
  for (std::size_t index = 0; index < numbers.size(); ++index) {
    auto bound = bind_value(statement.handle_, static_cast<int>(index) + 1, parameters[numbers[index]]);
    if (!bound)
      return fix_call(bound.error().code,
                      "parameter $" + std::to_string(numbers[index] + 1) + ": " + bound.error().message);
  }
  return statement;
}

Result<const Connection::Prepared*> Connection::prepared(std::string_view sql, Author author) {
  auto& cache = cache_[static_cast<std::size_t>(author)];
  std::string text(sql);
  if (const auto found = cache.find(text); found != cache.end()) return &found->second;
  if (cache.size() >= kept_statements_max) {
    for (auto& [old, kept] : cache) sqlite3_finalize(kept.handle);
    cache.clear();
  }
  const auto handle = compile(sql, author);
  if (!handle) return handle.error();
  Prepared fresh{*handle, {}};
  if (author == Author::user) {
    auto numbers = placeholders(*handle);
    if (!numbers) return sqlite3_finalize(*handle), std::move(numbers).error();
    fresh.parameters = std::move(*numbers);
  }
  return &cache.emplace(std::move(text), std::move(fresh)).first->second;
}

Result<sqlite3_stmt*> Connection::compile(std::string_view sql, Author author) {
  if (sql.find('\0') != sql.npos) return fix_call(ErrorCode::bad_statement, "SQL with a NUL in it");
  const char* const end = sql.data() + sql.size();
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  author_ = author;
  const int result = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                        &statement, &rest);
  author_ = Author::semel;
  if (result == SQLITE_AUTH)
    return fix_call(ErrorCode::handler_misused,
                    "the transaction is the engine's: no BEGIN, COMMIT, ROLLBACK, SAVEPOINT, ATTACH, or settings of "
                    "the database in a handler's SQL");
  if (result != SQLITE_OK) return error(result, Phase::statement, "cannot read the SQL");
  if (!statement) return fix_call(ErrorCode::bad_statement, "there is no statement in the SQL");
  if (auto single = refuse_second_statement(rest, end); !single)
    return sqlite3_finalize(statement), std::move(single).error();
  return statement;
}

/// After the first statement only blanks, comments and semicolons may follow.
Result<void> Connection::refuse_second_statement(const char* rest, const char* end) const {
  while (rest < end) {
    sqlite3_stmt* second = nullptr;
    const int result = sqlite3_prepare_v2(handle_, rest, static_cast<int>(end - rest), &second, &rest);
    sqlite3_finalize(second);
    if (result != SQLITE_OK || second)
      return fix_call(ErrorCode::bad_statement, "more than one statement in the SQL; send them one by one");
  }
  return {};
}

int Connection::authorise(void* self, int action, const char* name, const char* argument, const char*, const char*) {
  if (static_cast<Connection*>(self)->author_ == Author::semel) return SQLITE_OK;
  switch (action) {
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
      return SQLITE_DENY;
    case SQLITE_PRAGMA:
      if (!argument) return SQLITE_OK;
      return std::ranges::any_of(guarded_pragmas, [&](const char* pragma) { return ::strcasecmp(name, pragma) == 0; })
                 ? SQLITE_DENY
                 : SQLITE_OK;
    default:
      return SQLITE_OK;
  }
}

Result<void> Connection::renew(std::unique_ptr<Connection>& connection, const Options& options) {
  if (connection && !connection->file_has_moved()) return {};
  connection.reset();
  auto opened = open(options, Create::no);
  if (!opened) return std::move(opened).error();
  connection = std::move(*opened);
  return {};
}

Result<void> Connection::begin() {
  // IMMEDIATE: a transaction that reads first and then wants to write fails at once, whatever the timeout, when
  // somebody has written between; asked for at the start, the lock is waited for.
  return control("BEGIN IMMEDIATE", Phase::statement, "cannot begin a transaction");
}

Result<void> Connection::commit() { return control("COMMIT", Phase::commit, "cannot commit"); }

Result<void> Connection::control(std::string_view sql, Phase phase, std::string_view doing) {
  const auto statement = prepare(sql);
  if (!statement) return statement.error();
  const int result = sqlite3_step(statement->handle_);
  if (result != SQLITE_DONE) return error(result, phase, std::string(doing) + " on " + path_);
  return {};
}

void Connection::rollback() noexcept {
  if (in_transaction()) sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<void> Connection::run_script(const std::string& sql) {
  const int result = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return error(result, Phase::statement, "statement failed");
  return {};
}

Result<std::optional<Value>> Connection::look_up(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  const auto row = statement->step();
  if (!row) return row.error();
  return *row ? std::optional(statement->column(0)) : std::nullopt;
}

bool Connection::in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }

bool Connection::file_has_moved() const {
  int moved = 0;
  return sqlite3_file_control(handle_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

std::int64_t Connection::total_changes() const { return sqlite3_total_changes64(handle_); }
std::int64_t Connection::changes() const { return sqlite3_changes64(handle_); }

Error Connection::error(int result, Phase phase, std::string_view doing) const {
  return translate(result, phase, doing, handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(result));
}

}  // namespace semel::sqlite
