// A gateway's routes: which of its requests are guarded, and by which source.
#pragma once

#include <memory>
#include <semel/sources/http.hpp>
#include <string_view>
#include <vector>

#include "net/upstream.hpp"
#include "sources/http/path_pattern.hpp"
#include "sources/http/source.hpp"

namespace semel::http {

/// Errors: source_settings_invalid.
Result<net::UpstreamOptions> upstream_options(const Upstream& upstream);

/// Fixed once it serves.
class GatewayRoutes {
 public:
  explicit GatewayRoutes(net::UpstreamOptions upstream) : upstream_(std::move(upstream)) {}

  const net::UpstreamOptions& upstream() const { return upstream_; }
  /// `route` was checked.
  PathSource* add(GuardedRoute route, std::size_t queued_max, const PathSource::OnRefused& on_refused);
  /// The source that guards such a request; null where it is passed through. `path` is without the query.
  PathSource* guard_of(std::string_view method, std::string_view path, bool has_key) const;
  const std::vector<std::unique_ptr<PathSource>>& sources() const { return sources_; }

 private:
  const net::UpstreamOptions upstream_;
  std::vector<PathPattern> patterns_;
  std::vector<std::unique_ptr<PathSource>> sources_;  ///< one for each pattern
};

}  // namespace semel::http
