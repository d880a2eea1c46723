// HTTP/1.1 as a source: webhooks, requests with an Idempotency-Key, and a gateway that gives a service such requests.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <semel/source.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace semel::http {

/// One shared secret. `label` may be printed; `value` never is.
struct Secret {
  std::string label;
  std::string value;
};

/// How a webhook's signature is checked: over the raw bytes, in constant time, before anything else is looked at.
/// Any one of `secrets` may match, so that secrets can be rotated.
struct Verification {
  enum class Scheme { none, stripe, github, shopify, slack, standard_webhooks, hmac } scheme = Scheme::none;
  std::vector<Secret> secrets{};
  /// How far a signed timestamp may be from now, both ways.
  std::chrono::seconds tolerance{300};

  // Only for `hmac`:
  std::string header{};  ///< the header with the signature
  std::string prefix{};  ///< before the signature in the header, such as "sha256="
  enum class Digest { sha256, sha512 } digest = Digest::sha256;
  enum class Encoding { hex, base64 } encoding = Encoding::hex;
};

/// Where a caller's principal comes from; there is no default.
struct Principal {
  enum class From { none, header, credential_digest } from;
  std::string header{};  ///< for `header`: set by a trusted proxy
};

/// Headers that hold credentials, beside those with a usual name (Authorization, Cookie, X-Api-Key, X-Auth-Token,
/// X-Amz-Security-Token and their like). They are never stored, and no handler sees them.
using Credentials = std::vector<std::string>;

/// A path that takes webhooks.
struct Webhook {
  std::string name;  ///< the source's name
  std::string path;
  Verification verify{};
  Credentials credentials{};
};

/// A path that takes requests with an `Idempotency-Key`. Methods other than POST, PUT, PATCH and DELETE get 405.
struct Requests {
  std::string name;
  std::string path;
  Principal principal;
  Credentials credentials{};
};

/// A service behind a gateway.
struct Upstream {
  std::string url;  ///< "http://127.0.0.1:3000" or "https://host/base"
  /// PEM, with whom to trust over TLS; empty: whom the system trusts.
  std::string ca_file{};
  std::chrono::milliseconds connect_timeout{5'000};  ///< with name look-up and TLS; then 504
  std::chrono::milliseconds timeout{30'000};         ///< of silence, while it is its turn to speak; then 504
  /// How long a connection to it may wait for its next request: below its own patience.
  std::chrono::milliseconds idle_timeout{4'000};
  enum class Host { client, upstream } host = Host::client;  ///< whose name the Host header has
  /// X-Forwarded-* and Forwarded that come in were written by a trusted proxy: kept, and extended. Else dropped.
  bool trust_forwarded = false;
  bool add_traceparent = true;  ///< where there is none
};

/// Requests through a gateway that take effect once for each `Idempotency-Key`.
struct GuardedRoute {
  std::string name;                          ///< the source's name
  std::vector<std::string> methods{"POST"};  ///< of POST, PUT, PATCH, DELETE
  /// "/payments"; "/orders/*/refunds", where `*` stands for any one segment; "/admin/**" for all below. Compared after
  /// percent-decoding, without dot segments, doubled slashes and a slash at the end, so that no other spelling of a
  /// guarded path slips past it.
  std::string path;
  Principal principal;
  enum class Key {
    required,  ///< without one: 400
    optional,  ///< without one: passed through, unguarded
  } key = Key::required;
  std::size_t key_size_max = 1024;  ///< bytes that the service takes of a key: 400 for a longer one
  Credentials credentials{};        ///< they reach the service
};

/// Everything on a listener that no other source takes: guarded routes, and the rest passed through as a stream, with
/// no limit on bodies. WebSocket is refused with 501.
struct Gateway {
  std::string name;
  Upstream upstream;
  std::vector<GuardedRoute> routes{};  ///< the first that fits counts
};

struct Tls {
  std::string certificate_file;  ///< PEM, the chain
  std::string key_file;          ///< PEM
};

struct Options {
  std::string address = "127.0.0.1";
  unsigned short port = 8080;  ///< 0: any free one; see `Listener::port`
  std::optional<Tls> tls{};
  std::size_t header_bytes_max = 16u << 10;  ///< at most 64 KiB; a trailer and a chunk's extensions have the same limit
  std::size_t body_bytes_max = 1u << 20;
  std::chrono::seconds receive_timeout{15};  ///< for a whole request to arrive
  std::chrono::seconds idle_timeout{60};     ///< between requests of one connection
  std::chrono::seconds answer_deadline{25};  ///< then 503 with Retry-After; the work goes on
  std::size_t connections_max = 1'000;
  std::size_t queued_max = 10'000;  ///< requests waiting for a lane; more get 503 with Retry-After
  /// Told of a request for `source` that was answered before any lane saw it: a bad signature, a missing key or
  /// principal, a full queue. Any thread; must not block, must not throw.
  std::function<void(std::string_view source, const Error& why)> on_refused{};
  /// Told of a request that was answered for no source: nothing is served there, it was too slow or too large, or the
  /// service behind the gateway gave no answer. `problem` is its type without `urn:semel:problem:`. The listener's
  /// thread; must not block, must not throw.
  std::function<void(int status, std::string_view problem)> on_problem{};
};

/// One listening address with any number of sources on it. It serves from `start` to its destruction, on one thread.
class Listener {
 public:
  virtual ~Listener() = default;
  /// Adds a path before `start`; the source lives as long as the listener. Errors: source_settings_invalid for a path
  /// that is taken or does not start with "/", a scheme without secrets, a secret that cannot be one of its scheme.
  virtual Result<semel::Source*> add(Webhook webhook) = 0;
  virtual Result<semel::Source*> add(Requests requests) = 0;
  /// One source for each route, in their order. A listener has one gateway at most. Errors: source_settings_invalid,
  /// also for an upstream's URL or a pattern that is none.
  ///
  /// A delivery has the end-to-end headers among its attributes, with what a proxy adds (Via, X-Forwarded-For, -Proto
  /// and -Host, traceparent), the canonical `idempotency-key`, `:method`, and `:path` with the query; and in
  /// `credentials` those headers that hold some. Together with the body that is the request to the service.
  virtual Result<std::vector<semel::Source*>> add(Gateway gateway) = 0;
  /// Errors: address_in_use, source_settings_invalid (address, certificate).
  virtual Result<void> start() = 0;
  virtual unsigned short port() const = 0;
};

Result<std::unique_ptr<Listener>> listen(Options options);

}  // namespace semel::http
