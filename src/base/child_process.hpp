// A child process that reports its steps and waits at each one, so that it can be killed exactly there.
#pragma once

#include <sys/types.h>

#include <optional>
#include <semel/result.hpp>
#include <string>
#include <vector>

namespace semel {

struct ChildOptions {
  std::vector<std::string> command;       ///< the program's path, then its arguments
  std::string output_file = "/dev/null";  ///< standard output, appended
  std::string error_file = "/dev/null";   ///< standard error, appended
};

/// Standard input is empty. The child gets two more file descriptors: it writes a line to `step_fd` at every step and
/// then waits for one byte on `release_fd`. Destruction kills a child that still runs. One thread at a time.
class ChildProcess {
 public:
  static constexpr int step_fd = 3;
  static constexpr int release_fd = 4;

  static Result<ChildProcess> start(const ChildOptions& options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  /// The next step's name; waits for it. Nothing where the child has ended or closed its end.
  std::optional<std::string> next_step();
  /// Lets the child go on from the step it waits at.
  void release();
  /// Releases every step until `name` comes, where the child then waits. False where it ended before.
  bool run_until(const std::string& name);
  /// Releases every step from now on, until the child ends; then `wait`.
  int run_to_end();

  void send_signal(int signal) const;
  /// SIGKILL, and waits until the process is gone.
  void kill();
  /// The exit code, or 128 + the signal's number.
  int wait();
  pid_t pid() const { return pid_; }

 private:
  ChildProcess(pid_t pid, int steps, int releases) : pid_(pid), steps_(steps), releases_(releases) {}
  void close_pipes();

  pid_t pid_ = -1;
  int steps_ = -1;
  int releases_ = -1;
  std::string unread_{};
  std::optional<int> exit_code_{};
};

}  // namespace semel
