// How a command comes to its configuration and its store: mistakes are reported, and the exit code is theirs.
#pragma once

#include <string>
#include <utility>

#include "config/config.hpp"
#include "open_store.hpp"
#include "output.hpp"

namespace semel::app {

/// Runs `command(Config)`.
template <class F>
int with_config(const std::string& file, F command) {
  auto loaded = load_config(file, process_environment());
  if (!loaded.config) return report(loaded.mistakes, file);
  return command(std::move(*loaded.config));
}

/// Runs `command(const Config&, const AnyStore&)`.
template <class F>
int with_store(const std::string& file, F command) {
  return with_config(file, [&](const Config& config) {
    const auto store = open_existing_store(config.store);
    if (!store) return report(store.error(), config.redactor);
    return command(config, *store);
  });
}

}  // namespace semel::app
