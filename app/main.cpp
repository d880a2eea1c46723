// The semel program: the commands, and nothing else.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "commands/commands.hpp"
#include "config/nearest_name.hpp"
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
    "Exit codes: 0 done, 1 failure, 2 usage, 3 configuration, 4 a call waits for an operator (intents).";

void add_commands(CLI::App& program, Action& chosen) {
  for (const auto add :
       {add_run, add_check, add_migrate, add_records, add_dead_letters, add_intents, add_outbox, add_prove, add_explain,
        add_steps, add_completion, add_demo, add_demo_ledger, add_demo_consumer}) {
    add(program, chosen);
  }
}

/// The command that was named before the mistake, such as "semel dead-letters".
std::pair<const CLI::App*, std::string> command_reached(const CLI::App& program) {
  std::pair<const CLI::App*, std::string> reached{&program, program.get_name()};
  for (auto named = program.get_subcommands(); !named.empty(); named = named.front()->get_subcommands()) {
    reached = {named.front(), reached.second + " " + named.front()->get_name()};
  }
  return reached;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* one : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (!one->get_group().empty()) names.push_back(one->get_name());
  }
  return names;
}

/// What is wrong with the command line: a word that nobody knows, or else what the parser says.
std::string usage_mistake(const CLI::App& program, const CLI::ParseError& error) {
  const auto [command, path] = command_reached(program);
  const auto unknown = program.remaining(true);
  std::string text = error.what();
  if (!unknown.empty()) {
    const auto word = unknown.front().substr(0, unknown.front().find('='));
    const bool option = word.starts_with('-');
    const auto known = option ? option_names(*command) : command_names(*command);
    const char* kind = option          ? "there is no option \""
                       : known.empty() ? "one argument too many: \""
                                       : "there is no command \"";
    text = kind + printable(word) + "\"" + suggestion(word, known);
  }
  return text + "; see " + path + " --help";
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
    note(usage_mistake(program, error));
    return usage;
  }
  return chosen();
}

/// Without them the next file or socket to be opened would get their numbers, and what is printed.
void open_standard_descriptors() {
  for (int descriptor = ::open("/dev/null", O_RDWR); descriptor >= 0; descriptor = ::open("/dev/null", O_RDWR)) {
    if (descriptor > STDERR_FILENO) {
      ::close(descriptor);
      return;
    }
  }
}

/// What was printed into a full disk was not done.
int with_output_written(int code) {
  if (std::cout.flush() || code != done) return code;
  note("standard output could not be written");
  return failure;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  try {
    return with_output_written(parse_and_run(argc, argv));
  } catch (const semel::Failure& failure_thrown) {
    return report(failure_thrown.error());
  } catch (const std::exception& error) {
    note(error.what());
    return failure;
  }
}
