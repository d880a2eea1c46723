// A service behind us, and the connections to it that are kept open.
#pragma once

#include <chrono>
#include <semel/result.hpp>
#include <string>
#include <string_view>

namespace semel::net {

struct UpstreamOptions {
  // From the URL:
  bool tls = false;
  std::string host{};  ///< without brackets
  unsigned short port = 80;
  std::string base_path{};  ///< before every target; without a slash at its end

  /// PEM, with whom to trust over TLS; empty: whom the system trusts.
  std::string ca_file{};
  std::chrono::milliseconds connect_timeout{5'000};  ///< with name look-up and TLS
  std::chrono::milliseconds silence_max{30'000};     ///< from one byte to the next, while we wait for it
  /// How long a connection may wait for its next request: below that of the service, which closes it else at the very
  /// moment of a request.
  std::chrono::milliseconds idle_timeout{4'000};
  std::size_t idle_max = 128;    ///< connections kept open without a request
  bool keep_host = true;         ///< Host as the client sent it; else the URL's
  bool trust_forwarded = false;  ///< X-Forwarded-* and Forwarded that come in were written by a trusted proxy
  bool add_traceparent = true;

  /// "host", "host:8080", "[::1]:8080": as a Host field names it.
  std::string authority() const;
};

/// From "http://127.0.0.1:3000" or "https://host/base". Errors: source_settings_invalid.
Result<UpstreamOptions> upstream_at(std::string_view url);

}  // namespace semel::net
