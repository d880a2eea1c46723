// A gateway among the sources. Its guarded routes are sources: `from: api` takes them all, and a route's name one.
//
//   api:
//     gateway: { listen: 127.0.0.1:8080, upstream: http://127.0.0.1:3000, timeout: 30s }
//     routes:
//       - { match: POST /payments, key: required, principal: { header: X-User } }
//       - { match: "POST,PUT /orders/*/notes", key: optional, principal: credential, credentials: [X-Api-Key], name:
//       notes }
//
//   gateway  listen, upstream, timeout, connect_timeout, idle_timeout, host (client, upstream),
//            forwarded (replace, trust), traceparent (true, false), ca_file, tls, limits; of its guarded requests:
//            provider (what makes a repeat safe), retention, waiting
//   routes   match, key (required, optional), principal, credentials, name
#pragma once

#include <string>

#include "config/config.hpp"
#include "config/listeners.hpp"
#include "config/reading.hpp"

namespace semel::app {

/// `source` is the mapping that holds `gateway`; its `routes` are taken.
void read_gateway(Reading& reading, Config& config, Listeners& listeners, const std::string& name, const Place& gateway,
                  Fields& source);

}  // namespace semel::app
