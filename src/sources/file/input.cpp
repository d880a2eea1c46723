#include "sources/file/input.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace semel::file {

namespace {

bool is_standard_input(const std::string& path) { return path == "-"; }

}  // namespace

Error Input::unreadable(std::string_view reason) const {
  const std::string what = is_standard_input(path_) ? "standard input" : path_.empty() ? "\"\"" : path_;
  return fix_call(ErrorCode::source_unreadable, "cannot read " + what + ": " + std::string(reason));
}

Error Input::unreadable(int reason) const { return unreadable(std::generic_category().message(reason)); }

Result<Input> Input::open(const std::string& path) {
  const int fd = is_standard_input(path) ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const int reason = errno;
  Input input(path, fd);
  if (fd < 0) return input.unreadable(reason);
  if (auto prepared = input.prepare(); !prepared) return std::move(prepared).error();
  return input;
}

Result<void> Input::prepare() {
  struct stat about {};
  if (fstat(fd_, &about) != 0) return unreadable(errno);
  if (S_ISDIR(about.st_mode)) return unreadable(EISDIR);
  if (S_ISREG(about.st_mode)) bytes_total_ = static_cast<std::uint64_t>(about.st_size);
  wake_fd_ = eventfd(0, EFD_CLOEXEC);
  return wake_fd_ < 0 ? unreadable(errno) : Result<void>{};
}

Input::Input(Input&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      wake_fd_(std::exchange(other.wake_fd_, -1)),
      bytes_total_(other.bytes_total_) {}

Input::~Input() {
  if (wake_fd_ >= 0) close(wake_fd_);
  if (fd_ > STDIN_FILENO) close(fd_);
}

Result<std::size_t> Input::read(std::span<char> buffer) {
  while (true) {
    pollfd watched[] = {{.fd = fd_, .events = POLLIN, .revents = 0}, {.fd = wake_fd_, .events = POLLIN, .revents = 0}};
    if (poll(watched, 2, -1) < 0 && errno != EINTR) return unreadable(errno);
    if (watched[1].revents != 0) return std::size_t{0};
    if (watched[0].revents == 0) continue;
    const auto count = ::read(fd_, buffer.data(), buffer.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EAGAIN && errno != EINTR) return unreadable(errno);
  }
}

void Input::wake() { eventfd_write(wake_fd_, 1); }

std::string Input::name() const {
  return is_standard_input(path_) ? "stdin" : std::filesystem::path(path_).filename().string();
}

}  // namespace semel::file
