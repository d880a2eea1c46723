// sources:
//   stripe: { http: { listen: 127.0.0.1:8080, path: /hooks, verify: { stripe: { secrets: [ "${SECRET}" ] } } } }
//   orders: { http: { listen: 127.0.0.1:8080, path: /orders, requests: { principal: { header: X-Customer } } } }
//   backlog: { file: events.jsonl.gz }
#include <charconv>
#include <map>

#include "config/sections.hpp"

namespace semel::app {
namespace {

using Scheme = http::Verification::Scheme;

constexpr std::string_view principal_why =
    "say on whose behalf a caller asks: { header: Name } that a trusted proxy sets, credential, or none for a single "
    "tenant; one tenant must never get another's answer";

/// Reads the sources of one file; listeners are shared by address.
class SourceReader {
 public:
  SourceReader(Reading& reading, Config& config) : reading_(reading), config_(config) {}

  void read(const std::string& name, const Place& place) {
    Fields fields(reading_, place);
    if (!fields) return;
    const auto http = fields.take("http");
    const auto file = fields.take("file");
    if (http && file) reading_.mistake(ErrorCode::config_bad_value, place, "is either \"http\" or \"file\", not both");
    if (http) read_http(name, *http);
    if (file) read_file(name, *file);
    fields.finish();
    if (!http && !file && !place.node["http"] && !place.node["file"]) {
      reading_.mistake(ErrorCode::config_missing_field, place, "needs \"http\" or \"file\"");
    }
  }

 private:
  void read_file(const std::string& name, const Place& place) {
    file::Options options;
    options.name = name;
    if (!place.node.IsMap()) {
      options.path = reading_.text(place).value_or("");
    } else {
      Fields fields(reading_, place);
      if (const auto path = fields.require("path")) options.path = reading_.text(*path).value_or("");
      if (const auto size = fields.take("line_bytes_max")) {
        options.line_bytes_max = reading_.size(*size).value_or(options.line_bytes_max);
      }
      if (const auto count = fields.take("buffered_lines_max")) {
        options.buffered_lines_max = static_cast<std::size_t>(
            reading_.integer(*count, 1, 10'000'000).value_or(static_cast<std::int64_t>(options.buffered_lines_max)));
      }
      fields.finish();
    }
    config_.sources.push_back({name, std::move(options)});
  }

  void read_http(const std::string& name, const Place& place) {
    Fields fields(reading_, place);
    if (!fields) return;
    const auto listen = fields.require("listen", "an address and a port, such as 127.0.0.1:8080");
    const auto path = read_path(fields);
    const auto address = listen ? read_address(reading_, *listen) : std::nullopt;
    const auto listener = listener_for(name, address);
    read_listener(fields, name, listener);
    const auto verify = fields.take("verify");
    const auto requests = fields.take("requests");
    if (verify && requests) {
      reading_.mistake(ErrorCode::config_bad_value, *requests, "a path takes webhooks or requests, not both");
    } else if (verify) {
      http::Webhook webhook{.name = name, .path = path, .verify = read_verification(*verify)};
      config_.sources.push_back({name, HttpSource{listener, std::move(webhook)}});
    } else if (requests) {
      http::Requests taken{.name = name, .path = path, .principal = read_requests(*requests)};
      config_.sources.push_back({name, HttpSource{listener, std::move(taken)}});
    } else if (!place.node["verify"] && !place.node["requests"]) {
      reading_.mistake(ErrorCode::config_missing_field, place,
                       "needs \"verify\" (a webhook; \"verify: none\" takes it from anybody) or \"requests\" "
                       "(callers with an Idempotency-Key)");
    }
    fields.finish();
  }

  std::string read_path(Fields& fields) {
    const auto place = fields.require("path", "such as /webhooks/stripe");
    const auto path = place ? reading_.text(*place) : std::nullopt;
    if (!path) return "/";
    if (!path->starts_with('/')) {
      reading_.mistake(ErrorCode::config_bad_value, *place, "must begin with \"/\", not \"" + *path + "\"");
    }
    return *path;
  }

  std::size_t listener_for(const std::string& name, const std::optional<ListenAddress>& address) {
    for (std::size_t i = 0; address && i < config_.listeners.size(); ++i) {
      // Port 0 is a free port: each a different one.
      const auto& known = config_.listeners[i];
      if (address->port != 0 && known.address == address->host && known.port == address->port) return i;
    }
    http::Options options;
    if (address) options.address = address->host;
    if (address) options.port = address->port;
    config_.listeners.push_back(std::move(options));
    owners_[config_.listeners.size() - 1] = name;
    return config_.listeners.size() - 1;
  }

  void read_listener(Fields& fields, const std::string& name, std::size_t listener) {
    const auto tls = fields.take("tls");
    const auto limits = fields.take("limits");
    if (owners_[listener] != name) {
      for (const auto& place : {tls, limits}) {
        if (!place) continue;
        reading_.mistake(ErrorCode::config_bad_value, *place,
                         "belongs to the address: write it once, at sources." + owners_[listener] + ".http");
      }
      return;
    }
    if (tls) read_tls(*tls, config_.listeners[listener]);
    if (limits) read_limits(*limits, config_.listeners[listener]);
  }

  void read_tls(const Place& place, http::Options& options) {
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

  void read_limits(const Place& place, http::Options& options) {
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

  http::Principal read_requests(const Place& place) {
    Fields fields(reading_, place);
    const auto field = fields.require("principal", principal_why);
    http::Principal principal{.from = http::Principal::From::none, .header = {}};
    if (field && field->node.IsMap()) {
      Fields inside(reading_, *field);
      principal.from = http::Principal::From::header;
      if (const auto header = inside.require("header")) principal.header = reading_.text(*header).value_or("");
      inside.finish();
    } else if (field) {
      const auto from = reading_.choice<http::Principal::From>(
          *field, {{"none", http::Principal::From::none}, {"credential", http::Principal::From::credential_digest}});
      if (from) principal.from = *from;
    }
    if (fields) fields.finish();
    return principal;
  }

  http::Verification read_verification(const Place& place) {
    static const std::vector<std::pair<std::string, Scheme>> schemes = {
        {"stripe", Scheme::stripe}, {"github", Scheme::github}, {"shopify", Scheme::shopify},
        {"slack", Scheme::slack},   {"hmac", Scheme::hmac},     {"standard-webhooks", Scheme::standard_webhooks}};
    http::Verification verification;
    if (!place.node.IsMap()) {
      const auto none = reading_.choice<Scheme>(place, {{"none", Scheme::none}});
      if (none) config_.warnings.push_back(place.path + ": anybody who reaches this path can send messages");
      return verification;
    }
    Fields fields(reading_, place);
    for (const auto& [name, scheme] : schemes) {
      const auto settings = fields.take(name);
      if (!settings) continue;
      if (verification.scheme != Scheme::none) {
        reading_.mistake(ErrorCode::config_bad_value, *settings, "one scheme for a path");
      }
      verification.scheme = scheme;
      read_scheme(*settings, verification);
    }
    if (place.node.size() == 0) reading_.mistake(ErrorCode::config_missing_field, place, "names no scheme");
    fields.finish();
    return verification;
  }

  void read_scheme(const Place& place, http::Verification& verification) {
    Fields fields(reading_, place);
    if (!fields) return;
    if (const auto secrets = fields.require("secrets", "at least one; two while a secret is rotated")) {
      read_secrets(*secrets, verification);
    }
    const bool timed = verification.scheme == Scheme::stripe || verification.scheme == Scheme::slack ||
                       verification.scheme == Scheme::standard_webhooks;
    const auto tolerance = timed ? fields.take("tolerance") : std::nullopt;
    if (tolerance) {
      const auto value = reading_.duration(*tolerance, std::chrono::seconds(1));
      if (value) verification.tolerance = std::chrono::duration_cast<std::chrono::seconds>(*value);
    }
    if (verification.scheme == Scheme::hmac) read_hmac(fields, verification);
    fields.finish();
  }

  void read_secrets(const Place& place, http::Verification& verification) {
    for (const auto& item : reading_.list(place)) {
      const auto value = reading_.secret(item);
      if (!value) continue;
      if (reading_.secret_was_written()) {
        config_.warnings.push_back(item.path + ": a secret stands in the file; write ${NAME} or { file: path }");
      }
      config_.redactor.add(*value);
      verification.secrets.push_back({.label = item.path, .value = *value});
    }
  }

  void read_hmac(Fields& fields, http::Verification& verification) {
    using Verification = http::Verification;
    if (const auto place = fields.require("header", "the header that carries the signature")) {
      verification.header = reading_.text(*place).value_or("");
    }
    if (const auto place = fields.take("prefix")) verification.prefix = reading_.text(*place).value_or("");
    if (const auto place = fields.take("digest")) {
      const auto digest = reading_.choice<Verification::Digest>(
          *place, {{"sha256", Verification::Digest::sha256}, {"sha512", Verification::Digest::sha512}});
      if (digest) verification.digest = *digest;
    }
    if (const auto place = fields.take("encoding")) {
      const auto encoding = reading_.choice<Verification::Encoding>(
          *place, {{"hex", Verification::Encoding::hex}, {"base64", Verification::Encoding::base64}});
      if (encoding) verification.encoding = *encoding;
    }
  }

  Reading& reading_;
  Config& config_;
  std::map<std::size_t, std::string> owners_;  ///< which source wrote a listener's settings
};

}  // namespace

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

void read_sources(Reading& reading, const Place& place, Config& config) {
  Fields fields(reading, place);
  if (!fields) return;
  SourceReader reader(reading, config);
  const auto all = fields.take_all();
  if (all.empty()) reading.mistake(ErrorCode::config_bad_value, place, "must name at least one source");
  for (const auto& [name, source] : all) reader.read(name, source);
}

}  // namespace semel::app
