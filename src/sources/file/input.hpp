// A file, a pipe or standard input as bytes, read by one thread that another can wake.
#pragma once

#include <cstdint>
#include <semel/result.hpp>
#include <span>
#include <string>
#include <string_view>

namespace semel::file {

class Input {
 public:
  /// "-" is standard input. A named pipe is opened without waiting for its writer. Errors: source_unreadable, with the
  /// path and the reason.
  static Result<Input> open(const std::string& path);

  Input(Input&& other) noexcept;
  Input& operator=(Input&&) = delete;
  ~Input();

  /// Waits for bytes; 0 at the end, and once `wake` was called. Errors: source_unreadable.
  Result<std::size_t> read(std::span<char> buffer);
  /// Ends a `read` that waits, and all later ones. Any thread.
  void wake();

  std::uint64_t bytes_total() const { return bytes_total_; }  ///< 0 where it is not known
  /// The file's name without its folders; "stdin" for standard input.
  std::string name() const;
  /// source_unreadable, with the path.
  Error unreadable(std::string_view reason) const;

 private:
  Input(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  Result<void> prepare();
  Error unreadable(int reason) const;

  std::string path_;
  int fd_;
  int wake_fd_ = -1;
  std::uint64_t bytes_total_ = 0;
};

}  // namespace semel::file
