// Passes one request after another of one client's connection through to a service, and its answers back. Nothing is
// held but a buffer's length of either body.
//
//   whole request in hand:   [head + body] --one write--> upstream --head, body--> client
//   body still to come:      upload runs beside the answer, so that an answer that comes early is passed on at once
//
// A request is sent again on a new connection only where a kept one turned out to be dead, no byte of an answer had
// come, the method is idempotent (RFC 9110, 9.2.2), and the whole of its body is still in hand. A POST never is.
//
// Answered 501: `Upgrade: websocket`, and CONNECT. Other upgrades (h2c) are ignored, as RFC 9110, 7.8 allows.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/http_message.hpp"
#include "net/passed_head.hpp"
#include "net/upstream_pool.hpp"
#include "net/watchdog.hpp"
#include "net/wire.hpp"

namespace semel::net {

class PassThrough {
 public:
  using HeadParser = boost::beast::http::request_parser<boost::beast::http::empty_body, FieldMemory>;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;

  /// The connection's, all of it.
  struct Client {
    Wire& wire;
    boost::beast::flat_buffer& buffer;
    Watchdog& dog;
    FieldMemory memory;
    std::string peer;
    bool tls;
    std::chrono::milliseconds receive_timeout;
    const bool& stopping;
  };

  struct Outcome {
    std::optional<Response> problem{};  ///< to be given: nothing of an answer has left
    std::optional<Response> answer{};   ///< the same, to a request that was meant for us
    WireError unreadable{};             ///< the request's body could not be read; nothing of an answer has left
    bool keep_alive = false;
    bool whole_request = false;  ///< its end was reached
    bool broken = false;         ///< the answer is cut off, and the client must see that
  };

  PassThrough(boost::asio::io_context& io, Client client);

  /// `owner` keeps this alive.
  Awaitable<Outcome> pass(HeadParser& head, UpstreamPool& pool, std::shared_ptr<void> owner);
  /// Ends what is under way: `pass` returns soon.
  void cancel();

 private:
  using AnswerParser = boost::beast::http::response_parser<boost::beast::http::empty_body, FieldMemory>;

  /// A body that is sent on while it arrives.
  struct Upload {
    Upload(boost::asio::io_context& io, std::function<void()> bark);
    bool running = true;
    bool complete = false;
    bool stop = false;
    WireError unreadable{};
    bool timed_out = false;
    boost::asio::steady_timer ended;
    Watchdog dog;
  };

  void begin(const HeadParser& head, const UpstreamOptions& upstream);
  Awaitable<WireError> read_small_body();
  Awaitable<std::optional<Outcome>> ask_until_answered(HeadParser& head, UpstreamPool& pool,
                                                       const std::shared_ptr<void>& owner);
  Unwritten send_whole();
  Awaitable<WireError> read_answer_head();
  Awaitable<Outcome> pass_answer(UpstreamPool& pool);
  Outcome outcome_of(const WireError& error) const;
  bool may_ask_again() const;

  void start_upload(HeadParser& head, std::shared_ptr<void> owner);
  Awaitable<void> upload_all(HeadParser& head);
  Awaitable<void> upload_length();
  Awaitable<void> upload_chunks(HeadParser& head);
  Awaitable<bool> upload_more();
  Awaitable<bool> send_up(Wire::Parts parts);
  Awaitable<void> end_upload();

  Framing answer_framing() const;
  Awaitable<bool> pass_whole(std::uint64_t length);
  Awaitable<bool> pass_length(std::uint64_t length);
  Awaitable<bool> pass_chunks(bool chunked);
  Awaitable<bool> pass_until_close(bool chunked);
  Awaitable<bool> more_from_upstream(WireError& error);
  Awaitable<bool> send_down(Wire::Parts parts);
  Awaitable<bool> send_piece(std::string_view piece, bool chunked, bool last);

  void look();

  boost::asio::io_context& io_;
  Client client_;
  std::string request_head_;
  std::string answer_head_;  ///< written with the first piece of the body, then empty
  std::vector<char> piece_up_;
  std::vector<char> piece_down_;
  std::shared_ptr<UpstreamLink> link_;
  std::optional<Upload> upload_;
  std::optional<AnswerParser> answer_;
  // Of the request at hand:
  Framing framing_{};
  std::chrono::milliseconds silence_max_{};
  bool idempotent_ = false;
  bool head_only_ = false;
  bool old_client_ = false;  ///< HTTP/1.0: no chunks, no interim answers
  bool keep_alive_ = false;
  bool whole_ = false;  ///< the body is in hand, or there is none
  bool asked_ = false;  ///< some of it may have been sent
  bool answer_begun_ = false;
  bool gone_ = false;  ///< nobody waits for the answer any more
  /// Looks now and then whether the client is still there; the last member, so that it is silenced first.
  Watchdog looking_;
};

}  // namespace semel::net
