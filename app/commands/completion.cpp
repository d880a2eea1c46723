// semel completion bash|zsh|fish
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <vector>

#include "commands/commands.hpp"
#include "output.hpp"

namespace semel::app {
namespace {

/// All but the hidden ones.
std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string words_of(const CLI::App& app) {
  std::string words;
  for (const auto* sub : commands_of(app)) {
    words += (words.empty() ? "" : " ") + sub->get_name();
  }
  for (const auto* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const auto& name : option->get_lnames()) words += (words.empty() ? "--" : " --") + name;
  }
  return words;
}

/// bash, and zsh through its bashcompinit.
std::string bash_script(const CLI::App& program) {
  std::string cases;
  for (const auto* sub : commands_of(program)) {
    cases += "    " + sub->get_name() + ") words=\"" + words_of(*sub) + "\" ;;\n";
  }
  return "_semel() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" words\n"
         "  case \"${COMP_WORDS[1]}\" in\n" +
         cases + "    *) words=\"" + words_of(program) +
         "\" ;;\n"
         "  esac\n"
         "  [ \"$COMP_CWORD\" -eq 1 ] && words=\"" +
         words_of(program) +
         "\"\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\") $(compgen -f -X '!*.y*ml' -- \"$current\"))\n"
         "}\n"
         "complete -F _semel semel\n";
}

std::string zsh_script(const CLI::App& program) {
  return "#compdef semel\nautoload -Uz bashcompinit && bashcompinit\n" + bash_script(program);
}

std::string fish_script(const CLI::App& program) {
  std::string script;
  for (const auto* sub : commands_of(program)) {
    script +=
        "complete -c semel -n __fish_use_subcommand -a " + sub->get_name() + " -d '" + sub->get_description() + "'\n";
    for (const auto* option : sub->get_options()) {
      if (option->get_group().empty()) continue;
      for (const auto& name : option->get_lnames()) {
        script += "complete -c semel -n '__fish_seen_subcommand_from " + sub->get_name() + "' -l " + name + "\n";
      }
    }
  }
  return script;
}

}  // namespace

void add_completion(CLI::App& program, Action& chosen) {
  auto shell = std::make_shared<std::string>();
  auto* command = program.add_subcommand("completion", "Print a completion script for a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer("Example:\n  source <(semel completion bash)");
  command->callback([shell, &program, &chosen] {
    chosen = [shell, &program] {
      std::cout << (*shell == "bash"  ? bash_script(program)
                    : *shell == "zsh" ? zsh_script(program)
                                      : fish_script(program));
      return done;
    };
  });
}

}  // namespace semel::app
