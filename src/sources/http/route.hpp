// What a path takes, and how a request on it becomes a delivery.
//
//   path --> method --> size --> signature --> key, principal --> queue
//    404      405        413       401             400, 401       503
#pragma once

#include <chrono>
#include <optional>
#include <semel/delivery.hpp>
#include <semel/result.hpp>
#include <semel/sources/http.hpp>
#include <string>
#include <variant>

#include "net/http_message.hpp"
#include "net/upstream.hpp"

namespace semel::http {

/// A gateway's route, and the service that its requests are for.
struct Guarded {
  GuardedRoute route;
  net::UpstreamOptions upstream;
};

/// One path's settings.
struct Route {
  std::variant<Webhook, Requests, Guarded> kind;

  const std::string& name() const;
  const std::string& path() const;  ///< a guarded route's pattern
};

/// Errors: source_settings_invalid.
Result<void> check_route(const Route& route);

/// The answer to a method that the path does not take; nothing where it does.
std::optional<net::Response> refuse_method(const Route& route, const std::string& method);

/// A delivery, its receipt still to be made out; or why the request is none. The headers become attributes, without
/// those that hold credentials, and the query without them. A guarded route's become the attributes and credentials
/// that `Listener::add` promises.
Result<Delivery> admit(const Route& route, net::Request request, std::chrono::system_clock::time_point now);

}  // namespace semel::http
