// semel demo, and the two hidden commands that the demo starts as processes of their own.
#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "commands/commands.hpp"
#include "demo/demo.hpp"
#include "demo/ledger.hpp"
#include "demo/naive_consumer.hpp"
#include "output.hpp"

namespace semel::app {
namespace {

constexpr auto introduction =
    "41 payments are in flight. A consumer is killed after it has had them charged by the payment provider and before\n"
    "it has written that down, so they come again. Then two consumers get the same payments at once. Who charges "
    "twice?\n\n"
    "  version 1   charges, then records what it did\n"
    "  version 2   looks up whether it was done, charges, then records it\n"
    "  semel       this program, with 16 lines of configuration\n\n";

constexpr auto conclusion =
    "\nEffects are charges in the provider's ledger, counted afterwards; lost is what was never charged, or whose "
    "charge\n"
    "the consumer does not know of. Semel commits what it will ask for together with its record of the payment, calls\n"
    "after that, and writes down the outcome. Killed in between, it calls again with the same idempotency key.\n";

/// A folder that is gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "semel-demo-XXXXXX").string()) {
    if (!mkdtemp(path_.data()))
      throw Failure(fix_call(ErrorCode::source_unreadable, "cannot make a folder like " + path_));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void print_rows(const std::vector<demo::Row>& rows) {
  std::vector<std::vector<std::string>> cells{
      {"fault", "consumer", "messages sent", "deliveries", "effects", "duplicates", "lost"}};
  for (const auto& row : rows)
    cells.push_back({row.fault, row.consumer, std::to_string(row.messages), std::to_string(row.deliveries),
                     std::to_string(row.effects), std::to_string(row.duplicates), std::to_string(row.lost)});
  std::cout << table(cells);
}

void print_rows_as_json(const std::vector<demo::Row>& rows) {
  boost::json::array all;
  for (const auto& row : rows)
    all.push_back(boost::json::object{{"fault", row.fault},
                                      {"consumer", row.consumer},
                                      {"messages", row.messages},
                                      {"deliveries", row.deliveries},
                                      {"effects", row.effects},
                                      {"duplicates", row.duplicates},
                                      {"lost", row.lost}});
  print_json(all);
}

int play(bool json) {
  const TemporaryFolder folder;
  if (!json) std::cout << introduction << std::flush;
  const auto rows = demo::run_demo({std::filesystem::read_symlink("/proc/self/exe"), folder.path()});
  if (!rows) return report(rows.error());
  if (json) return print_rows_as_json(*rows), done;
  print_rows(*rows);
  std::cout << conclusion;
  return done;
}

}  // namespace

void add_demo(CLI::App& program, Action& chosen) {
  auto json = std::make_shared<bool>(false);
  auto* command = program.add_subcommand("demo", "Replay the night when 41 customers were charged twice");
  command->add_flag("--json", *json, "Print JSON");
  command->footer("Takes a few seconds; needs no server and leaves no files.\nExample:\n  semel demo");
  command->callback([json, &chosen] { chosen = [json] { return play(*json); }; });
}

void add_demo_ledger(CLI::App& program, Action& chosen) {
  auto arguments = std::make_shared<std::vector<std::string>>();
  auto* command = program.add_subcommand("demo-ledger", "The demo's payment ledger")->group("");
  command->add_option("DATABASE SOCKET", *arguments)->required()->expected(2);
  command->callback([arguments, &chosen] {
    chosen = [arguments] { return demo::serve_ledger(arguments->at(0), arguments->at(1)); };
  });
}

void add_demo_consumer(CLI::App& program, Action& chosen) {
  auto consumer = std::make_shared<demo::NaiveConsumer>();
  auto* command = program.add_subcommand("demo-consumer", "A consumer that doubles payments")->group("");
  command->add_option("VERSION", consumer->version)->required()->check(CLI::Range(1, 2));
  command->add_option("MESSAGES", consumer->messages)->required();
  command->add_option("DATABASE", consumer->database)->required();
  command->add_option("SOCKET", consumer->ledger_socket)->required();
  command->callback([consumer, &chosen] { chosen = [consumer] { return demo::run_naive_consumer(*consumer); }; });
}

}  // namespace semel::app
