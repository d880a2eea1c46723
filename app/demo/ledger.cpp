#include "demo/ledger.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <semel/stores/sqlite.hpp>
#include <semel/work.hpp>
#include <sstream>
#include <thread>
#include <utility>

#include "demo/step_gate.hpp"

namespace semel::demo {

namespace {

/// One transaction on a database, through the store's own session.
template <class F>
auto in_transaction(const std::string& database, F&& work) -> Result<std::invoke_result_t<F&, SqlSession&>> {
  auto store = sqlite::open({.path = database});
  if (!store) return std::move(store).error();
  auto session = (*store)->open_session();
  if (!session) return std::move(session).error();
  if (auto begun = (*session)->begin(); !begun) return std::move(begun).error();
  auto value = work(static_cast<SqlSession&>(**session));
  if (auto committed = (*session)->commit(); !committed) return std::move(committed).error();
  return value;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

Error socket_error(const std::string& path) {
  return fix_call(ErrorCode::source_unreadable, "ledger socket " + path + ": " + std::strerror(errno));
}

/// The next line; nothing once the other side has closed.
std::optional<std::string> read_line(int socket) {
  std::string line;
  char c = 0;
  while (read(socket, &c, 1) == 1) {
    if (c == '\n') return line;
    line += c;
  }
  return std::nullopt;
}

void write_line(int socket, const std::string& line) {
  [[maybe_unused]] const auto count = send(socket, (line + "\n").data(), line.size() + 1, MSG_NOSIGNAL);
}

void serve_connection(int socket, Session& session, std::mutex& one_writer) {
  while (const auto line = read_line(socket)) {
    std::istringstream words(*line);
    std::string word;
    std::string payment;
    long long cents = 0;
    words >> word >> payment >> cents;
    const std::lock_guard lock(one_writer);
    session.begin().value();
    const Value row[] = {to_value(payment), to_value(cents)};
    static_cast<SqlSession&>(session).execute("INSERT INTO ledger (payment_id, cents) VALUES ($1, $2)", row).value();
    session.commit().value();
    write_line(socket, "ok");
  }
  close(socket);
}

}  // namespace

int serve_ledger(const std::string& database, const std::string& socket_path) {
  auto store = sqlite::open({.path = database}).value();
  auto session = store->open_session().value();
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = address_of(socket_path);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 || listen(listener, 16) != 0)
    throw Failure(socket_error(socket_path));
  std::mutex one_writer;
  reach_step("ready");
  while (true) {
    const int connection = accept(listener, nullptr, nullptr);
    if (connection < 0) continue;
    std::thread([connection, &session, &one_writer] { serve_connection(connection, *session, one_writer); }).detach();
  }
}

Result<LedgerClient> LedgerClient::connect(const std::string& socket_path) {
  LedgerClient client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = address_of(socket_path);
  if (::connect(client.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return socket_error(socket_path);
  return client;
}

LedgerClient::LedgerClient(LedgerClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
LedgerClient::~LedgerClient() {
  if (socket_ >= 0) close(socket_);
}

Result<void> LedgerClient::charge(const std::string& payment, long long cents) {
  write_line(socket_, "charge " + payment + " " + std::to_string(cents));
  if (read_line(socket_) != "ok") return retry_later(ErrorCode::source_unreadable, "the ledger hung up");
  return {};
}

Result<void> create_ledger(const std::string& database) {
  auto created = in_transaction(database, [](SqlSession& session) {
    return session.execute("CREATE TABLE ledger (payment_id TEXT NOT NULL, cents INTEGER NOT NULL)", {});
  });
  if (!created) return std::move(created).error();
  return *created;
}

Result<LedgerCount> count_ledger(const std::string& database) {
  auto rows = in_transaction(database, [](SqlSession& session) {
    return session.query("SELECT count(*), count(DISTINCT payment_id) FROM ledger", {}).value();
  });
  if (!rows) return std::move(rows).error();
  const auto& row = rows->rows.at(0);
  return LedgerCount{std::get<std::int64_t>(row.at(0)), std::get<std::int64_t>(row.at(1))};
}

}  // namespace semel::demo
