#include "opened_sources.hpp"

#include "gateway_handler.hpp"

namespace semel::app {

std::string host_text(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

Result<OpenedSources> OpenedSources::open(const Config& config, Store& store) {
  OpenedSources opened;
  for (const auto& options : config.listeners) {
    auto listener = http::listen(options);
    if (!listener) return std::move(listener).error();
    opened.listeners_.push_back(
        {std::string(options.tls ? "https://" : "http://") + host_text(options.address), std::move(*listener)});
  }
  std::vector<std::vector<Source*>> guarded;
  for (const auto& gateway : config.gateways) {
    auto routed = gateway.gateway;
    for (auto& route : routed.routes) route.key_size_max = key_size_max_of(gateway, provider_of(gateway, config));
    auto added = opened.listeners_[gateway.listener].listener->add(std::move(routed));
    if (!added) return std::move(added).error();
    guarded.push_back(*std::move(added));
  }
  for (const auto& source : config.sources) {
    auto one = opened.open_one(source, guarded, store);
    if (!one) return std::move(one).error();
    opened.all_.push_back(*one);
  }
  return opened;
}

Result<Source*> OpenedSources::open_one(const SourceConfig& source, const std::vector<std::vector<Source*>>& guarded,
                                        Store& store) {
  if (const auto* route = std::get_if<GatewaySource>(&source.kind)) return guarded[route->gateway][route->route];
  if (const auto* options = std::get_if<file::Options>(&source.kind)) {
    auto file = file::open(*options);
    if (!file) return std::move(file).error();
    files_.push_back(std::move(*file));
    return files_.back().get();
  }
  if (const auto* options = std::get_if<queue::Options>(&source.kind)) {
    auto queue = queue::open(store, *options);
    if (!queue) return std::move(queue).error();
    queues_.push_back(std::move(*queue));
    return queues_.back().get();
  }
  const auto& http = std::get<HttpSource>(source.kind);
  auto& listener = *listeners_[http.listener].listener;
  auto added = std::visit([&](const auto& kind) { return listener.add(kind); }, http.kind);
  if (!added) return fix_call(added.error().code, "source \"" + source.name + "\": " + added.error().message);
  return *added;
}

Result<void> OpenedSources::start() {
  for (auto& listening : listeners_) {
    if (auto started = listening.listener->start(); !started) return started;
  }
  return {};
}

std::vector<const file::Source*> OpenedSources::files() const {
  std::vector<const file::Source*> files;
  for (const auto& file : files_) files.push_back(file.get());
  return files;
}

std::vector<std::string> OpenedSources::addresses() const {
  std::vector<std::string> addresses;
  for (const auto& listening : listeners_) {
    addresses.push_back(listening.text + ":" + std::to_string(listening.listener->port()));
  }
  return addresses;
}

}  // namespace semel::app
