#include "config/gateway_section.hpp"

#include <algorithm>

#include "config/sections.hpp"
#include "net/upstream.hpp"
#include "sources/http/path_pattern.hpp"

namespace semel::app {
namespace {

constexpr std::string_view match_why = "methods and a path, such as POST /payments or PUT,PATCH /orders/*";

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> items;
  while (true) {
    const auto comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    if (comma == text.npos) return items;
    text.remove_prefix(comma + 1);
  }
}

class GatewayReader {
 public:
  GatewayReader(Reading& reading, Config& config, Listeners& listeners, const std::string& name)
      : reading_(reading), config_(config), listeners_(listeners), name_(name) {
    gateway_.name = name;
  }

  void read(const Place& place, Fields& source) {
    const auto listener = read_settings(place);
    if (const auto routes = source.require("routes", "what is guarded: a list of { match: POST /path, principal: … }"))
      for (const auto& route : reading_.list(*routes)) read_route(route);
    const auto number = config_.gateways.size();
    for (std::size_t i = 0; i < gateway_.routes.size(); ++i)
      config_.sources.push_back({gateway_.routes[i].name, GatewaySource{number, i}});
    said_.name = name_;
    said_.listener = listener;
    said_.gateway = std::move(gateway_);
    config_.gateways.push_back(std::move(said_));
  }

 private:
  std::size_t read_settings(const Place& place) {
    Fields fields(reading_, place);
    if (!fields) return 0;
    const auto listen = fields.require("listen", "an address and a port, such as 127.0.0.1:8080");
    const auto address = listen ? read_address(reading_, *listen) : std::nullopt;
    const auto listener = listeners_.listener_for(name_ + ".gateway", address);
    listeners_.read_settings(fields, name_ + ".gateway", listener);
    for (const auto& other : config_.gateways)
      if (other.listener == listener)
        reading_.mistake(ErrorCode::config_bad_value, place, "gateway \"" + other.name + "\" has this address already");
    read_upstream(fields);
    read_guard(fields);
    fields.finish();
    return listener;
  }

  void read_upstream(Fields& fields) {
    using Host = http::Upstream::Host;
    auto& upstream = gateway_.upstream;
    if (const auto field = fields.require("upstream", "the service behind, such as http://127.0.0.1:3000")) {
      upstream.url = reading_.text(*field).value_or("");
      const auto checked = net::upstream_at(upstream.url);
      if (!upstream.url.empty() && !checked)
        reading_.mistake(ErrorCode::config_bad_value, *field, checked.error().message);
    }
    const auto duration = [&](const std::string& name, std::chrono::milliseconds& target) {
      const auto field = fields.take(name);
      if (field) target = reading_.duration(*field, std::chrono::milliseconds(1)).value_or(target);
    };
    duration("timeout", upstream.timeout);
    duration("connect_timeout", upstream.connect_timeout);
    duration("idle_timeout", upstream.idle_timeout);
    if (const auto field = fields.take("ca_file")) upstream.ca_file = reading_.text(*field).value_or("");
    if (const auto field = fields.take("host"))
      upstream.host = reading_.choice<Host>(*field, {{"client", Host::client}, {"upstream", Host::upstream}})
                          .value_or(upstream.host);
    if (const auto field = fields.take("forwarded"))
      upstream.trust_forwarded = reading_.choice<bool>(*field, {{"replace", false}, {"trust", true}}).value_or(false);
    if (const auto field = fields.take("traceparent"))
      upstream.add_traceparent = reading_.boolean(*field).value_or(true);
  }

  /// What holds for every guarded request.
  void read_guard(Fields& fields) {
    if (const auto field = fields.take("provider")) {
      said_.provider = reading_.verbatim(*field).value_or("");
      if (auto* provider = provider_named(reading_, config_, *field, said_.provider)) provider->used = true;
    }
    if (const auto field = fields.take("retention")) {
      const auto value = reading_.duration(*field, std::chrono::seconds(1));
      if (value) said_.retention = std::chrono::duration_cast<std::chrono::seconds>(*value);
    }
    if (const auto field = fields.take("waiting")) read_waiting(reading_, *field, said_.waiting);
  }

  void read_route(const Place& place) {
    using Key = http::GuardedRoute::Key;
    Fields fields(reading_, place);
    if (!fields) return;
    http::GuardedRoute route;
    const auto match = fields.require("match", match_why);
    if (match) read_match(*match, route);
    if (const auto field = fields.take("key"))
      route.key =
          reading_.choice<Key>(*field, {{"required", Key::required}, {"optional", Key::optional}}).value_or(route.key);
    route.principal = read_principal(reading_, fields, config_);
    route.credentials = read_credentials(reading_, fields);
    const auto own_name = fields.take("name");
    if (own_name) route.name = reading_.text(*own_name).value_or("");
    if (!own_name && match) route.name = name_ + " " + reading_.text(*match).value_or("");
    check_name(own_name ? *own_name : place, route.name);
    fields.finish();
    gateway_.routes.push_back(std::move(route));
  }

  void read_match(const Place& place, http::GuardedRoute& route) {
    static const std::vector<std::string> guardable{"POST", "PUT", "PATCH", "DELETE"};
    const auto text = reading_.text(place);
    if (!text) return;
    const auto space = text->find(' ');
    if (space == std::string::npos)
      return reading_.mistake(ErrorCode::config_bad_value, place, "must be " + std::string(match_why));
    route.methods = split_at_commas(std::string_view(*text).substr(0, space));
    route.path = text->substr(text->find_first_not_of(' ', space));
    for (const auto& method : route.methods)
      if (std::find(guardable.begin(), guardable.end(), method) == guardable.end())
        reading_.mistake(
            ErrorCode::config_bad_value, place,
            "\"" + method + "\" cannot be guarded: POST, PUT, PATCH and DELETE can; all else passes through");
    if (const auto pattern = http::PathPattern::parse(route.path); !pattern)
      reading_.mistake(ErrorCode::config_bad_value, place, pattern.error().message);
  }

  void check_name(const Place& place, const std::string& name) {
    const auto is_it = [&](const auto& other) { return other.name == name; };
    if (std::any_of(gateway_.routes.begin(), gateway_.routes.end(), is_it) ||
        std::any_of(config_.sources.begin(), config_.sources.end(), is_it))
      reading_.mistake(ErrorCode::config_bad_value, place, "a second source named \"" + name + "\"");
  }

  Reading& reading_;
  Config& config_;
  Listeners& listeners_;
  const std::string name_;
  http::Gateway gateway_;
  GatewayConfig said_{};
};

}  // namespace

void read_gateway(Reading& reading, Config& config, Listeners& listeners, const std::string& name, const Place& gateway,
                  Fields& source) {
  GatewayReader(reading, config, listeners, name).read(gateway, source);
}

}  // namespace semel::app
