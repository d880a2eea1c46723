#include "net/http_connection.hpp"

#include <algorithm>
#include <array>
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
#include <memory_resource>
#include <type_traits>

#include "net/http_head.hpp"
#include "net/http_proxy.hpp"
#include "net/passed_head.hpp"
#include "net/problem.hpp"
#include "net/watchdog.hpp"
#include "net/wire.hpp"

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
constexpr std::size_t field_bytes = 8'192;

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

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

class HeadView final : public RequestHead {
 public:
  explicit HeadView(const RequestHeader& head) : head_(head) {}
  std::string_view method() const override { return view(head_.method_string()); }
  std::string_view target() const override { return origin_form(view(head_.target())); }
  std::optional<std::string_view> find(std::string_view name) const override {
    const auto field = head_.find(beast::string_view(name.data(), name.size()));
    return field == head_.end() ? std::nullopt : std::optional(view(field->value()));
  }

 private:
  const RequestHeader& head_;
};

Request request_of(const RequestHeader& head) {
  Request request;
  request.method = view(head.method_string());
  request.target = origin_form(view(head.target()));
  request.version = head.version();
  for (const auto& field : head)
    request.headers.add(std::string(view(field.name_string())), std::string(view(field.value())));
  return request;
}

template <class Stream>
class StreamConnection final : public Connection, public std::enable_shared_from_this<StreamConnection<Stream>> {
  static constexpr bool is_tls = !std::is_same_v<Stream, Tcp::socket>;
  using HeadParser = PassThrough::HeadParser;

 public:
  StreamConnection(const std::shared_ptr<Loop>& loop, Stream stream)
      : loop_(loop),
        wire_(std::move(stream)),
        late_(loop->io),
        buffer_(buffer_bytes(loop->options)),
        dog_(loop->io, bark_again, [this] { bark(); }) {
    WireError ignored;
    wire_.socket().non_blocking(true, ignored);
    peer_ = wire_.socket().remote_endpoint(ignored).address().to_string();
  }

  asio::awaitable<void> run() override {
    const auto self = this->shared_from_this();
    if (co_await shake_hands())
      while (co_await exchange_one()) {
      }
    dog_.unwatch();
    close();
  }

  void end() override {
    ended_ = true;
    close();
    late_.cancel();
    if (passing_) passing_->cancel();
  }

 private:
  Tcp::socket& socket() { return wire_.socket(); }

  void close() {
    ErrorCodeOf ignored;
    socket().close(ignored);
  }

  void watch(Milliseconds limit) {
    timed_out_ = false;
    dog_.watch(limit);
  }
  void bark() {
    timed_out_ = true;
    ErrorCodeOf ignored;
    socket().cancel(ignored);
  }

  asio::awaitable<bool> shake_hands() {
    if constexpr (is_tls) {
      watch(loop_->options.receive_timeout);
      const auto [error] = co_await wire_.stream.async_handshake(asio::ssl::stream_base::server, token);
      co_return !error;
    }
    co_return true;
  }

  /// False where the connection ends.
  asio::awaitable<bool> exchange_one() {
    if (buffer_.size() == 0 && !co_await first_bytes()) co_return false;
    watch(loop_->options.receive_timeout);
    unread_ = true;
    fields_.release();
    HeadParser head(std::piecewise_construct, std::make_tuple(), std::make_tuple(FieldMemory(&fields_)));
    head.header_limit(static_cast<std::uint32_t>(std::min(loop_->options.header_bytes_max, header_bytes_limit)));
    head.body_limit(boost::none);
    ErrorCodeOf error;
    if (!parse_head(buffer_, head, error)) error = co_await read_head(wire_, buffer_, head);
    if (error) co_return co_await give_up(error);
    if (const auto fault = fault_in(head.get()); !fault.empty()) co_return co_await refuse(fault);
    if (const auto upstream = upstream_of(head)) co_return co_await pass_through(head, *upstream);
    Request request = request_of(head.get());
    request.peer = peer_;
    request.over_tls = is_tls;
    head_only_ = request.method == "HEAD";
    if (auto refusal = refusal_of(request, head)) co_return co_await write_own(std::move(*refusal));
    keep_alive_ = head.get().version() == 11 && head.keep_alive();
    if (const auto failed = co_await read_body(request, std::move(head))) co_return co_await give_up(failed);
    unread_ = false;
    dog_.unwatch();
    co_return co_await serve(std::move(request));
  }

  asio::awaitable<bool> first_bytes() {
    if (loop_->stopping) co_return false;
    idle_since_ = std::chrono::steady_clock::now();
    loop_->changed();
    watch(loop_->options.idle_timeout);
    const auto into = buffer_.prepare(read_bytes);
    const Moved moved = co_await wire_.read(into);
    idle_since_.reset();
    if (moved.error || timed_out_) co_return false;
    buffer_.commit(moved.count);
    co_return true;
  }

  std::optional<std::size_t> upstream_of(const HeadParser& head) {
    const auto& service = loop_->service;
    const auto& request = head.get();
    if (!service.forward) return std::nullopt;
    const HeadView seen(request);
    return service.forward(seen);
  }

  asio::awaitable<bool> pass_through(HeadParser& head, std::size_t upstream) {
    if (!passing_)
      passing_ = std::make_unique<PassThrough>(
          loop_->io, PassThrough::Client{wire_, buffer_, dog_, FieldMemory(&fields_), peer_, is_tls,
                                         loop_->options.receive_timeout, loop_->stopping});
    head_only_ = head.get().method() == http::verb::head;
    keep_alive_ = false;
    std::shared_ptr<void> self = this->shared_from_this();
    auto outcome = co_await passing_->pass(head, *loop_->upstreams[upstream], self);
    unread_ = !outcome.whole_request;
    keep_alive_ = outcome.keep_alive && outcome.whole_request;
    if (ended_) co_return false;
    timed_out_ |= outcome.unreadable == asio::error::timed_out;
    if (outcome.unreadable) co_return co_await give_up(outcome.unreadable);
    if (outcome.answer) co_return co_await write(std::move(*outcome.answer));
    if (outcome.problem) co_return co_await write_own(std::move(*outcome.problem));
    if (outcome.broken) cut_off();
    if (!outcome.broken && !keep_alive_) co_await say_goodbye();
    co_return keep_alive_ && !outcome.broken;
  }

  /// Ends the connection with a reset, so that an answer which stops midway is not taken for a whole one.
  void cut_off() {
    ErrorCodeOf ignored;
    socket().set_option(asio::socket_base::linger(true, 0), ignored);
  }

  /// What can be said before the body is read. An unread body leaves the connection useless.
  std::optional<Response> refusal_of(const Request& request, const HeadParser& head) {
    const auto length = head.content_length();
    keep_alive_ = head.get().version() == 11 && head.keep_alive() && !head.chunked() && (!length || *length == 0);
    if (loop_->service.refuse)
      if (auto refusal = loop_->service.refuse(request)) return refusal;
    if (length && *length > loop_->options.body_bytes_max) return too_large();
    return std::nullopt;
  }

  asio::awaitable<ErrorCodeOf> read_body(Request& request, HeadParser&& head) {
    const bool waits = head.get().version() == 11 && beast::iequals(head.get()[http::field::expect], "100-continue");
    if (waits && buffer_.size() == 0) {
      static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      const auto [error, count] = co_await asio::async_write(wire_.stream, asio::buffer(go_on), token);
      if (error) co_return error;
    }
    http::request_parser<http::string_body, FieldMemory> body(std::move(head));
    body.body_limit(loop_->options.body_bytes_max);
    const auto [error, count] = co_await http::async_read(wire_.stream, buffer_, body, token);
    if (!error) request.body = std::move(body.get().body());
    co_return error;
  }

  asio::awaitable<bool> serve(Request request) {
    const auto answering = std::make_shared<Answering>(loop_, late_);
    loop_->service.serve(std::move(request), Responder(answering));
    if (!answering->settled() && !ended_) {
      late_.expires_after(loop_->options.answer_deadline);
      co_await late_.async_wait(token);
    }
    answering->nobody_waits();
    if (ended_) co_return false;
    if (!answering->settled()) {
      auto late = problem_response(Problem::answer_late, {.retry_after = Milliseconds(1'000)});
      co_return co_await write_own(std::move(late));
    }
    auto response = answering->take();
    if (!response) co_return false;
    co_return co_await write(std::move(*response));
  }

  /// A problem of which nobody but this connection knows.
  asio::awaitable<bool> write_own(Response problem) {
    if (loop_->service.observe) loop_->service.observe(problem);
    return write(std::move(problem));
  }

  asio::awaitable<bool> write(Response response) {
    const bool keep_alive = keep_alive_ && !response.close && !loop_->stopping;
    const std::string head = response_head(response, keep_alive, http_date());
    const bool with_body = !head_only_ && may_have_body(response.status);
    const std::array<asio::const_buffer, 2> parts{
        asio::buffer(head), asio::const_buffer(response.body.data(), with_body ? response.body.size() : 0)};
    watch(loop_->options.receive_timeout);
    const auto error = co_await write_all(wire_, parts);
    if (!error && !keep_alive) co_await say_goodbye();
    co_return !error && keep_alive;
  }

  /// Answers what was read and is not to be gone on with; where it ends is not sure.
  asio::awaitable<bool> refuse(std::string_view why) {
    keep_alive_ = false;
    head_only_ = false;
    Response response = problem_response(Problem::malformed_request, {.detail = std::string(why)});
    co_return co_await write_own(std::move(response));
  }

  /// Answers what could not be read, where there is somebody who may listen.
  asio::awaitable<bool> give_up(ErrorCodeOf error) {
    keep_alive_ = false;
    head_only_ = false;
    const bool about_http = error.category() == http::make_error_code(http::error::end_of_stream).category();
    const bool cut_off = error == http::error::end_of_stream || error == http::error::partial_message;
    if (ended_ || (!timed_out_ && (!about_http || cut_off))) co_return false;
    Response response = timed_out_ ? problem_response(Problem::request_timeout) : answer_to(error);
    co_return co_await write_own(std::move(response));
  }

  /// Says that nothing follows. Then reads on for a while where bytes are left: closing with some unread would reset
  /// the connection, and the client might never see the answer.
  asio::awaitable<void> say_goodbye() {
    watch(std::min(linger_max, loop_->options.receive_timeout));
    if constexpr (is_tls) co_await wire_.stream.async_shutdown(token);
    ErrorCodeOf failed;
    socket().shutdown(Tcp::socket::shutdown_send, failed);
    std::array<char, 8'192> ignored;
    while (!failed && !timed_out_ && (unread_ || socket().available(failed) > 0)) {
      const auto [error, count] = co_await socket().async_read_some(asio::buffer(ignored), token);
      failed = error;
    }
  }

  std::shared_ptr<Loop> loop_;
  WireOf<Stream> wire_;
  asio::steady_timer late_;  ///< ends the wait for an answer
  beast::flat_buffer buffer_;
  std::string peer_;
  std::array<std::byte, field_bytes> field_memory_;
  std::pmr::monotonic_buffer_resource fields_{field_memory_.data(), field_memory_.size()};
  Watchdog dog_;
  std::unique_ptr<PassThrough> passing_;
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
