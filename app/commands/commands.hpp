// The commands of the program, one file each. Each adds its subcommand and, when it is chosen, its action.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace semel::app {

/// What the chosen command does; returns the exit code.
using Action = std::function<int()>;

void add_run(CLI::App& program, Action& chosen);
void add_check(CLI::App& program, Action& chosen);
void add_migrate(CLI::App& program, Action& chosen);
void add_records(CLI::App& program, Action& chosen);
void add_dead_letters(CLI::App& program, Action& chosen);
void add_intents(CLI::App& program, Action& chosen);
void add_outbox(CLI::App& program, Action& chosen);
void add_prove(CLI::App& program, Action& chosen);
void add_explain(CLI::App& program, Action& chosen);
void add_steps(CLI::App& program, Action& chosen);
void add_completion(CLI::App& program, Action& chosen);
void add_demo(CLI::App& program, Action& chosen);
void add_demo_ledger(CLI::App& program, Action& chosen);
void add_demo_consumer(CLI::App& program, Action& chosen);

}  // namespace semel::app
