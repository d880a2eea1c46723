// A connected byte stream, plain or TLS, so that what copies bytes is written once.
#pragma once

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <span>
#include <type_traits>
#include <utility>

namespace semel::net {

using WireError = boost::system::error_code;

struct Moved {
  WireError error{};
  std::size_t count = 0;
};

/// One thread at a time; at most one read and one write under way.
class Wire {
 public:
  using Tcp = boost::asio::ip::tcp;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;
  using Parts = std::span<const boost::asio::const_buffer>;

  virtual ~Wire() = default;
  virtual Tcp::socket& socket() = 0;
  /// What is there already; would_block where that cannot be said at once.
  virtual Moved read_now(boost::asio::mutable_buffer into) = 0;
  /// As much as goes out without waiting; would_block where that is nothing.
  virtual Moved write_now(Parts parts) = 0;
  virtual Awaitable<Moved> read(boost::asio::mutable_buffer into) = 0;
  /// All of it, or an error.
  virtual Awaitable<WireError> write(Parts parts) = 0;
};

/// `Stream` is a TCP socket or Asio's TLS stream over one.
template <class Stream>
class WireOf final : public Wire {
 public:
  static constexpr bool is_tls = !std::is_same_v<Stream, Tcp::socket>;

  explicit WireOf(Stream with) : stream(std::move(with)) {}

  Tcp::socket& socket() override {
    if constexpr (is_tls)
      return stream.next_layer();
    else
      return stream;
  }

  Moved read_now(boost::asio::mutable_buffer into) override {
    Moved moved{.error = boost::asio::error::would_block, .count = 0};
    if constexpr (!is_tls) moved.count = stream.read_some(into, moved.error);
    return moved;
  }
  Moved write_now(Parts parts) override {
    Moved moved{.error = boost::asio::error::would_block, .count = 0};
    if constexpr (!is_tls) moved.count = stream.write_some(parts, moved.error);
    return moved;
  }
  Awaitable<Moved> read(boost::asio::mutable_buffer into) override {
    constexpr auto token = boost::asio::experimental::as_tuple(boost::asio::use_awaitable);
    const auto [error, count] = co_await stream.async_read_some(into, token);
    co_return Moved{error, count};
  }
  Awaitable<WireError> write(Parts parts) override {
    constexpr auto token = boost::asio::experimental::as_tuple(boost::asio::use_awaitable);
    const auto [error, count] = co_await boost::asio::async_write(stream, parts, token);
    co_return error;
  }

  Stream stream;
};

/// What `write_now` has left to do.
class Unwritten {
 public:
  Unwritten() = default;  ///< nothing
  /// Writes what goes out at once; usually all of it.
  Unwritten(Wire& wire, Wire::Parts parts);

  bool done() const { return error_ || count_ == 0; }
  const WireError& error() const { return error_; }
  Wire::Parts parts() const { return {parts_.data(), count_}; }

 private:
  static constexpr std::size_t parts_max = 4;
  WireError error_{};
  std::array<boost::asio::const_buffer, parts_max> parts_;
  std::size_t count_ = 0;
};

/// Writes all of `parts`; waits only for what does not go out at once.
boost::asio::awaitable<WireError> write_all(Wire& wire, Wire::Parts parts);

/// Gives `parser` what is in `buffer`. True where that ends it: its head is there, or it failed.
template <class Parser>
bool parse_head(boost::beast::flat_buffer& buffer, Parser& parser, WireError& error) {
  error = {};
  if (buffer.size() == 0) return false;
  buffer.consume(parser.put(buffer.data(), error));
  if (error == boost::beast::http::error::need_more) error = {};
  return error || parser.is_header_done();
}

/// Reads until `parser` (of Boost.Beast) has its head. What follows the head stays in `buffer`. Errors are the wire's,
/// the parser's, end_of_stream before the first byte, partial_message, buffer_overflow.
template <class Parser>
boost::asio::awaitable<WireError> read_head(Wire& wire, boost::beast::flat_buffer& buffer, Parser& parser) {
  namespace http = boost::beast::http;
  constexpr std::size_t read_bytes = 8'192;
  while (true) {
    WireError error;
    if (parse_head(buffer, parser, error)) co_return error;
    const auto room = std::min(read_bytes, buffer.max_size() - buffer.size());
    if (room == 0) co_return http::error::buffer_overflow;
    const auto into = buffer.prepare(room);
    const Moved moved = co_await wire.read(into);
    if (moved.error == boost::asio::error::eof)
      co_return buffer.size() == 0 && !parser.got_some() ? http::error::end_of_stream : http::error::partial_message;
    if (moved.error) co_return moved.error;
    buffer.commit(moved.count);
  }
}

}  // namespace semel::net
