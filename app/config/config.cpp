#include "config/config.hpp"

#include <cstdlib>

#include "config/document.hpp"
#include "config/reading.hpp"
#include "config/sections.hpp"
#include "net/credentials.hpp"

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

}  // namespace

const http::Principal* callers_of(const SourceConfig& source, const Config& config) {
  if (const auto* guarded = std::get_if<GatewaySource>(&source.kind))
    return &config.gateways[guarded->gateway].gateway.routes[guarded->route].principal;
  const auto* http = std::get_if<HttpSource>(&source.kind);
  const auto* requests = http ? std::get_if<http::Requests>(&http->kind) : nullptr;
  return requests ? &requests->principal : nullptr;
}

bool takes_out(const SourceConfig& source, const std::string& header, const Config& config) {
  const http::Credentials* named = nullptr;
  if (const auto* guarded = std::get_if<GatewaySource>(&source.kind))
    named = &config.gateways[guarded->gateway].gateway.routes[guarded->route].credentials;
  if (const auto* http = std::get_if<HttpSource>(&source.kind))
    named = std::visit([](const auto& kind) { return &kind.credentials; }, http->kind);
  return named && net::holds_credentials(header, *named);
}

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

Loaded read_config(const std::string& text, const std::string& file, const Environment& environment) {
  Config config;
  config.file = file;
  auto mistakes = read_document(text, [&](const YAML::Node& document) {
    Reading reading(environment);
    read_top(reading, {document, ""}, config);
    return reading.take_mistakes();
  });
  if (mistakes.empty()) return {.config = std::move(config), .mistakes = {}};
  for (auto& mistake : mistakes) mistake.message = config.redactor.clean(std::move(mistake.message));
  return {.config = std::nullopt, .mistakes = std::move(mistakes)};
}

Loaded load_config(const std::string& file, const Environment& environment) {
  const auto text = text_of_file(file);
  if (const auto* mistake = std::get_if<Mistake>(&text)) return {.config = std::nullopt, .mistakes = {*mistake}};
  return read_config(std::get<std::string>(text), file, environment);
}

}  // namespace semel::app
