// sources:
//   stripe: { http: { listen: 127.0.0.1:8080, path: /hooks, verify: { stripe: { secrets: [ "${SECRET}" ] } } } }
//   orders: { http: { listen: 127.0.0.1:8080, path: /orders, requests: { principal: { header: X-Customer } } } }
//   backlog: { file: events.jsonl.gz }
//   api: { gateway: …, routes: … }   see gateway_section.hpp
#include "config/gateway_section.hpp"
#include "config/listeners.hpp"
#include "config/sections.hpp"

namespace semel::app {
namespace {

using Scheme = http::Verification::Scheme;

/// Reads the sources of one file; listeners are shared by address.
class SourceReader {
 public:
  SourceReader(Reading& reading, Config& config) : reading_(reading), config_(config), listeners_(reading, config) {}

  void read(const std::string& name, const Place& place) {
    Fields fields(reading_, place);
    if (!fields) return;
    if (std::any_of(config_.sources.begin(), config_.sources.end(), [&](const auto& one) { return one.name == name; }))
      reading_.mistake(ErrorCode::config_bad_value, place, "a gateway's route has the name \"" + name + "\" already");
    constexpr std::string_view kinds[] = {"http", "gateway", "file", "queue"};
    const auto written = std::ranges::count_if(kinds, [&](auto kind) { return bool(place.node[std::string(kind)]); });
    if (written > 1)
      reading_.mistake(ErrorCode::config_bad_value, place, "is one of http, gateway, file and queue, not several");
    if (written == 0) reading_.mistake(ErrorCode::config_missing_field, place, "needs http, gateway, file or queue");
    if (const auto http = fields.take("http")) read_http(name, *http);
    if (const auto gateway = fields.take("gateway"))
      read_gateway(reading_, config_, listeners_, name, *gateway, fields);
    if (const auto file = fields.take("file")) read_file(name, *file);
    if (const auto queue = fields.take("queue")) read_queue(name, *queue);
    fields.finish();
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

  void read_queue(const std::string& name, const Place& place) {
    queue::Options options;
    options.name = name;
    if (!place.node.IsMap()) {
      options.queue = reading_.text(place).value_or("");
    } else {
      Fields fields(reading_, place);
      if (const auto queue = fields.require("name", "the queue that handlers publish to"))
        options.queue = reading_.text(*queue).value_or("");
      if (const auto lease = fields.take("lease"))
        options.lease = reading_.duration(*lease, std::chrono::milliseconds(1)).value_or(options.lease);
      if (const auto every = fields.take("poll_every"))
        options.poll_every = reading_.duration(*every, std::chrono::milliseconds(1)).value_or(options.poll_every);
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
    const auto listener = listeners_.listener_for(name + ".http", address);
    listeners_.read_settings(fields, name + ".http", listener);
    const auto verify = fields.take("verify");
    const auto requests = fields.take("requests");
    auto hidden = read_credentials(reading_, fields);
    if (verify && requests) {
      reading_.mistake(ErrorCode::config_bad_value, *requests, "a path takes webhooks or requests, not both");
    } else if (verify) {
      http::Webhook webhook{.name = name, .path = path, .verify = read_verification(*verify)};
      webhook.credentials = std::move(hidden);
      config_.sources.push_back({name, HttpSource{listener, std::move(webhook)}});
    } else if (requests) {
      http::Requests taken{.name = name, .path = path, .principal = read_requests(*requests)};
      taken.credentials = std::move(hidden);
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

  http::Principal read_requests(const Place& place) {
    Fields fields(reading_, place);
    const auto principal = read_principal(reading_, fields, config_);
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
  Listeners listeners_;
};

}  // namespace

void read_sources(Reading& reading, const Place& place, Config& config) {
  Fields fields(reading, place);
  if (!fields) return;
  SourceReader reader(reading, config);
  const auto all = fields.take_all();
  if (all.empty()) reading.mistake(ErrorCode::config_bad_value, place, "must name at least one source");
  for (const auto& [name, source] : all) reader.read(name, source);
}

}  // namespace semel::app
