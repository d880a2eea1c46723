// semel explain CODE
#include "values/explain.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <iostream>
#include <memory>

#include "commands/commands.hpp"
#include "output.hpp"

namespace semel::app {
namespace {

struct ExplainOptions {
  std::string code;
  bool json = false;
};

int print_page(const ExplainOptions& options) {
  const auto page = explain(options.code);
  if (!page) {
    note("there is no page for \"" + printable(options.code) + "\"; a code looks like SEMEL-0203");
    return usage;
  }
  if (options.json) {
    print_json(boost::json::object{{"code", options.code}, {"text", std::string(*page)}});
  } else {
    std::cout << *page << (page->ends_with('\n') ? "" : "\n");
  }
  return done;
}

}  // namespace

void add_explain(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command = program.add_subcommand("explain", "Say what an error means and what to do about it");
  command->add_option("CODE", options->code, "Such as SEMEL-0203 or 203")->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->footer("Example:\n  semel explain SEMEL-0203");
  command->callback([options, &chosen] { chosen = [options] { return print_page(*options); }; });
}

}  // namespace semel::app
