#include "config/listeners.hpp"

#include <charconv>

#include "net/credentials.hpp"

namespace semel::app {
namespace {

constexpr std::string_view principal_why =
    "say on whose behalf a caller asks: { header: Name } that a trusted proxy sets, credential, or none for a single "
    "tenant; one tenant must never get another's answer";

}  // namespace

std::size_t Listeners::listener_for(const std::string& owner, const std::optional<ListenAddress>& address) {
  for (std::size_t i = 0; address && i < config_.listeners.size(); ++i) {
    // Port 0 is a free port: each a different one.
    const auto& known = config_.listeners[i];
    if (address->port != 0 && known.address == address->host && known.port == address->port) return i;
  }
  http::Options options;
  if (address) options.address = address->host;
  if (address) options.port = address->port;
  config_.listeners.push_back(std::move(options));
  owners_[config_.listeners.size() - 1] = owner;
  return config_.listeners.size() - 1;
}

void Listeners::read_settings(Fields& fields, const std::string& owner, std::size_t listener) {
  const auto tls = fields.take("tls");
  const auto limits = fields.take("limits");
  if (owners_[listener] != owner) {
    for (const auto& place : {tls, limits}) {
      if (!place) continue;
      reading_.mistake(ErrorCode::config_bad_value, *place,
                       "belongs to the address: write it once, at sources." + owners_[listener]);
    }
    return;
  }
  if (tls) read_tls(*tls, config_.listeners[listener]);
  if (limits) read_limits(*limits, config_.listeners[listener]);
}

void Listeners::read_tls(const Place& place, http::Options& options) {
  Fields fields(reading_, place);
  if (!fields) return;
  http::Tls tls;
  if (const auto file = fields.require("certificate", "a PEM file with the chain")) {
    tls.certificate_file = reading_.text(*file).value_or("");
  }
  if (const auto file = fields.require("key", "a PEM file")) tls.key_file = reading_.text(*file).value_or("");
  fields.finish();
  options.tls = std::move(tls);
}

void Listeners::read_limits(const Place& place, http::Options& options) {
  Fields fields(reading_, place);
  if (!fields) return;
  const auto bytes = [&](const std::string& name, std::size_t& target) {
    if (const auto field = fields.take(name)) target = reading_.size(*field).value_or(target);
  };
  const auto count = [&](const std::string& name, std::size_t& target) {
    const auto field = fields.take(name);
    const auto number = field ? reading_.integer(*field, 1, 1'000'000) : std::nullopt;
    if (number) target = static_cast<std::size_t>(*number);
  };
  const auto seconds = [&](const std::string& name, std::chrono::seconds& target) {
    const auto field = fields.take(name);
    const auto value = field ? reading_.duration(*field, std::chrono::seconds(1)) : std::nullopt;
    if (value) target = std::chrono::duration_cast<std::chrono::seconds>(*value);
  };
  bytes("header_bytes", options.header_bytes_max);
  bytes("body_bytes", options.body_bytes_max);
  seconds("receive_timeout", options.receive_timeout);
  seconds("idle_timeout", options.idle_timeout);
  seconds("answer_deadline", options.answer_deadline);
  count("connections", options.connections_max);
  count("queued", options.queued_max);
  fields.finish();
}

http::Principal read_principal(Reading& reading, Fields& fields, Config& config) {
  const auto field = fields.require("principal", principal_why);
  http::Principal principal{.from = http::Principal::From::none, .header = {}};
  if (field && field->node.IsMap()) {
    Fields inside(reading, *field);
    principal.from = http::Principal::From::header;
    const auto header = inside.require("header");
    if (header) principal.header = reading.text(*header).value_or("");
    if (header && net::holds_credentials(principal.header))
      config.warnings.push_back(header->path + ": \"" + principal.header +
                                "\" holds credentials, and a principal is stored as it is; name a header that says who "
                                "asks");
    inside.finish();
  } else if (field) {
    const auto from = reading.choice<http::Principal::From>(
        *field, {{"none", http::Principal::From::none}, {"credential", http::Principal::From::credential_digest}});
    if (from) principal.from = *from;
  }
  return principal;
}

http::Credentials read_credentials(Reading& reading, Fields& fields) {
  http::Credentials credentials;
  if (const auto field = fields.take("credentials"))
    for (const auto& item : reading.one_or_many(*field))
      if (auto header = reading.text(item)) credentials.push_back(*std::move(header));
  return credentials;
}

std::optional<ListenAddress> read_address(Reading& reading, const Place& place) {
  const auto text = reading.text(place);
  if (!text) return std::nullopt;
  const auto colon = text->rfind(':');
  if (colon != std::string::npos && colon > 0) {
    auto host = text->substr(0, colon);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    unsigned short port = 0;
    const auto* end = text->data() + text->size();
    const auto [rest, error] = std::from_chars(text->data() + colon + 1, end, port);
    const bool number = error == std::errc() && rest == end;
    if (number && (bracketed || host.find(':') == std::string::npos)) return ListenAddress{std::move(host), port};
  }
  reading.mistake(
      ErrorCode::config_bad_value, place,
      "must be an address and a port, such as 127.0.0.1:8080 or [::1]:8080, not \"" + place.node.Scalar() + "\"");
  return std::nullopt;
}

}  // namespace semel::app
