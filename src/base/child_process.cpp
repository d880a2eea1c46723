#include "base/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

extern char** environ;

namespace semel {

namespace {

/// Above the numbers the child is to find its ends under, so that moving them there overwrites none of them.
constexpr int out_of_the_way = 10;

Error failure(std::string message) {
  return {Remedy::fix_call, Certainty::not_applied, ErrorCode::source_unreadable, std::move(message)};
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Result<Pipe> open_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failure(std::string("cannot make a pipe: ") + std::strerror(errno));
  Pipe moved;
  moved.read_end = fcntl(ends[0], F_DUPFD_CLOEXEC, out_of_the_way);
  moved.write_end = fcntl(ends[1], F_DUPFD_CLOEXEC, out_of_the_way);
  close(ends[0]);
  close(ends[1]);
  return moved;
}

int spawn(pid_t& pid, const ChildOptions& options, const Pipe& steps, const Pipe& releases) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0644);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, options.error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0644);
  posix_spawn_file_actions_adddup2(&actions, steps.write_end, ChildProcess::step_fd);
  posix_spawn_file_actions_adddup2(&actions, releases.read_end, ChildProcess::release_fd);
  std::vector<char*> arguments;
  for (const auto& argument : options.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int failed = posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const ChildOptions& options) {
  auto steps = open_pipe();
  if (!steps) return std::move(steps).error();
  auto releases = open_pipe();
  if (!releases) return std::move(releases).error();
  pid_t pid = -1;
  const int failed = spawn(pid, options, *steps, *releases);
  close(steps->write_end);
  close(releases->read_end);
  ChildProcess child(failed == 0 ? pid : -1, steps->read_end, releases->write_end);
  if (failed != 0) return failure("cannot start " + options.command[0] + ": " + std::strerror(failed));
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      steps_(std::exchange(other.steps_, -1)),
      releases_(std::exchange(other.releases_, -1)),
      unread_(std::move(other.unread_)),
      exit_code_(other.exit_code_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(steps_, other.steps_);
  std::swap(releases_, other.releases_);
  std::swap(unread_, other.unread_);
  std::swap(exit_code_, other.exit_code_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && !exit_code_) kill();
  close_pipes();
}

void ChildProcess::close_pipes() {
  if (steps_ >= 0) close(std::exchange(steps_, -1));
  if (releases_ >= 0) close(std::exchange(releases_, -1));
}

std::optional<std::string> ChildProcess::next_step() {
  while (true) {
    if (const auto end = unread_.find('\n'); end != std::string::npos) {
      auto step = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return step;
    }
    std::array<char, 256> buffer;
    const auto count = read(steps_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    unread_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

void ChildProcess::release() {
  // The child may be gone by now; that shows at the next step. MSG_NOSIGNAL has no twin for pipes, so SIGPIPE is
  // the caller's to ignore.
  [[maybe_unused]] const auto count = write(releases_, "\n", 1);
}

bool ChildProcess::run_until(const std::string& name) {
  while (const auto step = next_step()) {
    if (*step == name) return true;
    release();
  }
  return false;
}

int ChildProcess::run_to_end() {
  while (next_step()) release();
  return wait();
}

void ChildProcess::send_signal(int signal) const {
  if (pid_ > 0 && !exit_code_) ::kill(pid_, signal);
}

void ChildProcess::kill() {
  send_signal(SIGKILL);
  wait();
}

int ChildProcess::wait() {
  if (exit_code_) return *exit_code_;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return *exit_code_;
}

}  // namespace semel
