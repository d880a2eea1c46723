#include "sources/http/gateway.hpp"

#include <algorithm>

namespace semel::http {

Result<net::UpstreamOptions> upstream_options(const Upstream& upstream) {
  auto options = net::upstream_at(upstream.url);
  if (!options) return options;
  options->ca_file = upstream.ca_file;
  options->connect_timeout = upstream.connect_timeout;
  options->silence_max = upstream.timeout;
  options->idle_timeout = upstream.idle_timeout;
  options->keep_host = upstream.host == Upstream::Host::client;
  options->trust_forwarded = upstream.trust_forwarded;
  options->add_traceparent = upstream.add_traceparent;
  return options;
}

PathSource* GatewayRoutes::add(GuardedRoute route, std::size_t queued_max, const PathSource::OnRefused& on_refused) {
  patterns_.push_back(PathPattern::parse(route.path).value());
  Route guarded{Guarded{std::move(route), upstream_}};
  return sources_.emplace_back(std::make_unique<PathSource>(std::move(guarded), queued_max, on_refused)).get();
}

PathSource* GatewayRoutes::guard_of(std::string_view method, std::string_view path, bool has_key) const {
  // Safe methods are never guarded, and most requests have one.
  if (method == "GET" || method == "HEAD" || method == "OPTIONS") return nullptr;
  const std::string plain = plain_path(path);
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    const auto& route = std::get<Guarded>(sources_[i]->route().kind).route;
    if (std::ranges::find(route.methods, method) == route.methods.end() || !patterns_[i].matches(plain)) continue;
    return has_key || route.key == GuardedRoute::Key::required ? sources_[i].get() : nullptr;
  }
  return nullptr;
}

}  // namespace semel::http
