#include "signals.hpp"

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace semel::app {
namespace {

constexpr int over = SIGUSR1;  ///< the run has ended by itself

void end_at_once(std::string_view why) {
  // No destructors: they might wait for what hangs.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, why.data(), why.size());
  ::_exit(1);
}

int wait_for(const sigset_t& set, std::chrono::milliseconds deadline) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  for (;;) {
    const auto left = std::max(std::chrono::nanoseconds(0), until - std::chrono::steady_clock::now());
    const timespec time{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
    const int signal = sigtimedwait(&set, nullptr, &time);
    if (signal > 0 || errno == EAGAIN) return signal;
  }
}

}  // namespace

Signals::Signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&set_);
  for (const int signal : {SIGTERM, SIGINT, over}) sigaddset(&set_, signal);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
}

void Signals::watch(std::function<void()> stop, std::chrono::milliseconds deadline) {
  thread_ = std::thread([this, stop = std::move(stop), deadline] {
    int signal = 0;
    if (sigwait(&set_, &signal) != 0 || signal == over) return;
    stop();
    signal = wait_for(set_, deadline);
    if (signal == over) return;
    end_at_once(signal > 0 ? "semel: second signal, ending at once\n" : "semel: the shutdown deadline has passed\n");
  });
}

Signals::~Signals() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), over);
  thread_.join();
}

}  // namespace semel::app
