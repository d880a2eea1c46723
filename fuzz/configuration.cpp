// Configuration files. An operator writes them, but what a template or a merge has made of one is anybody's guess.
//
//   input = the file
#include "config/config.hpp"
#include "input.hpp"

namespace semel::fuzz {

void try_one(Input input) {
  const std::string text(input.rest());
  const auto unset = [](const std::string& name) {
    return name == "SET" ? std::optional<std::string>("value") : std::nullopt;
  };
  const auto loaded = app::read_config(text, "fuzz.yaml", unset);
  promise(loaded.config.has_value() == loaded.mistakes.empty(), "a configuration or mistakes, and never both");
  const auto lines = std::ranges::count(text, '\n') + std::ranges::count(text, '\r') + 1;
  for (const auto& mistake : loaded.mistakes) {
    promise(mistake.line >= 0 && mistake.line <= lines, "a mistake is in a line of the file");
    promise(!app::place_and_message(mistake, "fuzz.yaml").empty(), "a mistake can be told");
  }
}

}  // namespace semel::fuzz
