// The admin listener: is the process alive, is it ready, what has it counted.
//
//   GET /healthz   200 as long as the process answers
//   GET /readyz    200 while lanes run and the store answers, else 503 with the reason
//   GET /metrics   Prometheus text
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <semel/observer.hpp>
#include <semel/store.hpp>
#include <string>
#include <thread>

#include "config/config.hpp"
#include "metrics.hpp"

namespace semel::net {
class Server;
}

namespace semel::app {

/// Asks the store every other second, and whenever a lane is in trouble, whether it would let a run start; on a thread
/// of its own, so that whoever asks for readiness never waits for a store that hangs. A store that has not answered for
/// `answer_max` is away.
class Readiness : public Observer {
 public:
  static constexpr std::chrono::milliseconds answer_max{5'000};

  explicit Readiness(Store& store);
  ~Readiness() override;
  void started() override { running_ = true; }
  void trouble(const Error&) override { ask_now(); }
  void recovered() override { ask_now(); }

  /// Why it is not ready; nothing where it is.
  std::optional<std::string> obstacle() const;

 private:
  void watch();
  void ask_now();
  std::optional<std::string> ask() const;

  Store& store_;
  std::atomic<bool> running_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool asked_for_ = false;
  std::optional<std::string> obstacle_;
  std::optional<std::chrono::steady_clock::time_point> asked_at_;  ///< while the store owes an answer
  std::thread thread_;
};

/// Everything it is given outlives it. Errors: address_in_use and others of a listener.
Result<std::unique_ptr<net::Server>> serve_admin(const AdminConfig& config, Metrics& metrics, Backlog& backlog,
                                                 const Readiness& readiness, const Redactor& redactor);

}  // namespace semel::app
