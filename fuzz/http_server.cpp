// HTTP/1.1 framing, on a real server over loopback: where a request ends does not depend on how its bytes arrive, and
// no stranger's bytes stop the server.
//
//   input = where to cut, 1 byte; the bytes of a connection
#include "net/http_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <mutex>

#include "input.hpp"

namespace semel::fuzz {
namespace {

using namespace std::chrono_literals;

/// Answers every request with 204, and remembers which it saw.
class Stand {
 public:
  Stand() {
    // libFuzzer's alarm would break off calls on sockets here and there. The wait for an answer has its own end.
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
    net::ServerOptions options;
    options.body_bytes_max = 4096;
    net::Service service;
    service.serve = [this](net::Request request, net::Responder responder) {
      {
        const std::scoped_lock lock(mutex_);
        seen_.push_back(request.method + " " + request.target + " " + request.body);
      }
      std::move(responder).answer({.status = 204});
    };
    server_ = net::serve(options, std::move(service)).value();
  }

  /// The requests that the server made of `pieces`, sent one after the other.
  std::vector<std::string> requests_in(std::initializer_list<std::string_view> pieces) {
    const int connection = connected();
    for (const auto piece : pieces) send_all(connection, piece);
    shutdown(connection, SHUT_WR);
    read_to_the_end(connection);
    close(connection);
    const std::scoped_lock lock(mutex_);
    return std::exchange(seen_, {});
  }

 private:
  int connected() const {
    const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    promise(connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "the server listens");
    return connection;
  }

  static void send_all(int connection, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // it has heard enough, and closed
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  static void read_to_the_end(int connection) {
    char bytes[4096];
    while (true) {
      const auto count = recv(connection, bytes, sizeof bytes, 0);
      promise(count >= 0 || errno != EAGAIN, "whoever sends no more is answered, or let go");
      if (count <= 0) return;
    }
  }

  std::mutex mutex_;
  std::vector<std::string> seen_;
  std::unique_ptr<net::Server> server_;
};

}  // namespace

void try_one(Input input) {
  static Stand stand;
  const auto cut = input.below(256);
  const auto bytes = input.rest();
  const auto at = bytes.empty() ? 0 : cut % bytes.size();
  const auto whole = stand.requests_in({bytes});
  promise(stand.requests_in({bytes.substr(0, at), bytes.substr(at)}) == whole,
          "two pieces hold the same requests as one");
  promise(stand.requests_in({"GET /alive HTTP/1.1\r\nHost: a\r\n\r\n"}) == std::vector<std::string>{"GET /alive "},
          "the server goes on serving");
}

}  // namespace semel::fuzz
