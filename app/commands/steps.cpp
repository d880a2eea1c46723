// semel steps
#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <iostream>
#include <memory>
#include <semel/probe.hpp>

#include "commands/commands.hpp"
#include "output.hpp"

namespace semel::app {

void add_steps(CLI::App& program, Action& chosen) {
  auto json = std::make_shared<bool>(false);
  auto* command =
      program.add_subcommand("steps", "List the steps of a message's life, at each of which a crash is safe");
  command->add_flag("--json", *json, "Print JSON");
  command->footer("Example:\n  semel steps");
  command->callback([json, &chosen] {
    chosen = [json] {
      boost::json::array names;
      for (const auto step : all_steps) names.push_back(boost::json::string(std::string(step_name(step))));
      if (*json) return print_json(names), done;
      for (const auto step : all_steps) std::cout << step_name(step) << "\n";
      return done;
    };
  });
}

}  // namespace semel::app
