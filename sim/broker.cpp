// The simulated broker: see outside.hpp.
#include <algorithm>

#include "oracle.hpp"
#include "outside.hpp"

namespace semel::sim {

using namespace std::chrono_literals;

namespace {
constexpr auto visibility_timeout = 4s;
}

class Broker::End : public Receiver {
 public:
  End(Broker& broker, Process& process, Doorbell& bell) : broker_(broker), process_(process), bell_(bell) {
    broker_.bells_.emplace(process_.number, &bell_);
  }
  ~End() override { broker_.bells_.erase({process_.number, &bell_}); }

  Result<Batch> receive(std::size_t count_max) override {
    broker_.world_.step(process_);
    return broker_.give(count_max);
  }
  void settle(std::vector<Settlement> settlements) override {
    for (const auto& settlement : settlements) {
      broker_.world_.step(process_);
      broker_.settle(settlement);
    }
  }
  void stop() override {}

 private:
  Broker& broker_;
  Process& process_;
  Doorbell& bell_;
};

std::unique_ptr<Receiver> Broker::open(Process& process, Doorbell& bell) {
  return std::make_unique<End>(*this, process, bell);
}

void Broker::put(std::size_t telling) {
  messages_.push_back({.telling = telling});
  ++waiting_;
  appear(messages_.size() - 1, 0us);
}

/// It is visible after `delay`.
void Broker::appear(std::size_t number, microseconds delay) {
  messages_[number].visible_at = world_.now() + delay;
  world_.after(delay, [this] {
    for (const auto& [process, bell] : bells_) bell->ring();
  });
}

Batch Broker::give(std::size_t count_max) {
  std::vector<std::size_t> visible;
  std::optional<std::size_t> held;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].gone) continue;
    if (messages_[i].visible_at <= world_.now())
      visible.push_back(i);
    else if (messages_[i].receive_count > 0)
      held = i;
  }
  if (held && world_.strikes(Fault::redelivered)) visible.push_back(*held);
  Batch batch;
  while (!visible.empty() && batch.deliveries.size() < count_max) {
    const auto place = world_.random().below(visible.size());
    const auto number = visible[place];
    visible.erase(visible.begin() + static_cast<std::ptrdiff_t>(place));
    auto& message = messages_[number];
    appear(number, visibility_timeout);
    const auto receipt = ++next_receipt_;
    receipts_.emplace(receipt, number);
    const auto& telling = scenario_.tellings[message.telling];
    const auto& happening = scenario_.happenings[telling.happening];
    batch.deliveries.push_back({.receipt = Receipt(receipt),
                                .source = "broker",
                                .sender = Sender::message,
                                .body = happening.body(telling.is_changed ? 1 : 0),
                                .problem = "",
                                .attributes = {},
                                .transport_id = "m" + std::to_string(number),
                                .principal = "",
                                .receive_count = ++message.receive_count,
                                .sent_at = std::nullopt});
    world_.say(nullptr, [&] { return "broker gives m" + std::to_string(number) + " (" + happening.key + ")"; });
    if (world_.has(Mutant::acknowledge_before_commit)) {
      message.gone = true;
      --waiting_;
    }
  }
  return batch;
}

void Broker::settle(const Settlement& settlement) {
  const auto number = receipts_.at(settlement.receipt.token());
  auto& message = messages_[number];
  if (const auto* back = std::get_if<HandedBack>(&settlement.verdict)) {
    world_.say(nullptr, [&] { return "broker gets back m" + std::to_string(number) + ": " + back->why.message; });
    if (!message.gone) appear(number, back->delay);
    return;
  }
  world_.say(nullptr, [&] { return "broker is done with m" + std::to_string(number); });
  oracle_.acknowledged(message.telling, settlement);
  if (world_.strikes(Fault::unacknowledged) || message.gone) return;
  if (world_.strikes(Fault::duplicated)) {
    appear(number, milliseconds(world_.random().spread(60'000)));
    return;
  }
  message.gone = true;
  --waiting_;
}

}  // namespace semel::sim
