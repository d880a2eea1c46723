#include "prove/target.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "prove/exchange.hpp"

extern char** environ;

namespace semel::prove {
namespace {

constexpr std::chrono::milliseconds look_every{5};

bool connects(const std::string& url) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy(curl_easy_init(), curl_easy_cleanup);
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_CONNECTTIMEOUT_MS, 1'000L);
  return curl_easy_perform(easy.get()) == CURLE_OK;
}

}  // namespace

Target::~Target() { kill(); }

bool Target::answers() const { return connects(url_); }

bool Target::runs() {
  if (group_ < 0) return false;
  if (::waitpid(group_, nullptr, WNOHANG) == 0) return true;
  // The leader has ended; what it left behind must not serve on.
  kill();
  return false;
}

Result<void> Target::bring_up() {
  if (!start_) {
    if (url_.empty() || answers()) return {};
    return retry_later(ErrorCode::source_unreadable,
                       "nothing answers at the target's address; start it, or give `target: { start: … }`");
  }
  if (runs()) return {};
  if (!url_.empty() && answers())
    return fix_call(ErrorCode::address_in_use, "something else answers at the target's address already; stop it");
  if (auto launched = launch(); !launched) return launched;
  const auto deadline = std::chrono::steady_clock::now() + start_->within;
  while (!url_.empty() && !answers()) {
    if (!runs()) return fix_call(ErrorCode::source_unreadable, "the target ended while it was started");
    if (std::chrono::steady_clock::now() > deadline)
      return retry_later(ErrorCode::source_unreadable, "the target was started and does not answer in time");
    std::this_thread::sleep_for(look_every);
  }
  return {};
}

Result<void> Target::launch() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  // The signals that this process leaves to one thread are the target's own.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // What the target prints is not the command's output.
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  char shell[] = "/bin/sh";
  char option[] = "-c";
  char* arguments[] = {shell, option, start_->command.data(), nullptr};
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, shell, &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0)
    return fix_call(ErrorCode::source_unreadable,
                    std::string("the target cannot be started: ") + std::strerror(failed));
  group_ = pid;
  return {};
}

void Target::kill() {
  if (group_ < 0) return;
  ::kill(-group_, SIGKILL);
  // Its children's children come to us, see `launch`; the group is gone once none of them is left.
  while (::waitpid(-group_, nullptr, 0) > 0 || errno == EINTR) {
  }
  group_ = -1;
}

}  // namespace semel::prove
