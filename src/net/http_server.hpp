// An HTTP/1.1 server on one address and one thread: keep-alive, pipelining, TLS, and a limit on everything.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <semel/result.hpp>
#include <string>
#include <vector>

#include "net/http_message.hpp"
#include "net/upstream.hpp"

namespace semel::net {

struct TlsFiles {
  std::string certificate;  ///< PEM, the chain
  std::string key;          ///< PEM
};

/// No header may be longer, whatever the options say.
constexpr std::size_t header_bytes_limit = 64u << 10;

struct ServerOptions {
  std::string address = "127.0.0.1";
  unsigned short port = 0;  ///< 0: any free one
  std::optional<TlsFiles> tls{};
  std::size_t header_bytes_max = 16u << 10;
  std::size_t body_bytes_max = 1u << 20;
  std::chrono::milliseconds receive_timeout{15'000};  ///< for a whole request to arrive, and for an answer to leave
  std::chrono::milliseconds idle_timeout{60'000};     ///< between requests of one connection
  std::chrono::milliseconds answer_deadline{25'000};  ///< then 503 with Retry-After; a later answer is dropped
  /// Where as many are open, the one that has idled longest makes room; where none idles, new ones wait.
  std::size_t connections_max = 1'000;
};

struct Service {
  /// Called on the server's thread for every whole request; returns soon. Must not throw.
  std::function<void(Request, Responder)> serve;
  /// Called before the body is read, with the head alone: an answer refuses the request there and then.
  std::function<std::optional<Response>(const Request& head)> refuse{};
  /// Called before both, on the server's thread: the number of the upstream that the request is passed through to, or
  /// nothing where it is served here. A request passed through has no limit on its body.
  std::function<std::optional<std::size_t>(const RequestHead& head)> forward{};
  std::vector<UpstreamOptions> upstreams{};
  /// Told of each problem that the server answers by itself, before the answer leaves: what `refuse` said, a request
  /// that cannot be read, an answer that is late, an upstream that has none. On the server's thread. Must not throw.
  std::function<void(const Response& problem)> observe{};
};

/// Serves from its creation to `stop` or its destruction. A request that is malformed, too large or too slow gets a
/// problem, and its connection ends.
class Server {
 public:
  virtual ~Server() = default;
  virtual unsigned short port() const = 0;
  /// Accepts no more, ends idle connections, lets requests under way be answered for at most `deadline`, ends the
  /// rest. Returns when the thread has ended; again is harmless. Not from the server's own thread.
  virtual void stop(std::chrono::milliseconds deadline) = 0;
};

/// Listens. Errors: address_in_use; source_settings_invalid for an address that is none or not this machine's, a
/// certificate or key that cannot be read or do not belong together; permission_denied for a port that is.
Result<std::unique_ptr<Server>> serve(ServerOptions options, Service service);

}  // namespace semel::net
