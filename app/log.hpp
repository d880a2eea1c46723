// One line on standard error for each message and each trouble.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <semel/observer.hpp>
#include <string>
#include <utility>

#include "config/config.hpp"

namespace spdlog {
class logger;
}

namespace semel::app {

/// Every line about a message carries handler, key, transport id, receive count and decision, and every line about a
/// call its intent, attempt, verdict and state; no body, no secret.
class Log : public Observer {
 public:
  Log(const LogConfig& config, const Redactor& redactor);
  ~Log() override;

  void started() override;
  void message(const MessageReport& report) override;
  void called(const CallReported& report) override;
  void sent(const SendReported& report) override;
  void trouble(const Error& error) override;
  void recovered() override;
  /// A request that no lane saw. The first of a source and a reason is said at once, others once a minute with their
  /// number, so that nobody fills the log from outside. Any thread.
  void refused(std::string_view source, const Error& why);
  /// Says something of the program's own life.
  void info(const std::string& text);
  void warn(const std::string& text);

 private:
  const Redactor& redactor_;
  LogConfig::Format format_;
  std::unique_ptr<spdlog::logger> logger_;

  struct Refusals {
    std::uint64_t unsaid = 0;
    std::chrono::steady_clock::time_point next{};
  };
  std::mutex refusals_mutex_;
  std::map<std::pair<std::string, ErrorCode>, Refusals> refusals_;
};

}  // namespace semel::app
