// What a gateway does with a guarded request: it is an intent, the call to the service is its performance, and what the
// service answers is the answer.
#pragma once

#include <semel/consumer.hpp>
#include <semel/performers/http.hpp>
#include <string>

#include "config/config.hpp"

namespace semel::app {

/// Null where the configuration says nothing of the service.
const ProviderConfig* provider_of(const GatewayConfig& gateway, const Config& config);

/// The effect of the calls to the service behind a gateway; `provider` is what the configuration says of the service,
/// null where it says nothing: then nothing makes a repeat safe.
EffectOptions effect_of(const GatewayConfig& gateway, const ProviderConfig* provider);
http::PerformerOptions performer_of(const GatewayConfig& gateway, const ProviderConfig* provider);
/// Of a key that the service can be called with.
std::size_t key_size_max_of(const GatewayConfig& gateway, const ProviderConfig* provider);
HandlerOptions handler_of(const GatewayConfig& gateway);

/// The request as it is to be sent to the service.
Intention call_to_service(const GatewayConfig& gateway, const Message& message);
/// What the service said; where it is certain that it did nothing, the key may be used again.
Answer answer_of_service(const Settled& settled, SettleWork<SqlSession>& work);

/// `gateway` and `performer` outlive the consumer.
template <class StoreT>
void add_gateway(Consumer<StoreT>& consumer, const GatewayConfig& gateway, const ProviderConfig* provider,
                 Performer& performer) {
  const auto effect = effect_of(gateway, provider);
  consumer.handle(handler_of(gateway), [&gateway](const Message& message, Work<SqlSession>& work) {
    work.intend(call_to_service(gateway, message));
  });
  consumer.perform(effect, performer);
  consumer.settle(effect.name, [](const Settled& settled, SettleWork<SqlSession>& work) {
    return answer_of_service(settled, work);
  });
}

}  // namespace semel::app
