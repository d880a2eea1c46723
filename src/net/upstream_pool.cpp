#include "net/upstream_pool.hpp"

#include <sys/socket.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <utility>

namespace semel::net {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;

namespace {

constexpr auto token = asio::experimental::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds bark_again{20};
constexpr std::chrono::milliseconds reap_again{1'000};
constexpr std::chrono::seconds clock_margin{1};

bool is_address(const std::string& host) {
  WireError error;
  asio::ip::make_address(host, error);
  return !error;
}

}  // namespace

UpstreamLink::UpstreamLink(asio::io_context& io) : resolver_(io), dog_(io, bark_again, [this] { bark(); }) {}

void UpstreamLink::bark() {
  timed_out_ = true;
  cancel();
}

void UpstreamLink::cancel() {
  cancelled_ = true;
  resolver_.cancel();
  WireError ignored;
  if (connecting_) connecting_->close(ignored);
  if (wire) wire->socket().close(ignored);
}

bool UpstreamLink::is_quiet() {
  char byte = 0;
  const auto count = ::recv(wire->socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && buffer.size() == 0;
}

UpstreamPool::UpstreamPool(asio::io_context& io, UpstreamOptions options) : io_(io), options_(std::move(options)) {
  reaper_.emplace(io, reap_again, [this] { let_go_of_old(); });
  if (!options_.tls) return;
  WireError error;
  tls_.emplace(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(tls_->native_handle(), TLS1_2_VERSION);
  if (options_.ca_file.empty())
    tls_->set_default_verify_paths(error);
  else
    tls_->load_verify_file(options_.ca_file, error);
  if (error) tls_failed_ = error;
}

std::shared_ptr<UpstreamLink> UpstreamPool::take() {
  const auto now = std::chrono::steady_clock::now();
  while (!idle_.empty()) {
    auto link = std::move(idle_.back());
    idle_.pop_back();
    if (now < link->idle_until && link->is_quiet()) {
      link->reused = true;
      return link;
    }
  }
  return nullptr;
}

asio::awaitable<WireError> UpstreamPool::connect(UpstreamLink& link) {
  link.watch(options_.connect_timeout);
  WireError error = tls_failed_.value_or(WireError{});
  if (!error) error = co_await connect_plain(link);
  if (!error && options_.tls) error = co_await shake_hands(link);
  if (link.cancelled()) error = asio::error::operation_aborted;
  link.unwatch();
  co_return error;
}

asio::awaitable<WireError> UpstreamPool::connect_plain(UpstreamLink& link) {
  WireError error;
  std::vector<Tcp::endpoint> endpoints;
  if (const auto address = asio::ip::make_address(options_.host, error); !error) {
    endpoints.emplace_back(address, options_.port);
  } else {
    const std::string service = std::to_string(options_.port);
    const auto [failed, found] = co_await link.resolver_.async_resolve(options_.host, service, token);
    if (failed) co_return failed;
    for (const auto& one : found) endpoints.push_back(one.endpoint());
  }
  for (const auto& endpoint : endpoints) {
    if (link.cancelled()) co_return asio::error::operation_aborted;
    link.connecting_.emplace(io_);
    const auto [failed] = co_await link.connecting_->async_connect(endpoint, token);
    error = failed;
    if (!error) break;
  }
  if (error) co_return error;
  link.connecting_->set_option(Tcp::no_delay(true), error);
  link.connecting_->non_blocking(true, error);
  if (error) co_return error;
  if (options_.tls)
    link.wire = std::make_unique<WireOf<asio::ssl::stream<Tcp::socket>>>(
        asio::ssl::stream<Tcp::socket>(std::move(*link.connecting_), *tls_));
  else
    link.wire = std::make_unique<WireOf<Tcp::socket>>(std::move(*link.connecting_));
  link.connecting_.reset();
  co_return WireError{};
}

asio::awaitable<WireError> UpstreamPool::shake_hands(UpstreamLink& link) {
  auto& stream = static_cast<WireOf<asio::ssl::stream<Tcp::socket>>&>(*link.wire).stream;
  WireError error;
  stream.set_verify_mode(asio::ssl::verify_peer, error);
  stream.set_verify_callback(asio::ssl::host_name_verification(options_.host), error);
  // A name only: RFC 6066, 3 allows no address.
  if (!is_address(options_.host)) SSL_set_tlsext_host_name(stream.native_handle(), options_.host.c_str());
  if (error) co_return error;
  const auto [failed] = co_await stream.async_handshake(asio::ssl::stream_base::client, token);
  co_return failed;
}

void UpstreamPool::give_back(std::shared_ptr<UpstreamLink> link, std::optional<std::chrono::seconds> keep_alive_max) {
  if (closed_ || link->cancelled() || link->buffer.size() > 0 || idle_.size() >= options_.idle_max) return;
  link->unwatch();
  std::chrono::milliseconds patience = options_.idle_timeout;
  if (keep_alive_max) patience = std::min<std::chrono::milliseconds>(patience, *keep_alive_max - clock_margin);
  if (patience.count() <= 0) return;
  link->idle_until = std::chrono::steady_clock::now() + patience;
  if (idle_.empty()) reaper_->watch(options_.idle_timeout);
  idle_.push_back(std::move(link));
}

void UpstreamPool::let_go_of_old() {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(idle_, [&](const auto& link) { return link->idle_until <= now; });
  if (idle_.empty()) reaper_->unwatch();
}

void UpstreamPool::close() {
  closed_ = true;
  idle_.clear();
  reaper_.reset();
}

}  // namespace semel::net
