// One line on standard error for each message and each trouble.
#pragma once

#include <memory>
#include <semel/observer.hpp>

#include "config/config.hpp"

namespace spdlog {
class logger;
}

namespace semel::app {

/// Every line about a message carries handler, key, transport id, receive count and decision; no body, no secret.
class Log : public Observer {
 public:
  Log(const LogConfig& config, const Redactor& redactor);
  ~Log() override;

  void started() override;
  void message(const MessageReport& report) override;
  void trouble(const Error& error) override;
  void recovered() override;
  /// Says something of the program's own life.
  void info(const std::string& text);
  void warn(const std::string& text);

 private:
  const Redactor& redactor_;
  LogConfig::Format format_;
  std::unique_ptr<spdlog::logger> logger_;
};

}  // namespace semel::app
