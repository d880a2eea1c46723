// One line on standard error for each message and each trouble.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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
  /// A request that no source saw; said as rarely. `listener` is its address.
  void problem(std::string_view listener, int status, std::string_view problem);
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
  /// How many there were since the last that was said; nothing where it is too early to say so.
  std::optional<std::uint64_t> count_to_say(std::string_view where, std::string_view why);

  std::mutex refusals_mutex_;
  std::map<std::pair<std::string, std::string>, Refusals> refusals_;  ///< by where and why
};

}  // namespace semel::app
