// semel check CONFIG
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>

#include "call_review.hpp"
#include "commands/commands.hpp"
#include "commands/with_config.hpp"
#include "handler_review.hpp"
#include "store_review.hpp"

namespace semel::app {
namespace {

struct CheckOptions {
  std::string config;
  bool json = false;
};

const char* severity_text(Finding::Severity severity) {
  switch (severity) {
    case Finding::Severity::note:
      return "note";
    case Finding::Severity::warning:
      return "warning";
    case Finding::Severity::refuse:
      break;
  }
  return "error";
}

struct GatewayReview {
  std::string name;
  CallReview calls;
};

struct Review {
  std::vector<HandlerReview> handlers;
  std::vector<GatewayReview> gateways;
  std::vector<Finding> findings;
  bool refused() const {
    return std::any_of(findings.begin(), findings.end(),
                       [](const Finding& finding) { return finding.severity == Finding::Severity::refuse; });
  }
};

/// Looks, and opens nothing: opening a pipe would wait for its other end.
void review_files(const Config& config, std::vector<Finding>& findings) {
  for (const auto& source : config.sources) {
    const auto* options = std::get_if<file::Options>(&source.kind);
    if (!options || options->path == "-") continue;
    std::error_code ignored;
    std::string why;
    if (::access(options->path.c_str(), R_OK) != 0) why = std::strerror(errno);
    if (std::filesystem::is_directory(options->path, ignored)) why = "it is a directory";
    if (why.empty()) continue;
    findings.push_back({.severity = Finding::Severity::refuse,
                        .message = "sources." + source.name + ": cannot read " + options->path + ": " + why,
                        .code = ErrorCode::source_unreadable});
  }
}

Review review(const Config& config) {
  Review all;
  for (const auto& warning : config.warnings) {
    all.findings.push_back({.severity = Finding::Severity::warning, .message = warning});
  }
  for (const auto& handler : config.handlers) {
    all.handlers.push_back(review_handler(handler, config));
    for (auto& finding : all.handlers.back().findings) all.findings.push_back(finding);
  }
  for (const auto& gateway : config.gateways) {
    all.gateways.push_back({gateway.name, review_gateway(gateway, config)});
    for (auto& finding : all.gateways.back().calls.findings) all.findings.push_back(finding);
  }
  for (auto& finding : review_outside(config)) all.findings.push_back(std::move(finding));
  review_files(config, all.findings);
  for (auto& finding : review_store(config)) all.findings.push_back(std::move(finding));
  for (auto& finding : all.findings) finding.message = config.redactor.clean(std::move(finding.message));
  return all;
}

void print_part(const std::string& title, const std::vector<std::string>& sentences) {
  std::cout << "\n" << title << "\n";
  for (const auto& sentence : sentences) std::cout << "  " << sentence << "\n";
}

void print_review(const Review& review, const Config& config) {
  std::cout << "store: " << store_text(config.store) << "\n";
  for (const auto& gateway : review.gateways) print_part("gateway " + gateway.name, gateway.calls.sentences);
  for (const auto& handler : review.handlers) print_part("handler " + handler.name, handler.sentences);
  if (!review.findings.empty()) std::cout << "\n";
  for (const auto& finding : review.findings) {
    const auto code = finding.severity == Finding::Severity::refuse ? code_name(finding.code) + ": " : std::string();
    std::cout << severity_text(finding.severity) << ": " << code << finding.message << "\n";
  }
  std::cout << (review.refused() ? "\nnot ready to run\n" : "\nready to run\n");
}

boost::json::object part_json(const std::string& name, const std::vector<std::string>& explanation) {
  boost::json::array sentences;
  for (const auto& sentence : explanation) sentences.push_back(boost::json::string(sentence));
  return {{"name", name}, {"explanation", std::move(sentences)}};
}

boost::json::object review_json(const Review& review, const Config& config) {
  boost::json::array handlers;
  boost::json::array gateways;
  for (const auto& handler : review.handlers) handlers.push_back(part_json(handler.name, handler.sentences));
  for (const auto& gateway : review.gateways) gateways.push_back(part_json(gateway.name, gateway.calls.sentences));
  boost::json::array findings;
  for (const auto& finding : review.findings) {
    boost::json::object object{{"severity", severity_text(finding.severity)}, {"message", finding.message}};
    if (finding.severity == Finding::Severity::refuse) object["code"] = code_name(finding.code);
    findings.push_back(std::move(object));
  }
  return {{"ready", !review.refused()},
          {"store", store_text(config.store)},
          {"handlers", std::move(handlers)},
          {"gateways", std::move(gateways)},
          {"findings", std::move(findings)}};
}

boost::json::object mistakes_json(const std::vector<Mistake>& mistakes) {
  boost::json::array array;
  for (const auto& mistake : mistakes) {
    array.push_back(boost::json::object{{"code", code_name(mistake.code)},
                                        {"line", mistake.line},
                                        {"column", mistake.column},
                                        {"path", mistake.path},
                                        {"message", mistake.message}});
  }
  return {{"ready", false}, {"mistakes", std::move(array)}};
}

int check(const CheckOptions& options) {
  const auto loaded = load_config(options.config, process_environment());
  if (!loaded.config) {
    if (options.json) print_json(mistakes_json(loaded.mistakes));
    return report(loaded.mistakes, options.config);
  }
  const auto found = review(*loaded.config);
  if (options.json) {
    print_json(review_json(found, *loaded.config));
  } else {
    print_review(found, *loaded.config);
  }
  return found.refused() ? failure : done;
}

}  // namespace

void add_check(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<CheckOptions>();
  auto* command =
      program.add_subcommand("check", "Read the configuration, explain every handler and gateway, ask the store");
  command->add_option("CONFIG", options->config, "The configuration file")->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Changes nothing. Ends with 3 for a mistake in the file, with 1 where a run would be refused.\n"
      "Example:\n"
      "  semel check semel.yaml");
  command->callback([options, &chosen] { chosen = [options] { return check(*options); }; });
}

}  // namespace semel::app
