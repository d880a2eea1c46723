// Outgoing HTTP/1.1: many calls at a time on one thread, each sent once.
//
// Libraries that speak HTTP send a request again by themselves where a kept connection turns out to be dead, since no
// answer came. The server may have acted all the same. Here a request leaves at most once, and every failure says
// whether it can have left at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <semel/delivery.hpp>
#include <semel/result.hpp>
#include <semel/source.hpp>
#include <string>
#include <vector>

namespace semel::net {

struct ClientOptions {
  /// PEM, the certificates trusted instead of the system's. A server's certificate is always checked.
  std::optional<std::string> ca_file{};
  /// "http://host:port", also socks5h:// and what else libcurl knows; empty: none. Nothing: the environment decides
  /// (https_proxy, http_proxy, no_proxy).
  std::optional<std::string> proxy{};
  std::chrono::milliseconds connect_timeout{10'000};  ///< resolving, connecting, TLS
  std::size_t header_bytes_max = 64u << 10;
  std::size_t body_bytes_max = 1u << 20;  ///< what is longer is cut
  std::size_t kept_connections_max = 32;  ///< kept open between calls
  std::chrono::seconds kept_at_most{20};  ///< a connection that idled longer is not used again
};

/// `method`, `url` (http or https) and `headers` must be well formed (see `outgoing_problem`).
struct Outgoing {
  std::uint64_t token = 0;  ///< the caller's own; comes back with the outcome
  std::string method = "POST";
  std::string url;
  Attributes headers{};  ///< sent as they are; only Host, Content-Length and Accept are added
  std::string body{};
  std::chrono::milliseconds timeout{30'000};  ///< of everything
  /// On a connection of its own. A kept one may be closed by the other side at the very moment of sending, and then
  /// nobody knows: worth a handshake where nothing makes a repeat safe.
  bool fresh_connection = false;
};

/// Says what makes it impossible to send; empty where nothing does. No text of the request is in it.
std::string outgoing_problem(const Outgoing& outgoing);

/// How a call ended.
struct Returned {
  std::uint64_t token = 0;
  enum class Reach {
    not_sent,  ///< no byte of the request left: not resolved, not connected, no TLS
    unknown,   ///< it left, or a part of it, and no whole head of an answer came back
    answered,  ///< with a status
  } reach = Reach::unknown;
  int status = 0;
  Attributes headers{};
  std::string body{};
  bool cut = false;      ///< answered, but the body is not whole: too long, or the connection ended
  std::string detail{};  ///< for people: what went wrong
};

/// Redirects are not followed: a 3xx is an answer. Nothing is sent twice. Thread-safe.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  /// Never waits. Every call that was begun is collected once.
  virtual void begin(Outgoing outgoing) = 0;
  virtual std::vector<Returned> collect() = 0;
};

/// `bell` is rung when there is something to collect, and outlives the client. Destroying the client drops the calls
/// under way. Errors: config_bad_value for a CA file that cannot be read.
Result<std::unique_ptr<HttpClient>> http_client(ClientOptions options, Doorbell& bell);

}  // namespace semel::net
