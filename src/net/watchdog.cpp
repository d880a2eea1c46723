#include "net/watchdog.hpp"

#include <utility>

namespace semel::net {

Watchdog::Watchdog(boost::asio::io_context& io, Milliseconds again, std::function<void()> bark)
    : kennel_(std::make_shared<Kennel>(Kennel{boost::asio::steady_timer(io), again, std::move(bark)})) {}

Watchdog::~Watchdog() {
  kennel_->bark = nullptr;
  kennel_->timer.cancel();
}

void Watchdog::watch(Milliseconds limit) {
  kennel_->limit = Clock::now() + limit;
  if (kennel_->limit < kennel_->wakes) wake_at(kennel_, kennel_->limit);
}

void Watchdog::unwatch() { kennel_->limit = Clock::time_point::max(); }

void Watchdog::wake_at(const std::shared_ptr<Kennel>& kennel, Clock::time_point time) {
  kennel->wakes = time;
  kennel->timer.expires_at(time);
  kennel->timer.async_wait([kennel](const boost::system::error_code& error) {
    if (!error && kennel->bark) on_wake(kennel);
  });
}

void Watchdog::on_wake(const std::shared_ptr<Kennel>& kennel) {
  kennel->wakes = Clock::time_point::max();
  if (kennel->limit == Clock::time_point::max()) return;
  const auto now = Clock::now();
  if (now < kennel->limit) return wake_at(kennel, kennel->limit);
  // It may unwatch, watch anew, or destroy the dog.
  const auto bark = kennel->bark;
  bark();
  if (kennel->bark && kennel->limit <= now) wake_at(kennel, now + kennel->again);
}

}  // namespace semel::net
