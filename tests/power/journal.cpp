// Loaded before a program (LD_PRELOAD), writes a journal of what the program does to the files below one folder, in
// order: writes, truncations, names that come and go, and syncs. tests/power/disk.py builds from it the disk as a loss
// of power leaves it.
//
//   SEMEL_POWER_ROOT      the folder, an absolute path without symbolic links
//   SEMEL_POWER_JOURNAL   the journal; records are appended, each by one write
//
// A change is written down before it is made, a sync after it has succeeded: so the journal never calls durable what is
// not. What reaches the kernel past these functions is not seen: stdio's own writes, copy_file_range, io_uring. None of
// them may carry what a program promises to keep; that a database is whole after a rebuild shows that none did.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct [[gnu::packed]] Head {
  char what;
  std::uint16_t path_size;
  std::uint16_t other_size;
  std::uint64_t offset;
  std::uint32_t data_size;
};

template <class... Arguments>
long call(long number, Arguments... arguments) {
  return ::syscall(number, arguments...);
}

/// A copy: PostgreSQL writes its title over the environment that it was given.
std::string setting(const char* name) {
  const char* const value = ::getenv(name);
  return value ? value : "";
}

bool is_watched(const std::string& path) {
  static const auto root = setting("SEMEL_POWER_ROOT");
  return !root.empty() && path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

std::string link_target(const std::string& link) {
  char text[PATH_MAX];
  const long size = call(SYS_readlinkat, AT_FDCWD, link.c_str(), text, sizeof text);
  return size < 0 ? std::string() : std::string(text, static_cast<std::size_t>(size));
}

std::string path_of(int fd) { return link_target("/proc/self/fd/" + std::to_string(fd)); }

std::string absolute(int folder, const char* path) {
  if (path[0] == '/') return path;
  return (folder == AT_FDCWD ? link_target("/proc/self/cwd") : path_of(folder)) + "/" + path;
}

struct Record {
  char what;
  std::string path;
  std::string other{};
  std::uint64_t offset = 0;
  const iovec* data = nullptr;
  int parts = 0;
};

void write_down(const Record& record) {
  const int error = errno;
  static const auto journal = setting("SEMEL_POWER_JOURNAL");
  std::string text(sizeof(Head), '\0');
  text += record.path + record.other;
  std::size_t size = 0;
  for (int i = 0; i < record.parts; ++i) {
    text.append(static_cast<const char*>(record.data[i].iov_base), record.data[i].iov_len);
    size += record.data[i].iov_len;
  }
  const Head head{record.what, static_cast<std::uint16_t>(record.path.size()),
                  static_cast<std::uint16_t>(record.other.size()), record.offset, static_cast<std::uint32_t>(size)};
  ::memcpy(text.data(), &head, sizeof head);
  const long fd = call(SYS_openat, AT_FDCWD, journal.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 || call(SYS_write, fd, text.data(), text.size()) != static_cast<long>(text.size())) ::abort();
  call(SYS_close, fd);
  errno = error;
}

void write_down_data(int fd, const iovec* data, int parts, std::uint64_t offset) {
  const auto path = path_of(fd);
  if (is_watched(path)) write_down({.what = 'W', .path = path, .offset = offset, .data = data, .parts = parts});
}

/// Where a write without an offset goes.
std::uint64_t place_of(int fd) {
  struct stat found {};
  const bool appends = (call(SYS_fcntl, fd, F_GETFL) & O_APPEND) != 0;
  if (appends && ::fstat(fd, &found) == 0) return static_cast<std::uint64_t>(found.st_size);
  const long at = call(SYS_lseek, fd, 0L, SEEK_CUR);
  return at < 0 ? 0 : static_cast<std::uint64_t>(at);
}

int open_file(int folder, const char* name, int flags, mode_t mode) {
  const auto path = absolute(folder, name);
  if (is_watched(path) && (flags & (O_CREAT | O_TRUNC)) != 0) {
    const bool is_new = call(SYS_faccessat, AT_FDCWD, path.c_str(), F_OK) != 0;
    if (is_new && (flags & O_CREAT) != 0) write_down({.what = 'C', .path = path});
    if (!is_new && (flags & O_TRUNC) != 0) write_down({.what = 'T', .path = path});
  }
  return static_cast<int>(call(SYS_openat, folder, name, flags, mode));
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

int rename_file(int from_folder, const char* from, int to_folder, const char* to) {
  const auto path = absolute(from_folder, from);
  if (is_watched(path)) write_down({.what = 'R', .path = path, .other = absolute(to_folder, to)});
  return static_cast<int>(call(SYS_renameat2, from_folder, from, to_folder, to, 0U));
}

int remove_file(int folder, const char* name, int flags) {
  const auto path = absolute(folder, name);
  if (is_watched(path)) write_down({.what = 'U', .path = path});
  return static_cast<int>(call(SYS_unlinkat, folder, name, flags));
}

int make_folder(int folder, const char* name, mode_t mode) {
  const auto path = absolute(folder, name);
  if (is_watched(path)) write_down({.what = 'M', .path = path});
  return static_cast<int>(call(SYS_mkdirat, folder, name, mode));
}

int link_file(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  const auto path = absolute(from_folder, from);
  if (is_watched(path)) write_down({.what = 'L', .path = path, .other = absolute(to_folder, to)});
  return static_cast<int>(call(SYS_linkat, from_folder, from, to_folder, to, flags));
}

int cut_file(int fd, std::uint64_t size) {
  const auto path = path_of(fd);
  if (is_watched(path)) write_down({.what = 'T', .path = path, .offset = size});
  return static_cast<int>(call(SYS_ftruncate, fd, size));
}

int synced(int fd, long result) {
  const auto path = path_of(fd);
  if (result == 0 && is_watched(path)) write_down({.what = 'F', .path = path});
  return static_cast<int>(result);
}

int allocate(int fd, int mode, off_t offset, off_t size) {
  const auto path = path_of(fd);
  if (is_watched(path))
    write_down(
        {.what = 'A', .path = path, .offset = static_cast<std::uint64_t>(offset) + static_cast<std::uint64_t>(size)});
  return static_cast<int>(call(SYS_fallocate, fd, mode, offset, size));
}

}  // namespace

extern "C" {

#define SEMEL_OPEN(name)                           \
  int name(const char* path, int flags, ...) {     \
    va_list arguments;                             \
    va_start(arguments, flags);                    \
    const auto mode = mode_of(flags, arguments);   \
    va_end(arguments);                             \
    return open_file(AT_FDCWD, path, flags, mode); \
  }
#define SEMEL_OPENAT(name)                                 \
  int name(int folder, const char* path, int flags, ...) { \
    va_list arguments;                                     \
    va_start(arguments, flags);                            \
    const auto mode = mode_of(flags, arguments);           \
    va_end(arguments);                                     \
    return open_file(folder, path, flags, mode);           \
  }
SEMEL_OPEN(open)
SEMEL_OPEN(open64)
SEMEL_OPENAT(openat)
SEMEL_OPENAT(openat64)
// What open becomes where glibc's checks are compiled in (_FORTIFY_SOURCE).
int open_checked(const char* path, int flags) asm("__open_2");
int open_checked(const char* path, int flags) { return open_file(AT_FDCWD, path, flags, 0); }
int open64_checked(const char* path, int flags) asm("__open64_2");
int open64_checked(const char* path, int flags) { return open_file(AT_FDCWD, path, flags, 0); }
int creat(const char* path, mode_t mode) { return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

ssize_t write(int fd, const void* data, size_t size) {
  const iovec part{const_cast<void*>(data), size};
  write_down_data(fd, &part, 1, place_of(fd));
  return call(SYS_write, fd, data, size);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  write_down_data(fd, parts, count, place_of(fd));
  return call(SYS_writev, fd, parts, count);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  const iovec part{const_cast<void*>(data), size};
  write_down_data(fd, &part, 1, static_cast<std::uint64_t>(offset));
  return call(SYS_pwrite64, fd, data, size, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) { return pwrite(fd, data, size, offset); }
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  write_down_data(fd, parts, count, static_cast<std::uint64_t>(offset));
  return call(SYS_pwritev, fd, parts, count, offset, 0L);
}
ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t offset) { return pwritev(fd, parts, count, offset); }

int ftruncate(int fd, off_t size) noexcept { return cut_file(fd, static_cast<std::uint64_t>(size)); }
int ftruncate64(int fd, off64_t size) noexcept { return cut_file(fd, static_cast<std::uint64_t>(size)); }
int truncate(const char* name, off_t size) noexcept {
  const auto path = absolute(AT_FDCWD, name);
  if (is_watched(path)) write_down({.what = 'T', .path = path, .offset = static_cast<std::uint64_t>(size)});
  return static_cast<int>(call(SYS_truncate, name, size));
}
int fallocate(int fd, int mode, off_t offset, off_t size) { return allocate(fd, mode, offset, size); }
int fallocate64(int fd, int mode, off64_t offset, off64_t size) { return allocate(fd, mode, offset, size); }
int posix_fallocate(int fd, off_t offset, off_t size) { return allocate(fd, 0, offset, size) == 0 ? 0 : errno; }
int posix_fallocate64(int fd, off64_t offset, off64_t size) { return posix_fallocate(fd, offset, size); }

int rename(const char* from, const char* to) noexcept { return rename_file(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return rename_file(from_folder, from, to_folder, to);
}
int link(const char* from, const char* to) noexcept { return link_file(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  return link_file(from_folder, from, to_folder, to, flags);
}
int unlink(const char* name) noexcept { return remove_file(AT_FDCWD, name, 0); }
int unlinkat(int folder, const char* name, int flags) noexcept { return remove_file(folder, name, flags); }
int rmdir(const char* name) noexcept { return remove_file(AT_FDCWD, name, AT_REMOVEDIR); }
int mkdir(const char* name, mode_t mode) noexcept { return make_folder(AT_FDCWD, name, mode); }
int mkdirat(int folder, const char* name, mode_t mode) noexcept { return make_folder(folder, name, mode); }

int fsync(int fd) { return synced(fd, call(SYS_fsync, fd)); }
int fdatasync(int fd) { return synced(fd, call(SYS_fdatasync, fd)); }
void sync() noexcept {
  call(SYS_sync);
  write_down({.what = 'Y', .path = ""});
}
int syncfs(int fd) noexcept {
  const long result = call(SYS_syncfs, fd);
  if (result == 0) write_down({.what = 'Y', .path = ""});
  return static_cast<int>(result);
}

// What is written through a shared mapping is not seen; disk.py says which files may be mapped so.
void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  if (fd >= 0 && (flags & MAP_SHARED) != 0 && (protection & PROT_WRITE) != 0) {
    const auto path = path_of(fd);
    if (is_watched(path)) write_down({.what = 'X', .path = path});
  }
  return reinterpret_cast<void*>(call(SYS_mmap, at, size, protection, flags, fd, offset));
}
void* mmap64(void* at, size_t size, int protection, int flags, int fd, off64_t offset) noexcept {
  return mmap(at, size, protection, flags, fd, offset);
}

}  // extern "C"
