#include "demo/ledger.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <semel/document.hpp>
#include <semel/stores/sqlite.hpp>
#include <semel/work.hpp>
#include <sstream>
#include <thread>
#include <utility>

#include "demo/step_gate.hpp"
#include "net/http_server.hpp"

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

/// The rows, and whoever waits for them. Thread-safe.
class Ledger {
 public:
  explicit Ledger(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  /// One charge more, unless `key` is known: then the number of the one that was made under it.
  std::int64_t charge(const Value& key, const std::string& payment, long long cents) {
    const std::lock_guard lock(mutex_);
    auto& sql = static_cast<SqlSession&>(*session_);
    const Value row[] = {to_value(payment), to_value(cents), key};
    const Value known[] = {key};
    session_->begin().value();
    auto found = sql.query("SELECT rowid FROM ledger WHERE idempotency_key = $1", known).value();
    const bool fresh = found.rows.empty();
    if (fresh) {
      found =
          sql.query("INSERT INTO ledger (payment_id, cents, idempotency_key) VALUES ($1, $2, $3) RETURNING rowid", row)
              .value();
    }
    session_->commit().value();
    charges_ += fresh ? 1 : 0;
    changed_.notify_all();
    return std::get<std::int64_t>(found.rows.at(0).at(0));
  }

  void wait_for(long long count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return charges_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Session> session_;
  long long charges_ = 0;
};

void serve_connection(int socket, Ledger& ledger) {
  while (const auto line = read_line(socket)) {
    std::istringstream words(*line);
    std::string word;
    words >> word;
    if (word == "wait") {
      long long count = 0;
      words >> count;
      ledger.wait_for(count);
    } else {
      std::string payment;
      long long cents = 0;
      words >> payment >> cents;
      ledger.charge(nullptr, payment, cents);
    }
    write_line(socket, "ok");
  }
  close(socket);
}

net::Response serve_charge(Ledger& ledger, const net::Request& request) {
  const auto body = Document::parse(request.body);
  const auto payment = body ? body->at("/payment") : std::nullopt;
  const auto cents = body ? body->at("/cents") : std::nullopt;
  if (request.path() != "/charges" || !payment || !cents || !cents->integer()) return {.status = 400};
  const auto key = request.headers.find("Idempotency-Key");
  const auto number = ledger.charge(key ? to_value(std::string(*key)) : Value(nullptr), std::string(payment->text()),
                                    *cents->integer());
  return {.status = 201,
          .headers = {{"Content-Type", "application/json"}},
          .body = "{\"id\":\"ch_" + std::to_string(number) + "\"}"};
}

}  // namespace

int serve_ledger(const std::string& database, const std::string& socket_path) {
  auto store = sqlite::open({.path = database}).value();
  Ledger ledger(store->open_session().value());
  const auto server = net::serve({}, {.serve =
                                          [&ledger](net::Request request, net::Responder responder) {
                                            std::move(responder).answer(serve_charge(ledger, request));
                                          }})
                          .value();
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = address_of(socket_path);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 || listen(listener, 16) != 0)
    throw Failure(socket_error(socket_path));
  reach_step("ready " + std::to_string(server->port()));
  while (true) {
    const int connection = accept(listener, nullptr, nullptr);
    if (connection < 0) continue;
    std::thread([connection, &ledger] { serve_connection(connection, ledger); }).detach();
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
  return ask("charge " + payment + " " + std::to_string(cents));
}

Result<void> LedgerClient::wait_for(long long count) { return ask("wait " + std::to_string(count)); }

Result<void> LedgerClient::ask(const std::string& line) {
  write_line(socket_, line);
  if (read_line(socket_) != "ok") return retry_later(ErrorCode::source_unreadable, "the ledger hung up");
  return {};
}

Result<void> create_ledger(const std::string& database) {
  auto created = in_transaction(database, [](SqlSession& session) {
    return session.execute(
        "CREATE TABLE ledger (payment_id TEXT NOT NULL, cents INTEGER NOT NULL, "
        "idempotency_key TEXT UNIQUE)",
        {});
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

Result<void> create_shop(const std::string& database) {
  auto created = in_transaction(database, [](SqlSession& session) {
    return session.execute("CREATE TABLE payments (id TEXT NOT NULL, cents INTEGER NOT NULL, charge TEXT)", {});
  });
  if (!created) return std::move(created).error();
  return *created;
}

Result<long long> count_settled(const std::string& database) {
  auto rows = in_transaction(database, [](SqlSession& session) {
    return session.query("SELECT count(DISTINCT id) FROM payments WHERE charge IS NOT NULL", {}).value();
  });
  if (!rows) return std::move(rows).error();
  return std::get<std::int64_t>(rows->rows.at(0).at(0));
}

}  // namespace semel::demo
