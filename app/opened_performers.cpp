#include "opened_performers.hpp"

#include <semel/performers/file.hpp>

namespace semel::app {
namespace {

Error of(const std::string& what, const Error& error) { return fix_call(error.code, what + ": " + error.message); }

Result<std::unique_ptr<Performer>> open_target(const TargetConfig& target) {
  if (const auto* webhook = std::get_if<http::WebhookOptions>(&target.kind)) {
    auto options = *webhook;
    options.calls_max = target.options.sends_max;
    return http::webhook_publisher(std::move(options));
  }
  if (const auto* file = std::get_if<FileTarget>(&target.kind)) {
    return file::file_publisher({.path = file->path});
  }
  return std::unique_ptr<Performer>();
}

}  // namespace

Result<OpenedPerformers> OpenedPerformers::open(const Config& config) {
  OpenedPerformers opened;
  for (const auto& provider : config.providers) {
    if (!provider.used) continue;
    auto performer = http::http_performer(provider.performer);
    if (!performer) return of("providers." + provider.name, performer.error());
    opened.providers_.emplace(provider.name, *std::move(performer));
  }
  for (const auto& gateway : config.gateways) {
    auto performer = http::http_performer(performer_of(gateway, provider_of(gateway, config)));
    if (!performer) return of("sources." + gateway.name, performer.error());
    opened.gateways_.emplace(gateway.name, *std::move(performer));
  }
  for (const auto& target : config.targets) {
    if (!target.used) continue;
    auto performer = open_target(target);
    if (!performer) return of("targets." + target.options.name, performer.error());
    opened.targets_.emplace(target.name(), *std::move(performer));
  }
  return opened;
}

Performer* OpenedPerformers::target(const std::string& name) const { return targets_.at(name).get(); }

}  // namespace semel::app
