// semel migrate CONFIG
#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "commands/commands.hpp"
#include "commands/with_config.hpp"

namespace semel::app {
namespace {

struct MigrateOptions {
  std::string target;
  bool print = false;
  bool json = false;
};

void say(const StoreConfig& store, const std::vector<int>& versions, bool json) {
  if (json) return print_json(boost::json::object{{"applied", boost::json::value_from(versions)}});
  if (versions.empty()) std::cout << store_text(store) << " is on the newest schema already\n";
  for (const int version : versions) std::cout << store_text(store) << ": version " << version << " applied\n";
}

int migrate(const MigrateOptions& options, const StoreConfig& config, const Redactor& redactor) {
  if (options.print) {
    std::cout << migrations_text(config);
    return done;
  }
  const auto store = open_store(config);
  if (!store) return report(store.error(), redactor);
  const auto versions = store_of(*store).migrate();
  if (!versions) return report(versions.error(), redactor);
  say(config, *versions, options.json);
  return done;
}

int migrate_target(const MigrateOptions& options) {
  const auto uri = store_from_uri(options.target);
  if (uri && !std::filesystem::exists(options.target)) {
    Redactor redactor;
    redactor.add_passwords_of(options.target);
    return migrate(options, *uri, redactor);
  }
  return with_config(options.target,
                     [&](const Config& config) { return migrate(options, config.store, config.redactor); });
}

}  // namespace

void add_migrate(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<MigrateOptions>();
  auto* command = program.add_subcommand("migrate", "Create or upgrade Semel's tables in the store");
  command->add_option("CONFIG", options->target, "The configuration file, or a store's URI")->required();
  command->add_flag("--print", options->print, "Print the SQL and change nothing");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  semel migrate semel.yaml\n"
      "  semel migrate sqlite:shop.db\n"
      "  semel migrate postgresql:///shop --print");
  command->callback([options, &chosen] { chosen = [options] { return migrate_target(*options); }; });
}

}  // namespace semel::app
