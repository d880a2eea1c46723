#include "net/http_proxy.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <charconv>
#include <utility>

#include "net/http_head.hpp"
#include "net/problem.hpp"

namespace semel::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

constexpr auto token = asio::experimental::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds look_every{100};
constexpr std::chrono::milliseconds bark_again{20};
constexpr std::size_t read_bytes = 16u << 10;
constexpr std::size_t piece_bytes = 16u << 10;
constexpr std::uint32_t answer_head_bytes_max = 64u << 10;
constexpr std::string_view last_chunk = "0\r\n\r\n";
constexpr std::string_view end_of_piece = "\r\n";
constexpr std::string_view end_of_last_piece = "\r\n0\r\n\r\n";

asio::const_buffer bytes(std::string_view text) { return {text.data(), text.size()}; }

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

bool is_idempotent(http::verb method) {
  switch (method) {
    case http::verb::get:
    case http::verb::head:
    case http::verb::options:
    case http::verb::trace:
    case http::verb::put:
    case http::verb::delete_:
      return true;
    default:
      return false;
  }
}

/// A chunk's first line.
class SizeLine {
 public:
  explicit SizeLine(std::size_t size) {
    char* end = std::to_chars(text_.data(), text_.data() + text_.size() - 2, size, 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    length_ = static_cast<std::size_t>(end - text_.data());
  }
  std::string_view text() const { return {text_.data(), length_}; }

 private:
  std::array<char, 20> text_{};
  std::size_t length_;
};

std::optional<Response> refusal_of(const http::request<http::empty_body, Fields>& head) {
  if (head.method() == http::verb::connect || beast::iequals(head[http::field::upgrade], "websocket"))
    return problem_response(Problem::upgrade_not_supported);
  return std::nullopt;
}

/// "Keep-Alive: timeout=5", as many servers send it.
std::optional<std::chrono::seconds> patience_of(const http::response<http::empty_body, Fields>& head) {
  const auto value = view(head[http::field::keep_alive]);
  constexpr std::string_view name = "timeout=";
  const auto at = value.find(name);
  int seconds = 0;
  if (at == value.npos) return std::nullopt;
  const auto digits = value.substr(at + name.size());
  if (std::from_chars(digits.data(), digits.data() + digits.size(), seconds).ec != std::errc()) return std::nullopt;
  return std::chrono::seconds(seconds);
}

bool is_about_http(const WireError& error) {
  static const auto& category = http::make_error_code(http::error::end_of_stream).category();
  return error.category() == category && error != http::error::end_of_stream && error != http::error::partial_message;
}

}  // namespace

PassThrough::Upload::Upload(asio::io_context& io, std::function<void()> bark)
    : ended(io), dog(io, bark_again, std::move(bark)) {}

PassThrough::PassThrough(asio::io_context& io, Client client)
    : io_(io), client_(std::move(client)), looking_(io, look_every, [this] { look(); }) {}

/// A client that sends no more may still read, so once an answer is on its way only a reset counts.
void PassThrough::look() {
  const short ends = answer_begun_ ? 0 : POLLRDHUP;
  pollfd one{.fd = client_.wire.socket().native_handle(), .events = ends, .revents = 0};
  if (::poll(&one, 1, 0) > 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0) cancel();
}

void PassThrough::cancel() {
  gone_ = true;
  if (link_) link_->cancel();
}

void PassThrough::begin(const HeadParser& head, const UpstreamOptions& upstream) {
  const auto& request = head.get();
  const auto length = head.content_length();
  framing_ = {};
  if (head.chunked())
    framing_.kind = Framing::Kind::chunked;
  else if (length)
    framing_ = {.kind = Framing::Kind::length, .length = *length};
  idempotent_ = is_idempotent(request.method());
  head_only_ = request.method() == http::verb::head;
  old_client_ = request.version() < 11;
  keep_alive_ = !old_client_ && head.keep_alive();
  const bool asks_first = request.find(http::field::expect) != request.end();
  whole_ = framing_.kind == Framing::Kind::none || framing_.length == 0;
  if (framing_.kind == Framing::Kind::chunked) whole_ = false;
  if (!whole_ && framing_.kind == Framing::Kind::length)
    whole_ = !asks_first && framing_.length <= client_.buffer.max_size();
  asked_ = false;
  answer_begun_ = false;
  gone_ = false;
  silence_max_ = upstream.silence_max;
  request_head_.clear();
  pass_request_head(request_head_, request, upstream,
                    {.peer = client_.peer, .tls = client_.tls, .version = request.version()}, framing_);
}

asio::awaitable<PassThrough::Outcome> PassThrough::pass(HeadParser& head, UpstreamPool& pool,
                                                        std::shared_ptr<void> owner) {
  if (auto refusal = refusal_of(head.get())) {
    Outcome outcome{.problem = std::move(refusal)};
    co_return outcome;
  }
  if (forwards_left(head.get()) == 0u) {
    Outcome outcome{.answer = answer_of_final_recipient(head.get())};
    co_return outcome;
  }
  begin(head, pool.options());
  if (whole_ && framing_.length > client_.buffer.size()) {
    const auto error = co_await read_small_body();
    if (error) {
      Outcome outcome{.unreadable = error};
      co_return outcome;
    }
  }
  client_.dog.unwatch();
  looking_.watch(look_every);
  auto failed = co_await ask_until_answered(head, pool, owner);
  Outcome outcome;
  if (failed)
    outcome = std::move(*failed);
  else
    outcome = co_await pass_answer(pool);
  looking_.unwatch();
  if (upload_) co_await end_upload();
  link_.reset();
  answer_.reset();
  co_return outcome;
}

asio::awaitable<WireError> PassThrough::read_small_body() {
  while (client_.buffer.size() < framing_.length) {
    const auto into = client_.buffer.prepare(framing_.length - client_.buffer.size());
    const Moved moved = co_await client_.wire.read(into);
    if (moved.error == asio::error::eof) co_return http::error::partial_message;
    if (moved.error) co_return moved.error;
    client_.buffer.commit(moved.count);
  }
  co_return WireError{};
}

/// Nothing where the head of an answer is there.
asio::awaitable<std::optional<PassThrough::Outcome>> PassThrough::ask_until_answered(
    HeadParser& head, UpstreamPool& pool, const std::shared_ptr<void>& owner) {
  WireError error;
  for (bool again = false;; again = true) {
    link_ = again ? nullptr : pool.take();
    if (!link_) {
      link_ = pool.fresh();
      error = co_await pool.connect(*link_);
      if (error) break;
    }
    link_->watch(silence_max_);
    asked_ = true;
    answer_.reset();
    if (!whole_) start_upload(head, owner);
    const Unwritten rest = whole_ ? send_whole() : Unwritten();
    // It may have answered before it closed, so a failure to write is no last word.
    if (!rest.done()) co_await link_->wire->write(rest.parts());
    error = co_await read_answer_head();
    if (!error || !may_ask_again()) break;
  }
  std::optional<Outcome> failed;
  if (error) failed = outcome_of(error);
  if (whole_) client_.buffer.consume(framing_.length);
  co_return failed;
}

bool PassThrough::may_ask_again() const {
  const bool silent = link_->buffer.size() == 0 && !(answer_ && answer_->got_some());
  return link_->reused && silent && !link_->timed_out() && !gone_ && idempotent_ && whole_;
}

PassThrough::Outcome PassThrough::outcome_of(const WireError& error) const {
  Outcome outcome{.keep_alive = keep_alive_, .whole_request = whole_ || (upload_ && upload_->complete)};
  if (upload_ && upload_->unreadable) {
    outcome.unreadable = upload_->timed_out ? WireError(asio::error::timed_out) : upload_->unreadable;
    return outcome;
  }
  if (gone_) {
    outcome.broken = true;
    return outcome;
  }
  if (link_->timed_out())
    outcome.problem = problem_response(Problem::upstream_timeout);
  else if (!asked_)
    outcome.problem = problem_response(Problem::upstream_unreachable);
  else
    outcome.problem = problem_response(Problem::upstream_failed,
                                       {.detail = is_about_http(error) ? "its answer is not well-formed HTTP"
                                                                       : "it closed the connection before its answer"});
  return outcome;
}

Unwritten PassThrough::send_whole() {
  const std::array<asio::const_buffer, 2> parts{bytes(request_head_),
                                                asio::buffer(client_.buffer.data(), framing_.length)};
  return Unwritten(*link_->wire, parts);
}

asio::awaitable<WireError> PassThrough::read_answer_head() {
  while (true) {
    answer_.emplace(std::piecewise_construct, std::make_tuple(), std::make_tuple(client_.memory));
    answer_->header_limit(answer_head_bytes_max);
    answer_->body_limit(boost::none);
    answer_->skip(head_only_);
    const auto error = co_await read_head(*link_->wire, link_->buffer, *answer_);
    if (error) co_return error;
    const auto& head = answer_->get();
    const auto status = head.result_int();
    const auto coding = head.find(http::field::transfer_encoding);
    if (status < 100) co_return http::error::bad_status;
    if (status == 101 || (coding != head.end() && !beast::iequals(coding->value(), "chunked")))
      co_return http::error::bad_transfer_encoding;
    if (status >= 200) co_return WireError{};
    if (old_client_) continue;
    answer_head_.clear();
    pass_response_head(answer_head_, head, {}, true);
    const std::array<asio::const_buffer, 1> parts{bytes(answer_head_)};
    if (!co_await send_down(parts)) co_return asio::error::operation_aborted;
    if (whole_ || upload_->complete) link_->watch(silence_max_);
  }
}

// ---- the body up -----------------------------------------------------------------------------------------------

void PassThrough::start_upload(HeadParser& head, std::shared_ptr<void> owner) {
  upload_.emplace(io_, [this] {
    upload_->timed_out = true;
    WireError ignored;
    client_.wire.socket().cancel(ignored);
  });
  link_->unwatch();
  asio::co_spawn(io_, upload_all(head), [this, owner = std::move(owner)](const std::exception_ptr&) {
    upload_->running = false;
    upload_->dog.unwatch();
    if (link_ && upload_->unreadable) link_->cancel();
    if (link_ && !answer_begun_) link_->watch(silence_max_);
    upload_->ended.cancel();
  });
}

asio::awaitable<void> PassThrough::upload_all(HeadParser& head) {
  const std::array<asio::const_buffer, 1> parts{bytes(request_head_)};
  if (!co_await send_up(parts)) co_return;
  if (framing_.kind == Framing::Kind::length)
    co_await upload_length();
  else
    co_await upload_chunks(head);
}

asio::awaitable<void> PassThrough::upload_length() {
  auto left = framing_.length;
  while (left > 0) {
    if (client_.buffer.size() == 0 && !co_await upload_more()) co_return;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, client_.buffer.size()));
    const std::array<asio::const_buffer, 1> parts{asio::buffer(client_.buffer.data(), count)};
    if (!co_await send_up(parts)) co_return;
    client_.buffer.consume(count);
    left -= count;
  }
  upload_->complete = true;
}

asio::awaitable<void> PassThrough::upload_chunks(HeadParser& head) {
  http::request_parser<http::buffer_body, FieldMemory> parser(std::move(head));
  parser.body_limit(boost::none);
  parser.eager(true);
  piece_up_.resize(piece_bytes);
  while (true) {
    auto& body = parser.get().body();
    body.data = piece_up_.data();
    body.size = piece_up_.size();
    body.more = true;
    WireError error;
    if (client_.buffer.size() > 0) client_.buffer.consume(parser.put(client_.buffer.data(), error));
    if (error && error != http::error::need_more && error != http::error::need_buffer) {
      upload_->unreadable = error;
      co_return;
    }
    const auto count = piece_up_.size() - body.size;
    const bool done = parser.is_done();
    const SizeLine line(count);
    const auto end = done ? end_of_last_piece : end_of_piece;
    const std::array<asio::const_buffer, 3> piece{bytes(line.text()), asio::buffer(piece_up_.data(), count),
                                                  bytes(end)};
    const std::array<asio::const_buffer, 1> nothing_more{bytes(last_chunk)};
    const Wire::Parts parts = count > 0 ? Wire::Parts(piece) : Wire::Parts(nothing_more);
    if ((count > 0 || done) && !co_await send_up(parts)) co_return;
    if (done) break;
    if (error != http::error::need_buffer && !co_await upload_more()) co_return;
  }
  upload_->complete = true;
}

/// Reads from the client. False at its end.
asio::awaitable<bool> PassThrough::upload_more() {
  const auto room = std::min(read_bytes, client_.buffer.max_size() - client_.buffer.size());
  if (upload_->stop) co_return false;
  if (room == 0) {
    upload_->unreadable = http::error::buffer_overflow;
    co_return false;
  }
  upload_->dog.watch(client_.receive_timeout);
  const auto into = client_.buffer.prepare(room);
  const Moved moved = co_await client_.wire.read(into);
  upload_->dog.unwatch();
  client_.buffer.commit(moved.count);
  if (moved.error) upload_->unreadable = moved.error == asio::error::eof ? http::error::partial_message : moved.error;
  co_return !moved.error;
}

/// False where the upstream takes no more, which is not yet a failure: it may have answered.
asio::awaitable<bool> PassThrough::send_up(Wire::Parts parts) {
  if (upload_->stop) co_return false;
  if (!answer_begun_) link_->watch(silence_max_);
  const auto error = co_await write_all(*link_->wire, parts);
  if (!answer_begun_) link_->unwatch();
  co_return !error;
}

/// Waits until nobody uses the two wires any more.
asio::awaitable<void> PassThrough::end_upload() {
  upload_->stop = true;
  while (upload_->running) {
    WireError ignored;
    client_.wire.socket().cancel(ignored);
    if (link_) link_->cancel();
    upload_->ended.expires_after(bark_again);
    co_await upload_->ended.async_wait(token);
  }
  upload_.reset();
}

// ---- the answer down -------------------------------------------------------------------------------------------

Framing PassThrough::answer_framing() const {
  const auto& head = answer_->get();
  const bool bare = head_only_ || head.result_int() == 304;
  if (!bare && !may_have_body(static_cast<int>(head.result_int()))) return {};
  if (const auto field = head.find(http::field::content_length); field != head.end() && !answer_->chunked()) {
    Framing framing{.kind = Framing::Kind::length, .length = 0};
    const auto digits = view(field->value());
    // A list of equal numbers (RFC 9112, 6.3) has been read by the parser already.
    std::from_chars(digits.data(), digits.data() + digits.size(), framing.length);
    return framing;
  }
  if (bare) return {};
  return {.kind = answer_->chunked() ? Framing::Kind::chunked : Framing::Kind::until_close, .length = 0};
}

asio::awaitable<PassThrough::Outcome> PassThrough::pass_answer(UpstreamPool& pool) {
  const Framing from = answer_framing();
  const bool bodyless = answer_->is_done();
  const bool chunked = !old_client_ && from.kind != Framing::Kind::length;
  Framing to = from;
  if (from.kind == Framing::Kind::chunked || from.kind == Framing::Kind::until_close)
    to.kind = chunked ? Framing::Kind::chunked : Framing::Kind::until_close;
  const bool request_over = whole_ || upload_->complete;
  Outcome outcome{.keep_alive = keep_alive_ && request_over && !client_.stopping, .whole_request = request_over};
  const bool link_lives = answer_->keep_alive() && request_over;
  const auto patience = link_lives ? patience_of(answer_->get()) : std::nullopt;
  answer_head_.clear();
  pass_response_head(answer_head_, answer_->get(), to, outcome.keep_alive);
  answer_begun_ = true;
  bool passed = false;
  if (bodyless || from.kind == Framing::Kind::none)
    passed = co_await send_piece({}, false, true);
  else if (from.kind == Framing::Kind::length && from.length <= link_->buffer.size())
    passed = co_await pass_whole(from.length);
  else if (from.kind == Framing::Kind::length)
    passed = co_await pass_length(from.length);
  else if (from.kind == Framing::Kind::chunked)
    passed = co_await pass_chunks(chunked);
  else
    passed = co_await pass_until_close(chunked);
  outcome.broken = !passed;
  if (passed && link_lives) pool.give_back(std::exchange(link_, nullptr), patience);
  co_return outcome;
}

/// A plain function, which spares the most usual answer a frame.
asio::awaitable<bool> PassThrough::pass_whole(std::uint64_t length) {
  const std::string_view body(static_cast<const char*>(link_->buffer.data().data()), length);
  // Consuming leaves the bytes where they are.
  link_->buffer.consume(length);
  return send_piece(body, false, false);
}

asio::awaitable<bool> PassThrough::pass_length(std::uint64_t length) {
  auto& buffer = link_->buffer;
  do {
    WireError error;
    if (length > 0 && buffer.size() == 0 && answer_head_.empty() && !co_await more_from_upstream(error))
      co_return false;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(length, buffer.size()));
    const std::string_view piece(static_cast<const char*>(buffer.data().data()), count);
    if (!co_await send_piece(piece, false, false)) co_return false;
    buffer.consume(count);
    length -= count;
  } while (length > 0);
  co_return true;
}

asio::awaitable<bool> PassThrough::pass_chunks(bool chunked) {
  http::response_parser<http::buffer_body, FieldMemory> parser(std::move(*answer_));
  parser.eager(true);
  piece_down_.resize(piece_bytes);
  auto& buffer = link_->buffer;
  while (true) {
    auto& body = parser.get().body();
    body.data = piece_down_.data();
    body.size = piece_down_.size();
    body.more = true;
    WireError error;
    if (buffer.size() > 0) buffer.consume(parser.put(buffer.data(), error));
    if (error && error != http::error::need_more && error != http::error::need_buffer) co_return false;
    const std::string_view piece(piece_down_.data(), piece_down_.size() - body.size);
    const bool done = parser.is_done();
    if ((!piece.empty() || done || !answer_head_.empty()) && !co_await send_piece(piece, chunked, done))
      co_return false;
    if (done) co_return true;
    WireError failed;
    if (error != http::error::need_buffer && !co_await more_from_upstream(failed)) co_return false;
  }
}

asio::awaitable<bool> PassThrough::pass_until_close(bool chunked) {
  auto& buffer = link_->buffer;
  while (true) {
    WireError error;
    if (buffer.size() == 0 && answer_head_.empty() && !co_await more_from_upstream(error)) {
      // Over TLS only a close that was said so is an end: anything else may be an attacker's.
      if (error != asio::error::eof) co_return false;
      co_return !chunked || co_await send_piece({}, chunked, true);
    }
    const std::string_view piece(static_cast<const char*>(buffer.data().data()), buffer.size());
    if (!co_await send_piece(piece, chunked, false)) co_return false;
    buffer.consume(piece.size());
  }
}

asio::awaitable<bool> PassThrough::more_from_upstream(WireError& error) {
  auto& buffer = link_->buffer;
  const auto room = std::min(read_bytes, buffer.max_size() - buffer.size());
  if (room == 0) co_return false;
  const auto into = buffer.prepare(room);
  Moved moved = link_->wire->read_now(into);
  if (moved.error == asio::error::would_block) {
    link_->watch(silence_max_);
    moved = co_await link_->wire->read(into);
    link_->unwatch();
  }
  buffer.commit(moved.count);
  error = moved.error;
  co_return !moved.error;
}

/// Writes the head if it has not left yet, and a piece of the body. `last` ends the body.
asio::awaitable<bool> PassThrough::send_piece(std::string_view piece, bool chunked, bool last) {
  const SizeLine line(piece.size());
  std::array<asio::const_buffer, 4> parts;
  std::size_t count = 0;
  if (!answer_head_.empty()) parts[count++] = bytes(answer_head_);
  if (chunked && !piece.empty()) parts[count++] = bytes(line.text());
  if (!piece.empty()) parts[count++] = bytes(piece);
  if (chunked && !piece.empty()) parts[count++] = bytes(last ? end_of_last_piece : end_of_piece);
  if (chunked && piece.empty() && last) parts[count++] = bytes(last_chunk);
  const Wire::Parts used(parts.data(), count);
  const Unwritten rest(client_.wire, used);
  const bool sent = rest.done() ? !rest.error() : co_await send_down(rest.parts());
  answer_head_.clear();
  co_return sent;
}

/// Waits until all of it has been written.
asio::awaitable<bool> PassThrough::send_down(Wire::Parts parts) {
  link_->unwatch();
  client_.dog.watch(client_.receive_timeout);
  const auto error = co_await client_.wire.write(parts);
  client_.dog.unwatch();
  co_return !error;
}

}  // namespace semel::net
