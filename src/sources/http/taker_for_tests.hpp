// The lane's part, played by a test. Tests only.
#pragma once

#include <chrono>
#include <memory>
#include <semel/source.hpp>
#include <utility>
#include <vector>

namespace semel::http {

/// One end of a source, with what a lane does in the engine.
struct Taker {
  explicit Taker(semel::Source& source) : receiver(source.open(bell).value()) {}

  /// Waits for the next delivery.
  Delivery take() {
    while (true) {
      auto batch = receiver->receive(1).value();
      if (!batch.deliveries.empty()) return std::move(batch.deliveries.front());
      bell.wait(std::chrono::seconds(20));
    }
  }
  void settle(Delivery& delivery, decltype(Settlement::verdict) verdict) {
    std::vector<Settlement> settlements;
    settlements.push_back({std::move(delivery.receipt), std::move(verdict)});
    receiver->settle(std::move(settlements));
  }
  bool has_nothing() { return receiver->receive(100).value().deliveries.empty(); }

  Doorbell bell;
  std::unique_ptr<Receiver> receiver;
};

}  // namespace semel::http
