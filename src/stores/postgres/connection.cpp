#include "stores/postgres/connection.hpp"

#include <poll.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace semel::postgres {

namespace {

constexpr std::size_t commands_max = 1'000;
constexpr std::size_t bytes_max = 8 << 20;
constexpr std::size_t statements_max = 256;
constexpr int statement_uses_max = 1'024;

using ConnectionOptions = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

ConnectionOptions parsed(const std::string& text, std::string* problem = nullptr) {
  char* message = nullptr;
  ConnectionOptions options(PQconninfoParse(text.c_str(), &message), &PQconninfoFree);
  if (message && problem) *problem = message;
  PQfreemem(message);
  return options;
}

/// Keywords and values as libpq takes them; a later one overrules an earlier one.
struct Keywords {
  std::vector<const char*> names;
  std::vector<const char*> values;
  void add(const char* name, const std::string& value) {
    names.push_back(name);
    values.push_back(value.c_str());
  }
};

/// Calls `connect(names, values)` with our defaults, the user's string over them, and what we cannot do without.
template <class Connect>
PGconn* with_keywords(const Options& options, Connect connect) {
  const auto seconds = std::to_string(std::max<std::int64_t>(2, options.connect_timeout.count() / 1000));
  // A peer that vanished without a word is noticed by these, not by a timeout that could end a slow statement.
  const std::string idle = "15", interval = "5", count = "3", unacknowledged_ms = "30000";
  const std::string name = "semel", encoding = "UTF8";
  Keywords keywords;
  keywords.add("connect_timeout", seconds);
  keywords.add("keepalives_idle", idle);
  keywords.add("keepalives_interval", interval);
  keywords.add("keepalives_count", count);
  keywords.add("tcp_user_timeout", unacknowledged_ms);
  keywords.add("fallback_application_name", name);
  keywords.add("dbname", options.connection);  // a whole connection string is read here
  keywords.add("client_encoding", encoding);
  keywords.names.push_back(nullptr);
  keywords.values.push_back(nullptr);
  constexpr int read_string_in_dbname = 1;
  return connect(keywords.names.data(), keywords.values.data(), read_string_in_dbname);
}

void ignore_notice(void*, const PGresult*) {}

bool wait_for(PGconn* handle, short events, int milliseconds) {
  pollfd socket{.fd = PQsocket(handle), .events = events, .revents = 0};
  int ready = 0;
  do ready = poll(&socket, 1, milliseconds);
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

/// The SQLSTATE in a message that libpq made with verbose errors: "FATAL:  28P01: password …".
std::string sqlstate_in(std::string_view message) {
  const auto is_code = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); });
  };
  for (auto at = message.find(":  "); at != message.npos; at = message.find(":  ", at + 1)) {
    const auto code = message.substr(at + 3, 5);
    if (code.size() == 5 && is_code(code) && message.substr(at + 8, 1) == ":") return std::string(code);
  }
  return "";
}

}  // namespace

std::string settings_sql(const Options& options, SettingsLast last) {
  const auto setting = [&](const char* name, std::chrono::milliseconds time) {
    return std::string("set_config('") + name + "', '" + std::to_string(time.count()) +
           (last == SettingsLast::transaction ? "', true)" : "', false)");
  };
  return "SELECT " + setting("lock_timeout", options.lock_timeout) + ", " +
         setting("statement_timeout", options.statement_timeout) + ", " +
         // A handler that hangs must not hold its keys for ever.
         setting("idle_in_transaction_session_timeout", options.statement_timeout * 2);
}

Result<void> check_connection_string(const std::string& text) {
  const auto wrong = [](const std::string& what) {
    return fix_call(ErrorCode::config_bad_value, "the PostgreSQL connection string cannot be read: " + what);
  };
  if (text.find('\0') != text.npos) return wrong("it has a NUL byte");
  std::string problem;
  const auto options = parsed(text, &problem);
  if (!options) return wrong(without_quotations(problem));
  for (const auto* option = options.get(); option->keyword; ++option)
    if (std::string_view(option->keyword) == "host" && option->val && std::strchr(option->val, '@'))
      return wrong("the host has an @ in it; an @ in a password is written %40");
  return {};
}

Connection::Connection(Handle handle, bool prepared_statements)
    : handle_(std::move(handle)), prepared_statements_(prepared_statements) {}

Connection::Handle Connection::attempt(const Options& options) {
  return Handle(with_keywords(options, PQconnectdbParams));
}

/// libpq says why a server refused only as text, in the server's language, unless asked for the code before the
/// connection is made. So a failed attempt is made once more, to be asked; should it succeed, the better.
Result<Connection::Handle> Connection::attempt_for_reason(const Options& options, const std::string& first_message) {
  Handle handle(with_keywords(options, PQconnectStartParams));
  if (!handle) return retry_later(ErrorCode::store_unreachable, "out of memory");
  PQsetErrorVerbosity(handle.get(), PQERRORS_VERBOSE);
  const auto deadline =
      std::chrono::steady_clock::now() + std::min(options.connect_timeout, std::chrono::milliseconds(2'000));
  auto state = PQstatus(handle.get()) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (left.count() <= 0 || !wait_for(handle.get(), events, static_cast<int>(left.count()))) break;
    state = PQconnectPoll(handle.get());
  }
  if (state != PGRES_POLLING_OK) return translate_refusal(sqlstate_in(PQerrorMessage(handle.get())), first_message);
  PQsetErrorVerbosity(handle.get(), PQERRORS_DEFAULT);
  return handle;
}

Result<std::unique_ptr<Connection>> Connection::connect(const Options& options) {
  auto handle = attempt(options);
  if (!handle) return retry_later(ErrorCode::store_unreachable, "out of memory");
  if (PQstatus(handle.get()) != CONNECTION_OK) {
    auto second = attempt_for_reason(options, PQerrorMessage(handle.get()));
    if (!second) return second.error();
    handle = *std::move(second);
  }
  PQsetNoticeReceiver(handle.get(), ignore_notice, nullptr);
  std::unique_ptr<Connection> connection(new Connection(std::move(handle), options.prepared_statements));
  // Behind a pooler the session is not ours to set: each transaction sets its own.
  if (options.prepared_statements)
    if (auto set = connection->run_script(settings_sql(options, SettingsLast::session)); !set) return set.error();
  if (PQsetnonblocking(connection->handle_.get(), 1) != 0 || PQenterPipelineMode(connection->handle_.get()) != 1)
    return retry_later(ErrorCode::store_unreachable, PQerrorMessage(connection->handle_.get()));
  return connection;
}

bool Connection::alive() {
  while (PQstatus(handle_.get()) == CONNECTION_OK) {
    if (!wait_for(handle_.get(), POLLIN, 0)) return true;
    if (PQconsumeInput(handle_.get()) != 1) break;
    PQisBusy(handle_.get());  // reads what came, such as the server's good-bye, so that the end behind it is seen
  }
  return false;
}

std::optional<Breakdown> Connection::send(const Command& command) {
  if (sent_.size() >= commands_max || bytes_sent_ >= bytes_max)
    if (auto breakdown = finish()) return breakdown;
  if (!dispatch(command)) return lost();
  if (command.keeps_result) kept_.reset();
  sent_.push_back({.purpose = command.purpose, .mark = command.mark, .keeps_result = command.keeps_result});
  bytes_sent_ += command.sql.size() + command.parameters.size();
  return std::nullopt;
}

bool Connection::dispatch(const Command& command) {
  const auto values = command.parameters.values();
  const auto lengths = command.parameters.lengths();
  const int count = static_cast<int>(command.parameters.count());
  const auto* formats = command.parameters.formats().data();
  const int result_format = command.binary_result ? 1 : 0;
  if (const auto* name = statement_name(command))
    return PQsendQueryPrepared(handle_.get(), name->c_str(), count, values.data(), lengths.data(), formats,
                               result_format) == 1;
  return PQsendQueryParams(handle_.get(), std::string(command.sql).c_str(), count, command.parameters.types().data(),
                           values.data(), lengths.data(), formats, result_format) == 1;
}

const std::string* Connection::statement_name(const Command& command) {
  if (!prepared_statements_ || !command.reusable) return nullptr;
  std::string key(command.sql);
  for (const Oid type : command.parameters.types()) key.append(1, '\0').append(std::to_string(type));
  const auto found = statements_.find(key);
  if (found == statements_.end()) {
    if (statements_.size() >= statements_max) forget_oldest_statement();
    statements_by_age_.push_back(key);
    return prepare(command, key, Statement().uses_max);
  }
  auto& statement = found->second;
  const bool has_plan = command.purpose == Purpose::own || command.purpose == Purpose::effect;
  if (!has_plan || statement.uses++ < statement.uses_max) return &statement.name;
  deallocate(statement);
  return prepare(command, key, std::min(statement.uses_max * 2, statement_uses_max));
}

const std::string* Connection::prepare(const Command& command, const std::string& key, int uses_max) {
  const auto name = "semel_" + std::to_string(++statement_number_);
  if (PQsendPrepare(handle_.get(), name.c_str(), std::string(command.sql).c_str(),
                    static_cast<int>(command.parameters.count()), command.parameters.types().data()) != 1)
    return nullptr;
  sent_.push_back({.purpose = command.purpose, .mark = command.mark, .prepares = key});
  const Statement statement{.name = name, .uses = 1, .uses_max = uses_max};
  return &statements_.insert_or_assign(key, statement).first->second.name;
}

void Connection::deallocate(const Statement& statement) {
  const auto sql = "DEALLOCATE " + statement.name;
  if (PQsendQueryParams(handle_.get(), sql.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0) == 1)
    sent_.push_back({.purpose = Purpose::own, .mark = std::nullopt});
}

void Connection::forget_oldest_statement() {
  const auto oldest = statements_.find(statements_by_age_.front());
  statements_by_age_.pop_front();
  if (oldest == statements_.end()) return;  // its preparation failed
  deallocate(oldest->second);
  statements_.erase(oldest);
}

std::optional<Breakdown> Connection::finish() {
  last_.reset();
  if (sent_.empty()) return std::nullopt;
  if (PQpipelineSync(handle_.get()) != 1 || !flush()) return lost();
  std::optional<Breakdown> breakdown;
  for (const auto& sent : sent_) {
    collect(sent, breakdown);
    if (breakdown && breakdown->lost) return breakdown;
    if (sent.keeps_result) kept_ = std::move(last_);
  }
  sent_.clear();
  bytes_sent_ = 0;
  const ResultHandle sync(PQgetResult(handle_.get()));
  if (PQresultStatus(sync.get()) != PGRES_PIPELINE_SYNC) return lost();
  return breakdown;
}

/// Reads what came of one command; the first failure is kept, what follows it was skipped.
void Connection::collect(const Sent& sent, std::optional<Breakdown>& breakdown) {
  last_.reset(PQgetResult(handle_.get()));
  const auto status = PQresultStatus(last_.get());
  const bool done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
  if (!done && !sent.prepares.empty()) statements_.erase(sent.prepares);
  if (status == PGRES_FATAL_ERROR && !breakdown) {
    breakdown = Breakdown{.purpose = sent.purpose, .mark = sent.mark, .complaint = Complaint::of(last_.get())};
    breakdown->lost = breakdown->complaint.fatal || PQstatus(handle_.get()) != CONNECTION_OK;
  } else if (!done && status != PGRES_PIPELINE_ABORTED) {
    breakdown = lost();  // nothing more to read, or a state (COPY) that cannot be left
  }
  if (breakdown && breakdown->lost) return;
  // A command ends with a null result.
  while (const ResultHandle more{PQgetResult(handle_.get())}) {
  }
}

/// Sends what is queued. Reads what arrives meanwhile, or the server might wait for us while we wait for it.
bool Connection::flush() {
  for (;;) {
    const int left = PQflush(handle_.get());
    if (left <= 0) return left == 0;
    if (!wait_for(handle_.get(), POLLIN | POLLOUT, -1) || PQconsumeInput(handle_.get()) != 1) return false;
  }
}

Breakdown Connection::lost() {
  Complaint complaint;
  complaint.message = without_quotations(PQerrorMessage(handle_.get()));
  return {.purpose = Purpose::own, .mark = std::nullopt, .complaint = std::move(complaint), .lost = true};
}

Result<void> Connection::run_script(const std::string& sql) {
  assert(sent_.empty());
  const bool pipelined = PQpipelineStatus(handle_.get()) != PQ_PIPELINE_OFF;
  if (pipelined) PQexitPipelineMode(handle_.get());
  const ResultHandle result(PQexec(handle_.get(), sql.c_str()));
  const auto status = PQresultStatus(result.get());
  const auto complaint = Complaint::of(result.get());
  if (pipelined && PQstatus(handle_.get()) == CONNECTION_OK) PQenterPipelineMode(handle_.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
  if (PQstatus(handle_.get()) != CONNECTION_OK) return lost_connection(complaint, false);
  return translate_own(complaint);
}

bool Connection::in_transaction() const {
  const auto status = PQtransactionStatus(handle_.get());
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR || status == PQTRANS_ACTIVE;
}

std::string_view Connection::reported(const char* setting) const {
  const char* value = PQparameterStatus(handle_.get(), setting);
  return value ? value : "";
}

}  // namespace semel::postgres
