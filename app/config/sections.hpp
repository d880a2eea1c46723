// The sections of a configuration file, each read by a file of its own.
#pragma once

#include <optional>
#include <string>

#include "config/config.hpp"
#include "config/reading.hpp"

namespace semel::app {

std::optional<StoreConfig> read_store(Reading& reading, const Place& place, Redactor& redactor);

/// Fills listeners and sources.
void read_sources(Reading& reading, const Place& place, Config& config);

/// Fills handlers; the sources are there.
void read_handlers(Reading& reading, const Place& place, Config& config, SqlDialect dialect);

AnswerTemplate read_answer(Reading& reading, const Place& place);

/// "127.0.0.1:8080", "[::1]:8080".
struct ListenAddress {
  std::string host;
  unsigned short port;
};
std::optional<ListenAddress> read_address(Reading& reading, const Place& place);

}  // namespace semel::app
