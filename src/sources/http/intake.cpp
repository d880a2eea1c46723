#include "sources/http/intake.hpp"

#include <algorithm>

#include "net/problem.hpp"

namespace semel::http {

namespace {

constexpr std::chrono::milliseconds come_again{1'000};

void turn_away(net::Responder responder, net::Problem problem, ErrorCode code) {
  auto response = net::problem_response(problem, {.code = code, .retry_after = come_again});
  response.close = problem == net::Problem::stopping;
  std::move(responder).answer(std::move(response));
}

}  // namespace

bool Intake::put(Delivery delivery, net::Responder responder) {
  std::unique_lock lock(mutex_);
  if (closed_ || waiting_.size() >= queued_max_) {
    const auto problem = closed_ ? net::Problem::stopping : net::Problem::overloaded;
    lock.unlock();
    turn_away(std::move(responder), problem, ErrorCode::overloaded);
    return false;
  }
  delivery.receipt = Receipt(++last_token_);
  waiting_.push_back({std::move(delivery), std::move(responder)});
  // All of them: the one that was rung alone might be in a long commit, or about to leave.
  for (Doorbell* bell : bells_) bell->ring();
  return true;
}

std::vector<Waiting> Intake::take(std::size_t count_max) {
  const std::lock_guard lock(mutex_);
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(count_max, waiting_.size()));
  std::vector<Waiting> taken(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return taken;
}

void Intake::join(Doorbell& bell) {
  const std::lock_guard lock(mutex_);
  closed_ = false;
  bells_.push_back(&bell);
}

void Intake::leave(Doorbell& bell) {
  std::deque<Waiting> left;
  {
    const std::lock_guard lock(mutex_);
    bells_.erase(std::ranges::find(bells_, &bell));
    closed_ = bells_.empty();
    if (closed_) left.swap(waiting_);
  }
  for (auto& one : left) turn_away(std::move(one.responder), net::Problem::stopping, ErrorCode::overloaded);
}

}  // namespace semel::http
