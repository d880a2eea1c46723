#include "net/http_connection.hpp"

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <type_traits>

#include "net/http_head.hpp"
#include "net/problem.hpp"

namespace semel::net {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using ErrorCodeOf = boost::system::error_code;
using Milliseconds = std::chrono::milliseconds;

// No temporary with members of its own stands inside a `co_await` expression here: g++ 12 destroys it twice.
constexpr auto token = asio::experimental::as_tuple(asio::use_awaitable);
constexpr Milliseconds linger_max{1'000};
constexpr Milliseconds bark_again{20};
constexpr std::size_t read_bytes = 8'192;

/// What is not a body's content passes through the buffer, and must fit: beside the head, a chunk's extensions and the
/// trailer, which the parser bounds in no other way. It throws out of the loop on a field of 64 KiB.
std::size_t buffer_bytes(const ServerOptions& options) {
  return std::clamp(options.header_bytes_max, read_bytes, header_bytes_limit);
}

/// One request's answer on its way from any thread to the connection that waits for it.
class Answering final : public Exchange, public std::enable_shared_from_this<Answering> {
 public:
  Answering(const std::shared_ptr<Loop>& loop, asio::steady_timer& waiter) : loop_(loop), waiter_(&waiter) {}

  void answer(Response response) override { settle(std::move(response)); }
  void abandon() override { settle(std::nullopt); }

  // On the loop's thread:
  bool settled() const { return settled_; }
  std::optional<Response> take() { return std::move(response_); }
  void nobody_waits() { waiter_ = nullptr; }

 private:
  void settle(std::optional<Response> response) {
    const auto loop = loop_.lock();
    if (!loop) return;
    asio::dispatch(loop->io, [self = shared_from_this(), response = std::move(response)]() mutable {
      self->settled_ = true;
      self->response_ = std::move(response);
      if (self->waiter_) self->waiter_->cancel();
    });
  }

  std::weak_ptr<Loop> loop_;
  asio::steady_timer* waiter_;
  bool settled_ = false;
  std::optional<Response> response_;
};

Response too_large() { return problem_response(Problem::body_too_large, {.code = ErrorCode::body_too_large}); }

/// To a request that could not be read.
Response answer_to(const ErrorCodeOf& error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return problem_response(Problem::header_too_large);
  if (error == http::error::body_limit) return too_large();
  return problem_response(Problem::malformed_request);
}

/// The path and query of a target that names the host too, as a client of a proxy may send it.
std::string_view origin_form(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (target.starts_with(scheme)) {
      const auto slash = target.find('/', scheme.size());
      return slash == target.npos ? "/" : target.substr(slash);
    }
  return target;
}

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

Request request_of(const http::request<http::empty_body>& head) {
  Request request;
  request.method = view(head.method_string());
  request.target = origin_form(view(head.target()));
  for (const auto& field : head)
    request.headers.add(std::string(view(field.name_string())), std::string(view(field.value())));
  return request;
}

template <class Stream>
class StreamConnection final : public Connection, public std::enable_shared_from_this<StreamConnection<Stream>> {
  static constexpr bool is_tls = !std::is_same_v<Stream, Tcp::socket>;
  using HeadParser = http::request_parser<http::empty_body>;

 public:
  StreamConnection(const std::shared_ptr<Loop>& loop, Stream stream)
      : loop_(loop), stream_(std::move(stream)), timer_(loop->io), buffer_(buffer_bytes(loop->options)) {}

  asio::awaitable<void> run() override {
    const auto self = this->shared_from_this();
    if (co_await shake_hands())
      while (co_await exchange_one()) {
      }
    unwatch();
    close();
  }

  void end() override {
    ended_ = true;
    close();
    unwatch();
  }

 private:
  auto& socket() { return stream_.lowest_layer(); }

  void close() {
    ErrorCodeOf ignored;
    socket().close(ignored);
  }

  /// Cancels what the socket is doing once `limit` has passed, and again: a cancellation that falls between two steps
  /// of one read would be missed.
  void watch(Milliseconds limit) {
    timed_out_ = false;
    bark_after(limit, ++watches_);
  }
  void unwatch() {
    ++watches_;
    timer_.cancel();
  }
  void bark_after(Milliseconds delay, unsigned watch) {
    timer_.expires_after(delay);
    timer_.async_wait([self = this->shared_from_this(), watch](const ErrorCodeOf& error) {
      if (error || watch != self->watches_) return;
      self->timed_out_ = true;
      ErrorCodeOf ignored;
      self->socket().cancel(ignored);
      self->bark_after(bark_again, watch);
    });
  }

  asio::awaitable<bool> shake_hands() {
    if constexpr (is_tls) {
      watch(loop_->options.receive_timeout);
      const auto [error] = co_await stream_.async_handshake(asio::ssl::stream_base::server, token);
      co_return !error;
    }
    co_return true;
  }

  /// False where the connection ends.
  asio::awaitable<bool> exchange_one() {
    if (buffer_.size() == 0 && !co_await first_bytes()) co_return false;
    watch(loop_->options.receive_timeout);
    unread_ = true;
    HeadParser head;
    head.header_limit(static_cast<std::uint32_t>(std::min(loop_->options.header_bytes_max, header_bytes_limit)));
    head.body_limit(boost::none);
    const auto [error, count] = co_await http::async_read_header(stream_, buffer_, head, token);
    if (error) co_return co_await give_up(error);
    Request request = request_of(head.get());
    head_only_ = request.method == "HEAD";
    if (auto refusal = refusal_of(request, head)) co_return co_await write(std::move(*refusal));
    keep_alive_ = head.get().version() == 11 && head.keep_alive();
    if (const auto failed = co_await read_body(request, std::move(head))) co_return co_await give_up(failed);
    unread_ = false;
    unwatch();
    co_return co_await serve(std::move(request));
  }

  asio::awaitable<bool> first_bytes() {
    if (loop_->stopping) co_return false;
    idle_since_ = std::chrono::steady_clock::now();
    loop_->changed();
    watch(loop_->options.idle_timeout);
    const auto [error, count] = co_await stream_.async_read_some(buffer_.prepare(read_bytes), token);
    idle_since_.reset();
    if (error || timed_out_) co_return false;
    buffer_.commit(count);
    co_return true;
  }

  /// What can be said before the body is read. An unread body leaves the connection useless.
  std::optional<Response> refusal_of(const Request& request, const HeadParser& head) {
    const auto length = head.content_length();
    keep_alive_ = head.get().version() == 11 && head.keep_alive() && !head.chunked() && (!length || *length == 0);
    if (head.get().version() == 11 && request.headers.count("host") != 1) {
      keep_alive_ = false;
      return problem_response(Problem::malformed_request, {.detail = "one Host header is needed"});
    }
    if (loop_->service.refuse)
      if (auto refusal = loop_->service.refuse(request)) return refusal;
    if (length && *length > loop_->options.body_bytes_max) return too_large();
    return std::nullopt;
  }

  asio::awaitable<ErrorCodeOf> read_body(Request& request, HeadParser&& head) {
    if (beast::iequals(head.get()[http::field::expect], "100-continue") && buffer_.size() == 0) {
      static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      const auto [error, count] = co_await asio::async_write(stream_, asio::buffer(go_on), token);
      if (error) co_return error;
    }
    http::request_parser<http::string_body> body(std::move(head));
    body.body_limit(loop_->options.body_bytes_max);
    const auto [error, count] = co_await http::async_read(stream_, buffer_, body, token);
    if (!error) request.body = std::move(body.get().body());
    co_return error;
  }

  asio::awaitable<bool> serve(Request request) {
    const auto answering = std::make_shared<Answering>(loop_, timer_);
    loop_->service.serve(std::move(request), Responder(answering));
    if (!answering->settled() && !ended_) {
      timer_.expires_after(loop_->options.answer_deadline);
      co_await timer_.async_wait(token);
    }
    answering->nobody_waits();
    if (ended_) co_return false;
    auto response = answering->settled() ? answering->take() : too_late();
    if (!response) co_return false;
    co_return co_await write(std::move(*response));
  }

  static std::optional<Response> too_late() {
    return problem_response(Problem::answer_late, {.retry_after = Milliseconds(1'000)});
  }

  asio::awaitable<bool> write(Response response) {
    const bool keep_alive = keep_alive_ && !response.close && !loop_->stopping;
    const std::string head = response_head(response, keep_alive, http_date());
    const bool with_body = !head_only_ && may_have_body(response.status);
    const std::array<asio::const_buffer, 2> parts{
        asio::buffer(head), asio::const_buffer(response.body.data(), with_body ? response.body.size() : 0)};
    watch(loop_->options.receive_timeout);
    const auto [error, count] = co_await asio::async_write(stream_, parts, token);
    if (!error && !keep_alive) co_await say_goodbye();
    co_return !error && keep_alive;
  }

  /// Answers what could not be read, where there is somebody who may listen.
  asio::awaitable<bool> give_up(ErrorCodeOf error) {
    keep_alive_ = false;
    head_only_ = false;
    const bool about_http = error.category() == http::make_error_code(http::error::end_of_stream).category();
    const bool cut_off = error == http::error::end_of_stream || error == http::error::partial_message;
    if (ended_ || (!timed_out_ && (!about_http || cut_off))) co_return false;
    Response response = timed_out_ ? problem_response(Problem::request_timeout) : answer_to(error);
    co_return co_await write(std::move(response));
  }

  /// Says that nothing follows. Then reads on for a while where bytes are left: closing with some unread would reset
  /// the connection, and the client might never see the answer.
  asio::awaitable<void> say_goodbye() {
    watch(std::min(linger_max, loop_->options.receive_timeout));
    if constexpr (is_tls) co_await stream_.async_shutdown(token);
    ErrorCodeOf failed;
    socket().shutdown(Tcp::socket::shutdown_send, failed);
    std::array<char, 8'192> ignored;
    while (!failed && !timed_out_ && (unread_ || socket().available(failed) > 0)) {
      const auto [error, count] = co_await socket_of(stream_).async_read_some(asio::buffer(ignored), token);
      failed = error;
    }
  }

  static Tcp::socket& socket_of(Tcp::socket& stream) { return stream; }
  static Tcp::socket& socket_of(asio::ssl::stream<Tcp::socket>& stream) { return stream.next_layer(); }

  std::shared_ptr<Loop> loop_;
  Stream stream_;
  asio::steady_timer timer_;
  beast::flat_buffer buffer_;
  unsigned watches_ = 0;
  bool timed_out_ = false;
  bool ended_ = false;
  // Of the request at hand:
  bool unread_ = false;  ///< its end was not reached
  bool keep_alive_ = false;
  bool head_only_ = false;
};

}  // namespace

std::shared_ptr<Connection> plain_connection(const std::shared_ptr<Loop>& loop, Tcp::socket socket) {
  return std::make_shared<StreamConnection<Tcp::socket>>(loop, std::move(socket));
}

std::shared_ptr<Connection> tls_connection(const std::shared_ptr<Loop>& loop, Tcp::socket socket,
                                           asio::ssl::context& context) {
  using Stream = asio::ssl::stream<Tcp::socket>;
  return std::make_shared<StreamConnection<Stream>>(loop, Stream(std::move(socket), context));
}

}  // namespace semel::net
