// The store that a configuration names, opened.
#pragma once

#include <memory>
#include <semel/stores/postgres.hpp>
#include <semel/stores/sqlite.hpp>
#include <span>
#include <variant>

#include "base/embedded.hpp"
#include "config/config.hpp"

namespace semel::app {

using AnyStore = std::variant<std::unique_ptr<sqlite::Store>, std::unique_ptr<postgres::Store>>;

/// A missing SQLite file is created.
Result<AnyStore> open_store(const StoreConfig& config);
/// A missing SQLite file is an error (schema_missing): only `semel migrate` makes one.
Result<AnyStore> open_existing_store(const StoreConfig& config);

inline Store& store_of(const AnyStore& store) {
  return std::visit([](const auto& opened) -> Store& { return *opened; }, store);
}

/// For people: the file, or the connection without its password.
std::string store_text(const StoreConfig& config);

/// The SQL that `semel migrate` applies, oldest first.
std::string migrations_text(const StoreConfig& config);

}  // namespace semel::app
