#include "open_store.hpp"

namespace semel::sqlite::migrations {
std::span<const EmbeddedFile> embedded_files();
}
namespace semel::postgres::migrations {
std::span<const EmbeddedFile> embedded_files();
}

namespace semel::app {

Result<AnyStore> open_store(const StoreConfig& config) {
  return std::visit(
      [](const auto& options) -> Result<AnyStore> {
        if constexpr (std::is_same_v<std::decay_t<decltype(options)>, sqlite::Options>) {
          auto store = sqlite::open(options);
          if (!store) return std::move(store).error();
          return AnyStore(std::move(*store));
        } else {
          auto store = postgres::open(options);
          if (!store) return std::move(store).error();
          return AnyStore(std::move(*store));
        }
      },
      config);
}

std::string store_text(const StoreConfig& config) {
  if (const auto* options = std::get_if<sqlite::Options>(&config)) return "sqlite:" + options->path;
  Redactor redactor;
  const auto& connection = std::get<postgres::Options>(config).connection;
  redactor.add_passwords_of(connection);
  return redactor.clean(connection);
}

std::string migrations_text(const StoreConfig& config) {
  const bool is_sqlite = std::holds_alternative<sqlite::Options>(config);
  std::string text;
  for (const auto& file : is_sqlite ? sqlite::migrations::embedded_files() : postgres::migrations::embedded_files()) {
    text += "-- " + std::string(file.name) + "\n" + std::string(file.text);
  }
  return text;
}

}  // namespace semel::app
