// One connection of the server: reads a request, waits for its answer, writes it, and again until either side ends.
//
//   first byte --> head --> (refused?) --> body --> served --> answer written --+--> first byte …
//   idle_timeout   '------- receive_timeout ------'  answer_deadline            '--> linger, closed
//
// Pipelined requests wait in the buffer, so that answers leave in the order of their requests.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "net/http_server.hpp"
#include "net/upstream_pool.hpp"

namespace semel::net {

class Connection;

/// What the connections of one server share. Everything but `io` itself belongs to the thread that runs it.
struct Loop {
  boost::asio::io_context io{1};  ///< the first, since all else may hold sockets and timers of it
  ServerOptions options;
  Service service;
  std::vector<std::unique_ptr<UpstreamPool>> upstreams{};  ///< as in the service
  std::list<std::weak_ptr<Connection>> connections{};
  bool stopping = false;
  std::function<void()> changed{};  ///< a connection has begun to idle, or has ended
};

class Connection {
 public:
  virtual ~Connection() = default;
  virtual boost::asio::awaitable<void> run() = 0;
  /// Closes the socket; `run` ends soon.
  virtual void end() = 0;

  /// Set while it waits for a request's first byte.
  std::optional<std::chrono::steady_clock::time_point> idle_since() const { return idle_since_; }

 protected:
  std::optional<std::chrono::steady_clock::time_point> idle_since_{};
};

std::shared_ptr<Connection> plain_connection(const std::shared_ptr<Loop>& loop, boost::asio::ip::tcp::socket socket);
std::shared_ptr<Connection> tls_connection(const std::shared_ptr<Loop>& loop, boost::asio::ip::tcp::socket socket,
                                           boost::asio::ssl::context& context);

}  // namespace semel::net
