#include "stores/sqlite/schema.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <string>

#include "base/embedded.hpp"

namespace semel::sqlite {

namespace migrations {
std::span<const EmbeddedFile> embedded_files();
}

namespace {

struct Migration {
  int version;
  std::string_view text;
};

/// "0001_first.sql" is version 1.
std::vector<Migration> all_migrations() {
  std::vector<Migration> all;
  for (const EmbeddedFile& file : migrations::embedded_files()) {
    int version = 0;
    std::from_chars(file.name.data(), file.name.data() + file.name.size(), version);
    all.push_back({version, file.text});
  }
  std::ranges::sort(all, {}, &Migration::version);
  return all;
}

std::string newer_message(int version) {
  return "the schema is of version " + std::to_string(version) + ", which is newer than this release's " +
         std::to_string(newest_version()) + "; use the newer release";
}

Result<std::vector<int>> apply_missing(Connection& connection) {
  const auto version = schema_version(connection);
  if (!version) return version.error();
  if (*version > newest_version()) return fix_call(ErrorCode::schema_newer, newer_message(*version));
  std::vector<int> applied;
  for (const Migration& migration : all_migrations()) {
    if (migration.version <= *version) continue;
    const auto mark = "INSERT INTO semel_migrations (version) VALUES (" + std::to_string(migration.version) + ")";
    if (auto run = connection.run_script(std::string(migration.text)); !run) return run.error();
    if (auto run = connection.run_script(mark); !run) return run.error();
    applied.push_back(migration.version);
  }
  return applied;
}

}  // namespace

int newest_version() { return all_migrations().back().version; }

Result<int> schema_version(Connection& connection) {
  const auto table =
      connection.look_up("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'semel_migrations'");
  if (!table) return table.error();
  if (!*table) return 0;
  const auto version = connection.look_up("SELECT coalesce(max(version), 0) FROM semel_migrations");
  if (!version) return version.error();
  return static_cast<int>(std::get<std::int64_t>(**version));
}

Result<std::vector<int>> migrate(Connection& connection) {
  if (auto begun = connection.begin(); !begun) return begun.error();
  auto applied = apply_missing(connection);
  if (!applied) return connection.rollback(), applied;
  if (auto committed = connection.commit(); !committed) return connection.rollback(), committed.error();
  return applied;
}

Result<std::vector<Finding>> check_schema(Connection& connection) {
  const auto version = schema_version(connection);
  if (!version) return version.error();
  if (*version == newest_version()) return std::vector<Finding>();
  if (*version > newest_version())
    return std::vector{Finding{Finding::Severity::refuse, newer_message(*version), ErrorCode::schema_newer}};
  const auto message = *version == 0 ? std::string("Semel's tables are not there yet")
                                     : "the schema is of version " + std::to_string(*version) + ", older than " +
                                           std::to_string(newest_version());
  return std::vector{Finding{Finding::Severity::refuse, message + "; run `semel migrate`", ErrorCode::schema_missing}};
}

}  // namespace semel::sqlite
