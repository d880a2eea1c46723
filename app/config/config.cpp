#include "config/config.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "config/reading.hpp"
#include "config/sections.hpp"

namespace semel::app {
namespace {

void read_admin(Reading& reading, Fields& top, Config& config) {
  const auto place = top.take("admin");
  if (!place) {
    // What serves has an admin listener; what reads a file to its end needs none.
    if (!config.listeners.empty()) config.admin = AdminConfig{};
    return;
  }
  if (!place->node.IsMap()) {
    reading.choice<bool>(*place, {{"none", true}});
    return;
  }
  Fields fields(reading, *place);
  config.admin = AdminConfig{};
  if (const auto listen = fields.require("listen", "an address and a port, such as 127.0.0.1:9090")) {
    if (const auto address = read_address(reading, *listen))
      config.admin = AdminConfig{address->host, address->port, true};
  }
  fields.finish();
}

void read_log(Reading& reading, Fields& top, LogConfig& log) {
  using Format = LogConfig::Format;
  using Level = LogConfig::Level;
  const auto place = top.take("log");
  if (!place) return;
  Fields fields(reading, *place);
  if (const auto format = fields.take("format")) {
    log.format = reading.choice<Format>(*format, {{"text", Format::text}, {"json", Format::json}}).value_or(log.format);
  }
  if (const auto level = fields.take("level")) {
    const auto chosen = reading.choice<Level>(*level, {{"debug", Level::debug},
                                                       {"info", Level::info},
                                                       {"warning", Level::warn},
                                                       {"error", Level::error},
                                                       {"off", Level::off}});
    log.level = chosen.value_or(log.level);
  }
  fields.finish();
}

void read_consumer(Reading& reading, Fields& top, ConsumerOptions& options) {
  if (const auto place = top.take("lanes")) {
    options.lanes_per_source = static_cast<int>(reading.integer(*place, 1, 256).value_or(options.lanes_per_source));
  }
  if (const auto place = top.take("batch_max")) {
    options.batch_max = static_cast<std::size_t>(
        reading.integer(*place, 1, 10'000).value_or(static_cast<std::int64_t>(options.batch_max)));
  }
  if (const auto place = top.take("shutdown_deadline")) {
    options.shutdown_deadline =
        reading.duration(*place, std::chrono::milliseconds(1)).value_or(options.shutdown_deadline);
  }
}

void read_top(Reading& reading, const Place& place, Config& config) {
  Fields top(reading, place);
  if (!top) return;
  auto dialect = SqlDialect::postgres;
  if (const auto store = top.require("store", "sqlite:path, or postgresql://user@host/database")) {
    if (auto read = read_store(reading, *store, config.redactor)) {
      dialect = dialect_of(*read);
      config.store = std::move(*read);
    }
  }
  if (const auto providers = top.take("providers")) read_providers(reading, *providers, config);
  if (const auto sources = top.require("sources")) read_sources(reading, *sources, config);
  if (const auto targets = top.take("targets")) read_targets(reading, *targets, config);
  // A gateway handles what it guards by itself.
  const auto handlers = config.gateways.empty() ? top.require("handlers") : top.take("handlers");
  if (handlers) read_handlers(reading, *handlers, config, dialect);
  read_admin(reading, top, config);
  read_log(reading, top, config.log);
  read_consumer(reading, top, config.consumer);
  top.finish();
}

constexpr int depth_max = 100;
constexpr int values_max = 100'000;

/// False for a tree that aliases make endless, or so large that walking it would take forever. Takes `budget` down by
/// the number of values met.
bool is_bounded(const YAML::Node& node, int depth, int& budget) {
  if (depth == 0 || --budget < 0) return false;
  if (!node.IsMap() && !node.IsSequence()) return true;
  for (const auto& entry : node) {
    if (node.IsSequence() && !is_bounded(entry, depth - 1, budget)) return false;
    if (node.IsMap() && !(is_bounded(entry.first, depth - 1, budget) && is_bounded(entry.second, depth - 1, budget)))
      return false;
  }
  return true;
}

Loaded only(ErrorCode code, const YAML::Mark& mark, std::string message) {
  Mistake mistake{.code = code, .line = 0, .column = 0, .path = "", .message = std::move(message)};
  if (!mark.is_null()) {
    mistake.line = mark.line + 1;
    mistake.column = mark.column + 1;
  }
  return {.config = std::nullopt, .mistakes = {std::move(mistake)}};
}

}  // namespace

const http::Principal* callers_of(const SourceConfig& source, const Config& config) {
  if (const auto* guarded = std::get_if<GatewaySource>(&source.kind))
    return &config.gateways[guarded->gateway].gateway.routes[guarded->route].principal;
  const auto* http = std::get_if<HttpSource>(&source.kind);
  const auto* requests = http ? std::get_if<http::Requests>(&http->kind) : nullptr;
  return requests ? &requests->principal : nullptr;
}

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

Loaded read_config(const std::string& text, const std::string& file, const Environment& environment) {
  try {
    const auto documents = YAML::LoadAll(text);
    if (documents.empty() || documents.front().IsNull()) {
      return only(ErrorCode::config_syntax, YAML::Mark::null_mark(), "the file is empty");
    }
    if (documents.size() > 1) {
      return only(ErrorCode::config_syntax, documents[1].Mark(), "one document only, but \"---\" begins another");
    }
    if (int budget = values_max; !is_bounded(documents.front(), depth_max, budget)) {
      return only(ErrorCode::config_syntax, documents.front().Mark(),
                  "too large or too deep; an alias (*name) may stand for what contains it");
    }
    Config config;
    config.file = file;
    Reading reading(environment);
    read_top(reading, {documents.front(), ""}, config);
    auto mistakes = reading.take_mistakes();
    if (!mistakes.empty()) {
      for (auto& mistake : mistakes) mistake.message = config.redactor.clean(std::move(mistake.message));
      return {.config = std::nullopt, .mistakes = std::move(mistakes)};
    }
    return {.config = std::move(config), .mistakes = {}};
  } catch (const YAML::Exception& problem) {
    return only(ErrorCode::config_syntax, problem.mark, "not YAML: " + problem.msg);
  }
}

Loaded load_config(const std::string& file, const Environment& environment) {
  errno = 0;
  std::ifstream input(file, std::ios::binary);
  std::stringstream text;
  text << input.rdbuf();
  if (!input.is_open() || input.bad() || (text.fail() && errno != 0)) {
    return only(ErrorCode::config_syntax, YAML::Mark::null_mark(),
                std::string("cannot be read: ") + std::strerror(errno));
  }
  return read_config(text.str(), file, environment);
}

}  // namespace semel::app
