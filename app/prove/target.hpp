// The attacked service as a process group that is started, killed and started again.
#pragma once

#include <sys/types.h>

#include <semel/result.hpp>
#include <string>

#include "prove/settings.hpp"

namespace semel::prove {

/// Without a `start` it is somebody else's, and only used. Destroying it kills what it started. One thread at a time.
class Target {
 public:
  /// `url`: where the target answers once it is up; empty where it takes messages.
  Target(std::optional<Start> start, std::string url) : start_(std::move(start)), url_(std::move(url)) {}
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  /// Runs and answers, upon which it does nothing; or is started, waiting until it answers.
  Result<void> bring_up();
  /// SIGKILL to the whole group, and waits until nothing of it answers.
  void kill();

 private:
  bool runs();
  bool answers() const;
  Result<void> launch();

  std::optional<Start> start_;
  std::string url_;
  pid_t group_ = -1;
};

}  // namespace semel::prove
