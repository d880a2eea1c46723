#include "testing/tcp_gate.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace semel::testing {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

Descriptor listen_on_loopback() {
  Descriptor listener(checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  checked(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), "bind");
  checked(listen(listener.get(), SOMAXCONN), "listen");
  return listener;
}

std::uint16_t port_of(const Descriptor& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  checked(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  return ntohs(address.sin_port);
}

Descriptor connect_to(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return Descriptor();
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  Descriptor server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(server.get(), addresses->ai_addr, addresses->ai_addrlen) != 0) return Descriptor();
  return server;
}

/// Sends all of it, waiting where the peer is slow: a test's peers read.
bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (const char c : bytes.substr(at, 4)) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

bool is_commit(std::string_view sql) {
  constexpr std::string_view word = "commit";
  return sql.size() >= word.size() && std::equal(word.begin(), word.end(), sql.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

std::string_view text_at(std::string_view bytes, std::size_t at) { return bytes.substr(at, bytes.find('\0', at) - at); }

/// Reads what a client sends, message by message.
class ClientStream {
 public:
  void add(std::string_view bytes) { buffer_ += bytes; }

  /// The next whole message; empty where none has arrived.
  std::string next() {
    const std::size_t head = started_ ? 1 : 0;  // the first messages of a connection have no type byte
    if (buffer_.size() < head + 4) return "";
    const auto size = head + number_at(buffer_, head);
    if (buffer_.size() < size) return "";
    auto message = buffer_.substr(0, size);
    buffer_.erase(0, size);
    if (!started_) started_ = !asks_for_encryption(message);
    return message;
  }

  /// Whether this message carries out a COMMIT: a simple query, or the parse or bind of a statement.
  bool commits(std::string_view message) {
    if (!started_ || message.size() < 5) return false;
    const char type = message[0];
    if (type == 'Q') return is_commit(text_at(message, 5));
    if (type == 'P') {
      const auto name = text_at(message, 5);
      const bool commit = is_commit(text_at(message, 5 + name.size() + 1));
      statements_[std::string(name)] = commit;
      return commit && name.empty();
    }
    if (type != 'B') return false;
    const auto portal = text_at(message, 5);
    return statements_[std::string(text_at(message, 5 + portal.size() + 1))];
  }

 private:
  static bool asks_for_encryption(std::string_view message) {
    constexpr std::uint32_t tls = 80877103, gss = 80877104;
    return message.size() == 8 && (number_at(message, 4) == tls || number_at(message, 4) == gss);
  }

  bool started_ = false;
  std::string buffer_;
  std::map<std::string, bool> statements_;
};

struct Passage {
  Descriptor client;
  Descriptor server;
  ClientStream stream{};
  std::string held{};       ///< from the server, not passed on
  bool reply_lost = false;  ///< a COMMIT went through; its answer is awaited, to be swallowed
  bool cut = false;
};

}  // namespace

class TcpGate::Loop {
 public:
  Loop(std::string host, std::uint16_t server_port)
      : host_(std::move(host)),
        server_port_(server_port),
        listener_(listen_on_loopback()),
        port_(port_of(listener_)),
        bell_(checked(eventfd(0, EFD_CLOEXEC), "eventfd")),
        thread_([this] { run(); }) {}

  ~Loop() {
    order([this] { ended_ = true; });
    thread_.join();
  }

  std::uint16_t port() const { return port_; }

  /// Changes the loop's state while the loop stands still.
  template <class Change>
  void order(Change change) {
    const std::lock_guard turn(turn_);
    waiting_ = true;
    ring();
    std::unique_lock lock(mutex_);
    resting_.wait(lock, [this] { return rests_; });
    change();
    waiting_ = false;
    lock.unlock();
    resting_.notify_all();
  }

  void cut_all() {
    order([this] { passages_.clear(); });
  }
  void refuse_new(bool refuse) {
    order([&] { refuses_ = refuse; });
  }
  void hold_replies(bool hold) {
    order([&] {
      holds_ = hold;
      for (auto& passage : passages_)
        if (!hold && !passage.reply_lost) {
          send_all(passage.client.get(), passage.held);
          passage.held.clear();
        }
    });
  }
  void on_next_commit(CommitFault fault) {
    order([&] { fault_ = fault; });
  }
  int struck() {
    int struck = 0;
    order([&] { struck = struck_; });
    return struck;
  }
  int connections() {
    int open = 0;
    order([&] { open = static_cast<int>(passages_.size()); });
    return open;
  }

 private:
  void ring() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(bell_.get(), &one, sizeof one);
  }

  /// Stands still while somebody gives an order.
  void rest() {
    std::unique_lock lock(mutex_);
    while (waiting_) {
      rests_ = true;
      resting_.notify_all();
      resting_.wait(lock, [this] { return !waiting_; });
      rests_ = false;
    }
  }

  void run() {
    for (;;) {
      rest();
      if (ended_) return;
      std::vector<pollfd> sockets{{bell_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const auto& passage : passages_) {
        sockets.push_back({passage.client.get(), POLLIN, 0});
        sockets.push_back({passage.server.get(), POLLIN, 0});
      }
      if (poll(sockets.data(), sockets.size(), -1) < 0) continue;
      if (sockets[0].revents) hear_bell();
      forward(sockets);
      if (sockets[1].revents) let_in();
    }
  }

  void hear_bell() {
    std::uint64_t rung = 0;
    [[maybe_unused]] const auto size = read(bell_.get(), &rung, sizeof rung);
  }

  void let_in() {
    Descriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.get() < 0 || refuses_) return;
    Descriptor server = connect_to(host_, server_port_);
    if (server.get() < 0) return;
    const int on = 1;
    for (const int socket : {client.get(), server.get()}) setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    passages_.push_back({.client = std::move(client), .server = std::move(server)});
  }

  void forward(const std::vector<pollfd>& sockets) {
    std::size_t at = 2;
    for (auto& passage : passages_) {
      if (sockets[at].revents) from_client(passage);
      if (sockets[at + 1].revents && !passage.cut) from_server(passage);
      at += 2;
    }
    passages_.remove_if([](const Passage& passage) { return passage.cut; });
  }

  /// What has arrived; empty where the peer has gone.
  std::string_view receive(const Descriptor& socket) {
    const auto size = recv(socket.get(), bytes_.data(), bytes_.size(), 0);
    return {bytes_.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
  }

  void from_client(Passage& passage) {
    const auto bytes = receive(passage.client);
    passage.cut = bytes.empty();
    passage.stream.add(bytes);
    for (auto message = passage.stream.next(); !message.empty() && !passage.cut; message = passage.stream.next()) {
      if (passage.stream.commits(message) && fault_ != CommitFault::none) strike(passage);
      if (!passage.cut) passage.cut = !send_all(passage.server.get(), message);
    }
  }

  void strike(Passage& passage) {
    ++struck_;
    if (std::exchange(fault_, CommitFault::none) == CommitFault::cut_before)
      passage.cut = true;
    else
      passage.reply_lost = true;
  }

  void from_server(Passage& passage) {
    const auto bytes = receive(passage.server);
    if (bytes.empty()) {
      passage.cut = true;
    } else if (passage.reply_lost || holds_) {
      passage.held += bytes;
      // CommandComplete, 11 bytes long: the server has committed.
      constexpr std::string_view committed(
          "C\0\0\0\x0b"
          "COMMIT\0",
          12);
      passage.cut = passage.reply_lost && passage.held.find(committed) != passage.held.npos;
    } else {
      passage.cut = !send_all(passage.client.get(), bytes);
    }
  }

  const std::string host_;
  const std::uint16_t server_port_;
  const Descriptor listener_;
  const std::uint16_t port_;
  const Descriptor bell_;

  std::mutex turn_;  ///< one order at a time
  std::mutex mutex_;
  std::condition_variable resting_;
  std::atomic<bool> waiting_{false};
  bool rests_ = false;

  // The loop's own, changed by others only while it rests.
  bool ended_ = false;
  bool refuses_ = false;
  bool holds_ = false;
  CommitFault fault_ = CommitFault::none;
  int struck_ = 0;
  std::list<Passage> passages_;
  std::array<char, 1 << 16> bytes_{};

  std::thread thread_;  ///< last: it uses all of the above
};

TcpGate::TcpGate(std::string host, std::uint16_t server_port)
    : loop_(std::make_unique<Loop>(std::move(host), server_port)) {}
TcpGate::~TcpGate() = default;

std::uint16_t TcpGate::port() const { return loop_->port(); }
void TcpGate::cut_all() { loop_->cut_all(); }
void TcpGate::refuse_new(bool refuse) { loop_->refuse_new(refuse); }
void TcpGate::hold_replies(bool hold) { loop_->hold_replies(hold); }
void TcpGate::on_next_commit(CommitFault fault) { loop_->on_next_commit(fault); }
int TcpGate::commits_struck() const { return loop_->struck(); }
int TcpGate::connections() const { return loop_->connections(); }

}  // namespace semel::testing
