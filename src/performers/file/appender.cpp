#include "performers/file/appender.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace semel::file {

namespace {

/// False where the whole could not be written; `errno` says why.
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

/// A new file is there after a power cut only where its folder is on disk too.
void sync_folder(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);
  ::close(folder);
}

}  // namespace

Error Appender::failed(const char* what, Certainty certainty) const {
  return {Remedy::retry_later, certainty, ErrorCode::source_unreadable,
          std::string("cannot ") + what + " " + path_ + ": " + std::strerror(errno)};
}

void Appender::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<void> Appender::open() {
  if (fd_ >= 0 && was_moved()) close();
  return fd_ >= 0 ? Result<void>{} : make();
}

Result<void> Appender::make() {
  fd_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd_ < 0) return failed("append to", Certainty::not_applied);
  struct stat status {};
  if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close();
    return fix_call(ErrorCode::source_unreadable, path_ + " is not a regular file");
  }
  sync_folder(path_);
  return {};
}

/// Whether the path names another file by now, or none.
bool Appender::was_moved() const {
  struct stat mine {
  }, there{};
  if (fstat(fd_, &mine) != 0 || stat(path_.c_str(), &there) != 0) return true;
  return mine.st_dev != there.st_dev || mine.st_ino != there.st_ino;
}

Result<void> Appender::append(std::string_view lines) {
  if (auto opened = open(); !opened) return opened;
  while (flock(fd_, LOCK_EX) != 0)
    if (errno != EINTR) return failed("lock", Certainty::not_applied);
  auto appended = append_locked(lines);
  flock(fd_, LOCK_UN);
  // After a failed fsync the kernel forgets what it could not write: a later fsync of the same file would not tell.
  if (!appended) close();
  return appended;
}

Result<void> Appender::append_locked(std::string_view lines) {
  struct stat status {};
  char last = '\n';
  if (fstat(fd_, &status) != 0) return failed("append to", Certainty::not_applied);
  if (status.st_size > 0 && pread(fd_, &last, 1, status.st_size - 1) != 1)
    return failed("read", Certainty::not_applied);
  if (last != '\n' && !write_all(fd_, "\n")) return failed("append to", Certainty::not_applied);
  // From here on some of the lines may be there.
  if (!write_all(fd_, lines)) return failed("append to", Certainty::unknown);
  if (fsync(fd_) != 0) return failed("sync", Certainty::unknown);
  return {};
}

}  // namespace semel::file
