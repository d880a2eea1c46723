// Connections to one upstream. All of it belongs to the thread that runs the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "net/upstream.hpp"
#include "net/watchdog.hpp"
#include "net/wire.hpp"

namespace semel::net {

/// One connection. It serves one request at a time, and any number one after another.
class UpstreamLink {
 public:
  static constexpr std::size_t buffer_bytes = 64u << 10;

  explicit UpstreamLink(boost::asio::io_context& io);

  /// Ends whatever waits on it, now and later.
  void cancel();
  /// It has not been heard of for as long as `watch` allowed.
  bool timed_out() const { return timed_out_; }
  bool cancelled() const { return cancelled_; }
  void watch(std::chrono::milliseconds limit) { dog_.watch(limit); }
  void unwatch() { dog_.unwatch(); }
  /// Nobody has closed it, and nothing has come unasked.
  bool is_quiet();

  std::unique_ptr<Wire> wire;
  boost::beast::flat_buffer buffer{buffer_bytes};
  bool reused = false;
  std::chrono::steady_clock::time_point idle_until{};

 private:
  friend class UpstreamPool;
  void bark();

  boost::asio::ip::tcp::resolver resolver_;
  std::optional<boost::asio::ip::tcp::socket> connecting_;
  bool timed_out_ = false;
  bool cancelled_ = false;
  Watchdog dog_;
};

class UpstreamPool {
 public:
  UpstreamPool(boost::asio::io_context& io, UpstreamOptions options);

  const UpstreamOptions& options() const { return options_; }
  /// An idle one; null where there is none. None that was closed as far as it can be seen, and none on which the
  /// upstream has said more than it was asked: that would be read as the next answer, and given to somebody else.
  std::shared_ptr<UpstreamLink> take();
  std::shared_ptr<UpstreamLink> fresh() { return std::make_shared<UpstreamLink>(io_); }
  /// Looks the name up, connects, and shakes hands.
  boost::asio::awaitable<WireError> connect(UpstreamLink& link);
  /// For the next request; `keep_alive_max` is what the upstream said of its own patience.
  void give_back(std::shared_ptr<UpstreamLink> link, std::optional<std::chrono::seconds> keep_alive_max);
  /// Lets go of all idle ones, and keeps none any more.
  void close();

 private:
  boost::asio::awaitable<WireError> connect_plain(UpstreamLink& link);
  boost::asio::awaitable<WireError> shake_hands(UpstreamLink& link);
  void let_go_of_old();

  boost::asio::io_context& io_;
  const UpstreamOptions options_;
  std::optional<boost::asio::ssl::context> tls_;
  std::optional<WireError> tls_failed_;
  std::vector<std::shared_ptr<UpstreamLink>> idle_;  ///< the most recently used at the end
  bool closed_ = false;
  std::optional<Watchdog> reaper_;
};

}  // namespace semel::net
