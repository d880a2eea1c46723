#include "net/upstream.hpp"

#include <algorithm>
#include <charconv>

namespace semel::net {

namespace {

/// "host", "host:port", "[v6]:port". False where it is none of these.
bool read_authority(std::string_view authority, UpstreamOptions& options) {
  const auto bracket = authority.find(']');
  const auto colon = authority.find(':', bracket == authority.npos ? 0 : bracket);
  std::string_view host = authority.substr(0, colon);
  if (authority.starts_with('[')) {
    if (bracket == authority.npos || host.size() != bracket + 1) return false;
    host = host.substr(1, bracket - 1);
  }
  const bool plain = std::ranges::none_of(host, [](char c) { return c <= ' ' || c == '@' || c == '[' || c == ']'; });
  if (host.empty() || !plain) return false;
  options.host = host;
  if (colon == authority.npos) return true;
  const auto digits = authority.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), options.port);
  return error == std::errc() && end == digits.data() + digits.size() && options.port != 0;
}

}  // namespace

std::string UpstreamOptions::authority() const {
  std::string text = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != (tls ? 443 : 80)) text.append(":").append(std::to_string(port));
  return text;
}

Result<UpstreamOptions> upstream_at(std::string_view url) {
  const auto refuse = [&](std::string_view why) {
    return fix_call(ErrorCode::source_settings_invalid,
                    "\"" + std::string(url) + "\" is no upstream: " + std::string(why));
  };
  UpstreamOptions options;
  if (url.starts_with("https://")) {
    options.tls = true;
    options.port = 443;
  } else if (!url.starts_with("http://")) {
    return refuse("it begins with http:// or https://");
  }
  const auto rest = url.substr(options.tls ? 8 : 7);
  if (rest.find_first_of("?# \t\r\n") != rest.npos) return refuse("it has no query, fragment or space");
  const auto slash = std::min(rest.find('/'), rest.size());
  // Not quoted: it may hold a password.
  if (rest.substr(0, slash).find('@') != rest.npos)
    return fix_call(ErrorCode::source_settings_invalid, "the upstream's URL holds a user name, which is not sent");
  if (!read_authority(rest.substr(0, slash), options)) return refuse("a host, and a port if it is not the usual one");
  options.base_path = rest.substr(slash);
  while (options.base_path.ends_with('/')) options.base_path.pop_back();
  return options;
}

}  // namespace semel::net
