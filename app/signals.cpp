#include "signals.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace semel::app {
namespace {

constexpr int over = SIGUSR1;  ///< the run has ended by itself
constexpr int none = 0;        ///< the time has passed

/// Who ends a whole group of processes, as timeout(1) and shells do, tells each of them twice within this time.
constexpr std::chrono::milliseconds together(100);

void end_at_once(std::string_view why) {
  // No destructors: they might wait for what hangs.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, why.data(), why.size());
  ::_exit(1);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&set_);
  for (const int signal : {SIGTERM, SIGINT, over}) sigaddset(&set_, signal);
  // Under nohup it is ignored, and stays so.
  if (!is_ignored(SIGHUP)) sigaddset(&set_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
}

Signals::Watch Signals::watch(std::function<void()> stop, std::chrono::milliseconds deadline) {
  stop_ = std::move(stop);
  thread_ = std::thread([this, deadline] {
    using Clock = std::chrono::steady_clock;
    int signal = next(std::nullopt);
    // What is said only after this is meant as a second one.
    for (const auto until = Clock::now() + together; signal != over && signal != none;) signal = next(until);
    if (signal == over) return;
    call_stop();
    signal = next(Clock::now() + deadline);
    if (signal == over) return;
    end_at_once(signal > 0 ? "semel: second signal, ending at once\n" : "semel: the shutdown deadline has passed\n");
  });
  return Watch(*this);
}

void Signals::call_stop() {
  const std::lock_guard lock(mutex_);
  if (stop_) stop_();
}

/// Waits for a call that is under way.
void Signals::forget_stop() {
  const std::lock_guard lock(mutex_);
  stop_ = nullptr;
}

/// Anybody can send `over`; it means something only from here.
int Signals::next(std::optional<Time> until) {
  for (;;) {
    int signal = 0;
    if (until) {
      const auto left = std::max(std::chrono::nanoseconds(0), *until - std::chrono::steady_clock::now());
      const timespec time{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
      signal = sigtimedwait(&set_, nullptr, &time);
      if (signal < 0 && errno == EAGAIN) return none;
    } else {
      signal = sigwaitinfo(&set_, nullptr);
    }
    if (signal > 0 && (signal != over || is_over_)) return signal;
  }
}

Signals::~Signals() {
  if (!thread_.joinable()) return;
  is_over_ = true;
  pthread_kill(thread_.native_handle(), over);
  thread_.join();
}

}  // namespace semel::app
