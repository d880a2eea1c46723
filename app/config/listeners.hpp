// Listening addresses, which sources share, and what they have in common with each other.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "config/config.hpp"
#include "config/reading.hpp"
#include "config/sections.hpp"

namespace semel::app {

/// The listeners of one file, by address. `owner` is the field that names the address: "stripe.http".
class Listeners {
 public:
  Listeners(Reading& reading, Config& config) : reading_(reading), config_(config) {}

  /// Its number in Config::listeners.
  std::size_t listener_for(const std::string& owner, const std::optional<ListenAddress>& address);
  /// Takes `tls` and `limits`, which the first owner of an address may set.
  void read_settings(Fields& fields, const std::string& owner, std::size_t listener);

 private:
  void read_tls(const Place& place, http::Options& options);
  void read_limits(const Place& place, http::Options& options);

  Reading& reading_;
  Config& config_;
  std::map<std::size_t, std::string> owners_;  ///< which source wrote a listener's settings
};

/// Takes `principal`, which has no default.
http::Principal read_principal(Reading& reading, Fields& fields, Config& config);

/// Names of headers, from the field `credentials`.
http::Credentials read_credentials(Reading& reading, Fields& fields);

}  // namespace semel::app
