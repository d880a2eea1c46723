// store: sqlite:shop.db
// store: postgresql://…
// store: { uri: …, lock_timeout: 2s, … }
#include "config/sections.hpp"

namespace semel::app {
namespace {

constexpr std::string_view uri_shapes = "a store is sqlite:path, or postgresql://user@host/database";

void read_sqlite(Reading& reading, Fields& fields, sqlite::Options& options) {
  using Synchronous = sqlite::Options::Synchronous;
  if (const auto place = fields.take("synchronous")) {
    const auto chosen = reading.choice<Synchronous>(
        *place, {{"full", Synchronous::full}, {"normal", Synchronous::normal}, {"off", Synchronous::off}});
    if (chosen) options.synchronous = *chosen;
  }
  if (const auto place = fields.take("cache_mebibytes")) {
    options.cache_mebibytes = static_cast<int>(reading.integer(*place, 1, 65'536).value_or(options.cache_mebibytes));
  }
}

void read_postgres(Reading& reading, Fields& fields, postgres::Options& options) {
  if (const auto place = fields.take("schema")) {
    if (const auto schema = reading.text(*place)) options.schema = *schema;
    if (options.schema.empty()) reading.mistake(ErrorCode::config_bad_value, *place, "must not be empty");
  }
  const auto duration = [&](const std::string& name, std::chrono::milliseconds& target) {
    const auto place = fields.take(name);
    if (place) target = reading.duration(*place, std::chrono::milliseconds(1)).value_or(target);
  };
  duration("statement_timeout", options.statement_timeout);
  duration("connect_timeout", options.connect_timeout);
  if (const auto place = fields.take("prepared_statements")) {
    options.prepared_statements = reading.boolean(*place).value_or(true);
  }
}

}  // namespace

Result<StoreConfig> store_from_uri(const std::string& uri) {
  if (uri.starts_with("sqlite:") && uri.size() > 7) {
    sqlite::Options options;
    options.path = uri.substr(7);
    return StoreConfig(std::move(options));
  }
  if (uri.starts_with("postgresql://") || uri.starts_with("postgres://")) {
    postgres::Options options;
    options.connection = uri;
    return StoreConfig(std::move(options));
  }
  return fix_call(ErrorCode::config_bad_value, std::string(uri_shapes));
}

SqlDialect dialect_of(const StoreConfig& store) {
  return std::holds_alternative<sqlite::Options>(store) ? SqlDialect::sqlite : SqlDialect::postgres;
}

std::optional<StoreConfig> read_store(Reading& reading, const Place& place, Redactor& redactor) {
  const bool only_uri = !place.node.IsMap();
  std::optional<Fields> fields;
  std::optional<Place> uri_place = place;
  if (!only_uri) {
    fields.emplace(reading, place);
    uri_place = fields->require("uri", uri_shapes);
  }
  const auto uri = uri_place ? reading.text(*uri_place) : std::nullopt;
  if (!uri) return std::nullopt;
  redactor.add_passwords_of(*uri);
  auto store = store_from_uri(*uri);
  if (!store) {
    // What was written is not repeated: it may hold a password.
    reading.mistake(store.error().code, *uri_place, store.error().message);
    return std::nullopt;
  }
  if (!fields) return std::move(*store);
  std::visit(
      [&](auto& options) {
        if (const auto timeout = fields->take("lock_timeout")) {
          options.lock_timeout =
              reading.duration(*timeout, std::chrono::milliseconds(1)).value_or(options.lock_timeout);
        }
        if (const auto allow = fields->take("allow_unsafe_durability")) {
          options.allow_unsafe_durability = reading.boolean(*allow).value_or(false);
        }
        if constexpr (std::is_same_v<std::decay_t<decltype(options)>, sqlite::Options>) {
          read_sqlite(reading, *fields, options);
        } else {
          read_postgres(reading, *fields, options);
        }
      },
      *store);
  fields->finish();
  return std::move(*store);
}

}  // namespace semel::app
