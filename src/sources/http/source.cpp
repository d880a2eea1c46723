#include "sources/http/source.hpp"

#include <cassert>
#include <unordered_map>

#include "sources/http/answers.hpp"

namespace semel::http {

namespace {

class PathReceiver final : public Receiver {
 public:
  PathReceiver(std::shared_ptr<Intake> intake, Doorbell& bell) : intake_(std::move(intake)), bell_(bell) {
    intake_->join(bell_);
  }
  ~PathReceiver() override { stop(); }

  Result<Batch> receive(std::size_t count_max) override;
  void settle(std::vector<Settlement> settlements) override;
  void stop() override;

 private:
  struct Asked {
    Sender sender;
    net::Responder responder;
  };

  std::shared_ptr<Intake> intake_;
  Doorbell& bell_;
  bool stopped_ = false;
  std::unordered_map<std::uint64_t, Asked> open_;  ///< by receipt
};

Result<Batch> PathReceiver::receive(std::size_t count_max) {
  Batch batch{.deliveries = {}, .ended = stopped_};
  if (stopped_) return batch;
  for (auto& [delivery, responder] : intake_->take(count_max)) {
    open_.emplace(delivery.receipt.token(), Asked{delivery.sender, std::move(responder)});
    batch.deliveries.push_back(std::move(delivery));
  }
  return batch;
}

void PathReceiver::settle(std::vector<Settlement> settlements) {
  for (auto& settlement : settlements) {
    auto asked = open_.extract(settlement.receipt.token());
    assert(!asked.empty());  // settled twice, or another receiver's
    if (asked.empty()) continue;
    const auto sender = asked.mapped().sender;
    std::move(asked.mapped().responder).answer(response_of(settlement.verdict, sender));
  }
}

void PathReceiver::stop() {
  if (std::exchange(stopped_, true)) return;
  intake_->leave(bell_);
}

}  // namespace

PathSource::PathSource(Route route, std::size_t queued_max, OnRefused on_refused)
    : route_(std::move(route)), on_refused_(std::move(on_refused)), intake_(std::make_shared<Intake>(queued_max)) {}

Result<std::unique_ptr<Receiver>> PathSource::open(Doorbell& bell) {
  return std::unique_ptr<Receiver>(std::make_unique<PathReceiver>(intake_, bell));
}

void PathSource::serve(net::Request request, net::Responder responder) {
  auto delivery = admit(route_, std::move(request), std::chrono::system_clock::now());
  if (!delivery) {
    tell_refused(delivery.error());
    return std::move(responder).answer(problem_of(delivery.error()));
  }
  if (!intake_->put(*std::move(delivery), std::move(responder)))
    tell_refused(retry_later(ErrorCode::overloaded, "turned away: the queue is full, or the service is stopping"));
}

void PathSource::tell_refused(const Error& why) const {
  if (on_refused_) on_refused_(name(), why);
}

}  // namespace semel::http
