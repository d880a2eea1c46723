// The semel program: the commands, and nothing else.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "commands/commands.hpp"
#include "output.hpp"
#include "version.hpp"

namespace {

using namespace semel::app;

constexpr auto about =
    "Messages arrive more than once; the effect happens once.\n"
    "Takes messages from HTTP and files and applies declared SQL to SQLite or PostgreSQL, each message once.";

constexpr auto examples =
    "Examples:\n"
    "  semel check semel.yaml          what would happen, and what is wrong\n"
    "  semel migrate semel.yaml        create Semel's tables\n"
    "  semel run semel.yaml            take messages\n"
    "  semel explain SEMEL-0203        what an error means\n"
    "\n"
    "Exit codes: 0 done, 1 failure, 2 usage, 3 configuration.";

void add_commands(CLI::App& program, Action& chosen) {
  for (const auto add : {add_run, add_check, add_migrate, add_records, add_dead_letters, add_explain, add_steps,
                         add_completion, add_demo, add_demo_ledger, add_demo_consumer}) {
    add(program, chosen);
  }
}

int parse_and_run(int argc, char** argv) {
  CLI::App program(about, "semel");
  program.set_version_flag("--version", std::string("semel ") + version);
  program.footer(examples);
  program.require_subcommand(1);
  Action chosen;
  add_commands(program, chosen);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);
    note(std::string(error.what()) + "; see semel --help");
    return usage;
  }
  return chosen();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const semel::Failure& failure_thrown) {
    return report(failure_thrown.error());
  } catch (const std::exception& error) {
    note(error.what());
    return failure;
  }
}
