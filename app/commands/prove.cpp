// semel prove FILE: attacks a service and says which promise breaks
#include <curl/curl.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>

#include "commands/commands.hpp"
#include "config/nearest_name.hpp"
#include "output.hpp"
#include "prove/prove.hpp"
#include "signals.hpp"

namespace semel::app {
namespace {

struct ProveOptions {
  std::string file;
  std::vector<std::string> attacks;
  std::optional<std::uint64_t> seed;
  bool list = false;
  bool json = false;
  std::string junit;
  std::vector<std::string> allowed;
};

/// The host of a URL, without its port and user.
std::string host_of(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  char* host = nullptr;
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl_url_get(parsed.get(), CURLUPART_HOST, &host, 0) != CURLUE_OK)
    return "";
  const std::unique_ptr<char, decltype(&curl_free)> owned(host, curl_free);
  return host;
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

/// An attack is a flood of repeated orders. Nobody sends it to a host that he has not named twice.
Result<void> check_consent(const ProveOptions& options, const prove::Settings& settings) {
  const auto* request = std::get_if<prove::Request>(&settings.event);
  if (!request) return {};
  const auto host = host_of(request->url);
  if (host.empty()) return fix_call(ErrorCode::config_bad_value, "request.url is no URL");
  if (is_this_machine(host) || std::ranges::find(options.allowed, host) != options.allowed.end()) return {};
  return fix_call(
      ErrorCode::config_bad_value,
      printable(host) +
          " is another machine: if its owner agrees, and what is done there is no real order, say --i-may-attack " +
          printable(host));
}

Result<void> check_names(const ProveOptions& options) {
  std::vector<std::string> names;
  for (const auto& attack : prove::all_attacks(2)) names.emplace_back(attack.name);
  for (const auto& name : options.attacks) {
    if (std::ranges::find(names, name) == names.end())
      return fix_call(ErrorCode::config_unknown_name,
                      "there is no attack \"" + printable(name) + "\"" + suggestion(name, names));
  }
  return {};
}

int list_attacks() {
  std::vector<std::vector<std::string>> rows;
  for (const auto& attack : prove::all_attacks(2)) rows.push_back({std::string(attack.name), std::string(attack.what)});
  std::cout << table(rows);
  return done;
}

int write_results(const ProveOptions& options, const std::vector<prove::Verdict>& verdicts, std::uint64_t seed) {
  if (options.json)
    print_json(prove::verdicts_json(verdicts, seed));
  else
    std::cout << prove::verdicts_text(verdicts);
  if (!options.junit.empty()) {
    std::ofstream file(options.junit);
    file << prove::verdicts_junit(verdicts);
    if (!file.flush()) {
      note(options.junit + " could not be written");
      return failure;
    }
  }
  return std::ranges::any_of(verdicts, &prove::Verdict::broken) ? failure : done;
}

int prove_file(const ProveOptions& options) {
  if (const auto named = check_names(options); !named) return report(named.error());
  const auto loaded = prove::load_settings(options.file, process_environment());
  if (!loaded.settings) return report(loaded.mistakes, options.file);
  const auto& settings = *loaded.settings;
  if (const auto agreed = check_consent(options, settings); !agreed) return report(agreed.error());
  Signals signals;
  std::stop_source stop;
  const auto watch = signals.watch([&] { stop.request_stop(); }, settings.patience + settings.settle + settings.late);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  const auto seed = options.seed.value_or(std::random_device()() % 1'000'000);
  note("seed " + std::to_string(seed));
  const auto verdicts = prove::prove(settings, {.attacks = {options.attacks.begin(), options.attacks.end()},
                                                .seed = seed,
                                                .stop = stop.get_token(),
                                                .begins = [](const prove::Attack& attack) {
                                                  note(std::string(attack.name) + ": " + std::string(attack.what));
                                                }});
  if (!verdicts) return report(verdicts.error(), settings.redactor);
  return write_results(options, *verdicts, seed);
}

}  // namespace

void add_prove(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<ProveOptions>();
  auto* command = program.add_subcommand("prove", "Attack a service, in any language, and see whether it acts twice");
  auto* file = command->add_option("FILE", options->file, "The target, one event, and how its effects are counted");
  auto* list = command->add_flag("--list", options->list, "List the attacks");
  command->add_option("--attack", options->attacks, "Only this attack; may be repeated")->allow_extra_args(false);
  command->add_option("--seed", options->seed, "Draw the moments of kills as another run did");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_option("--junit", options->junit, "Also write JUnit XML to this file")->type_name("FILE");
  command->add_option("--i-may-attack", options->allowed, "A host that is not this machine; its owner agrees")
      ->type_name("HOST")
      ->allow_extra_args(false);
  command->footer(
      "Exit code 1: a promise is broken, or the target cannot be attacked.\n"
      "Examples:\n"
      "  semel prove prove.yaml\n"
      "  semel prove prove.yaml --attack kill --seed 17\n"
      "  semel prove prove.yaml --junit prove.xml");
  command->callback([options, file, list, &chosen] {
    if (!*file && !*list) throw CLI::RequiredError("FILE");
    chosen = [options] { return options->list ? list_attacks() : prove_file(*options); };
  });
}

}  // namespace semel::app
