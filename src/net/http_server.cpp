#include "net/http_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <thread>

#include "net/http_connection.hpp"

namespace semel::net {

namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using ErrorCodeOf = boost::system::error_code;

constexpr auto token = asio::experimental::as_tuple(asio::use_awaitable);
/// How long to wait for a descriptor to become free where they have run out.
constexpr std::chrono::milliseconds accept_again{50};

class RunningServer final : public Server {
 public:
  RunningServer(ServerOptions options, Service service) : loop_(std::make_shared<Loop>()) {
    loop_->options = std::move(options);
    loop_->service = std::move(service);
    loop_->changed = [this] { on_change(); };
    for (const auto& upstream : loop_->service.upstreams)
      loop_->upstreams.push_back(std::make_unique<UpstreamPool>(loop_->io, upstream));
  }
  ~RunningServer() override { stop(std::chrono::milliseconds(0)); }

  Result<void> start();
  unsigned short port() const override { return port_; }
  void stop(std::chrono::milliseconds deadline) override;

 private:
  Result<void> load_tls(const TlsFiles& files);
  Result<void> listen();
  asio::awaitable<void> accept_all();
  void begin(Tcp::socket socket);
  bool has_room();
  void on_change();
  void begin_stop(std::chrono::milliseconds deadline);
  void end_all();

  std::shared_ptr<Loop> loop_;
  Tcp::acceptor acceptor_{loop_->io};
  asio::steady_timer room_{loop_->io};
  asio::steady_timer deadline_{loop_->io};
  std::optional<asio::ssl::context> tls_;
  unsigned short port_ = 0;
  std::thread thread_;
};

std::string endpoint_text(const ServerOptions& options) {
  return options.address + " port " + std::to_string(options.port);
}

Error listen_error(const ServerOptions& options, const ErrorCodeOf& error) {
  const std::string what = "cannot listen on " + endpoint_text(options) + ": ";
  if (error == asio::error::address_in_use)
    return fix_call(ErrorCode::address_in_use, what + "another program listens there");
  if (error == asio::error::access_denied) return fix_call(ErrorCode::permission_denied, what + "this user may not");
  return fix_call(ErrorCode::source_settings_invalid, what + error.message());
}

Result<void> RunningServer::start() {
  if (loop_->options.tls)
    if (auto loaded = load_tls(*loop_->options.tls); !loaded) return loaded;
  if (auto listening = listen(); !listening) return listening;
  asio::co_spawn(loop_->io, accept_all(), [](const std::exception_ptr&) {});
  thread_ = std::thread([loop = loop_] { loop->io.run(); });
  return {};
}

Result<void> RunningServer::load_tls(const TlsFiles& files) {
  tls_.emplace(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(tls_->native_handle(), TLS1_2_VERSION);
  // Without this, OpenSSL asks on the terminal for the passphrase of an encrypted key.
  tls_->set_password_callback([](std::size_t, asio::ssl::context::password_purpose) { return std::string(); });
  ErrorCodeOf error;
  tls_->use_certificate_chain_file(files.certificate, error);
  if (error)
    return fix_call(ErrorCode::source_settings_invalid,
                    "cannot use the certificate in " + files.certificate + ": " + error.message());
  tls_->use_private_key_file(files.key, asio::ssl::context::pem, error);
  if (error)
    return fix_call(ErrorCode::source_settings_invalid,
                    "cannot use the private key in " + files.key + ": " + error.message());
  return {};
}

Result<void> RunningServer::listen() {
  const ServerOptions& options = loop_->options;
  ErrorCodeOf error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error)
    return fix_call(ErrorCode::source_settings_invalid,
                    "\"" + options.address + "\" is not an IP address to listen on");
  const Tcp::endpoint endpoint(address, options.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) return listen_error(options, error);
  port_ = acceptor_.local_endpoint().port();
  return {};
}

asio::awaitable<void> RunningServer::accept_all() {
  while (acceptor_.is_open()) {
    auto [error, socket] = co_await acceptor_.async_accept(token);
    if (error) {
      room_.expires_after(accept_again);
      if (acceptor_.is_open()) co_await room_.async_wait(token);
      continue;
    }
    while (!has_room() && acceptor_.is_open()) {
      room_.expires_at(asio::steady_timer::time_point::max());
      co_await room_.async_wait(token);
    }
    if (acceptor_.is_open()) begin(std::move(socket));
  }
}

void RunningServer::begin(Tcp::socket socket) {
  ErrorCodeOf ignored;
  socket.set_option(Tcp::no_delay(true), ignored);
  const auto connection =
      tls_ ? tls_connection(loop_, std::move(socket), *tls_) : plain_connection(loop_, std::move(socket));
  const auto place = loop_->connections.insert(loop_->connections.end(), connection);
  // An exception (no memory) ends its connection and nothing else.
  asio::co_spawn(loop_->io, connection->run(), [this, connection, place](const std::exception_ptr&) {
    connection->end();
    loop_->connections.erase(place);
    on_change();
  });
}

/// Ends the connection that has idled longest where there is none.
bool RunningServer::has_room() {
  if (loop_->connections.size() < loop_->options.connections_max) return true;
  std::shared_ptr<Connection> oldest;
  for (const auto& place : loop_->connections)
    if (auto one = place.lock(); one && one->idle_since())
      if (!oldest || *one->idle_since() < *oldest->idle_since()) oldest = std::move(one);
  if (oldest) oldest->end();
  return false;
}

void RunningServer::on_change() {
  room_.cancel();
  if (loop_->stopping && loop_->connections.empty()) deadline_.cancel();
}

void RunningServer::stop(std::chrono::milliseconds deadline) {
  if (!thread_.joinable()) return;
  asio::post(loop_->io, [this, deadline] { begin_stop(deadline); });
  thread_.join();
}

/// The thread ends by itself when nothing is left to wait for.
void RunningServer::begin_stop(std::chrono::milliseconds deadline) {
  loop_->stopping = true;
  ErrorCodeOf ignored;
  acceptor_.close(ignored);
  room_.cancel();
  for (const auto& upstream : loop_->upstreams) upstream->close();
  for (const auto& place : loop_->connections)
    if (const auto one = place.lock(); one && one->idle_since()) one->end();
  if (loop_->connections.empty()) return;
  deadline_.expires_after(deadline);
  deadline_.async_wait([this](const ErrorCodeOf& error) {
    if (!error) end_all();
  });
}

void RunningServer::end_all() {
  for (const auto& place : loop_->connections)
    if (const auto one = place.lock()) one->end();
}

}  // namespace

Result<std::unique_ptr<Server>> serve(ServerOptions options, Service service) {
  auto server = std::make_unique<RunningServer>(std::move(options), std::move(service));
  if (auto started = server->start(); !started) return std::move(started).error();
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace semel::net
