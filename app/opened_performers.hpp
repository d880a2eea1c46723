// Providers and targets of a configuration, opened: who makes its calls and sends its publications.
#pragma once

#include <map>
#include <memory>
#include <semel/consumer.hpp>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "configured_calls.hpp"
#include "gateway_handler.hpp"

namespace semel::app {

/// Outlives the consumer that it is added to. A provider or target that nobody names is not opened.
class OpenedPerformers {
 public:
  OpenedPerformers() = default;
  /// Errors: config_bad_value for a file, a header or a secret that cannot be one.
  static Result<OpenedPerformers> open(const Config& config);

  Performer& provider(const std::string& name) const { return *providers_.at(name); }
  Performer& gateway(const std::string& name) const { return *gateways_.at(name); }
  /// Null for a queue in the store.
  Performer* target(const std::string& name) const;

 private:
  std::map<std::string, std::unique_ptr<Performer>> providers_;
  std::map<std::string, std::unique_ptr<Performer>> gateways_;
  std::map<std::string, std::unique_ptr<Performer>> targets_;
};

/// Tells the consumer of every effect with its settle step, and of every target.
template <class StoreT>
void add_outside(Consumer<StoreT>& consumer, const Config& config, const OpenedPerformers& performers) {
  for (const auto& handler : config.handlers) {
    for (const auto* call : all_calls(handler)) {
      consumer.perform(call->options, performers.provider(call->options.provider));
      consumer.settle(call->options.name,
                      [call](const Settled& settled, SettleWork<SqlSession>& work) -> std::optional<Answer> {
                        return settle_call(*call, settled, work);
                      });
      if (!call->compensate) continue;
      const auto& undo = call->compensate->options;
      consumer.perform(undo, performers.provider(undo.provider));
    }
  }
  for (const auto& gateway : config.gateways)
    add_gateway(consumer, gateway, provider_of(gateway, config), performers.gateway(gateway.name));
  for (const auto& target : config.targets) {
    if (!target.used) continue;
    if (auto* performer = performers.target(target.name())) {
      consumer.publish_to(target.options, *performer);
    } else {
      consumer.publish_to_queue(target.name());
    }
  }
}

}  // namespace semel::app
