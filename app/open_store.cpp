#include "open_store.hpp"

#include <filesystem>

namespace semel::sqlite::migrations {
std::span<const EmbeddedFile> embedded_files();
}
namespace semel::postgres::migrations {
std::span<const EmbeddedFile> embedded_files();
}

namespace semel::app {
namespace {

std::string quoted(const std::string& identifier) {
  std::string text = "\"";
  for (const char c : identifier) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

}  // namespace

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

Result<AnyStore> open_existing_store(const StoreConfig& config) {
  if (const auto* options = std::get_if<sqlite::Options>(&config)) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path file(options->path);
    const auto folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    // Where the folder is missing too, the store knows more to say.
    if (fs::status(file, ignored).type() == fs::file_type::not_found && fs::is_directory(folder, ignored)) {
      return fix_call(ErrorCode::schema_missing,
                      "there is no database at " + options->path + "; `semel migrate` creates it");
    }
  }
  return open_store(config);
}

std::string store_text(const StoreConfig& config) {
  if (const auto* options = std::get_if<sqlite::Options>(&config)) return "sqlite:" + options->path;
  Redactor redactor;
  const auto& connection = std::get<postgres::Options>(config).connection;
  redactor.add_passwords_of(connection);
  return redactor.clean(connection);
}

std::string migrations_text(const StoreConfig& config) {
  const auto* postgres = std::get_if<postgres::Options>(&config);
  std::string text = "BEGIN;\n";
  if (postgres) {
    const auto schema = quoted(postgres->schema);
    text += "CREATE SCHEMA IF NOT EXISTS " + schema + ";\nSET LOCAL search_path TO " + schema + ";\n";
  }
  for (const auto& file : postgres ? postgres::migrations::embedded_files() : sqlite::migrations::embedded_files()) {
    const std::string name(file.name);
    text += "-- " + name + "\n" + std::string(file.text);
    text += std::string("INSERT INTO ") + (postgres ? "migrations" : "semel_migrations") + " (version) VALUES (" +
            std::to_string(std::stoi(name)) + ");\n";
  }
  return text + "COMMIT;\n";
}

}  // namespace semel::app
