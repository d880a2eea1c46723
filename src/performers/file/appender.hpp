// A file that only grows, by whole lines.
#pragma once

#include <semel/result.hpp>
#include <string>
#include <string_view>

namespace semel::file {

/// One thread at a time.
class Appender {
 public:
  explicit Appender(std::string path) : path_(std::move(path)) {}
  ~Appender() { close(); }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  /// Opens the file, or makes it. Errors: source_unreadable, not applied.
  Result<void> open();
  /// Appends whole lines, and returns when they are on disk. Errors: source_unreadable; certainty unknown where some of
  /// them may be there.
  Result<void> append(std::string_view lines);

 private:
  Result<void> make();
  bool was_moved() const;
  Result<void> append_locked(std::string_view lines);
  Error failed(const char* what, Certainty certainty) const;
  void close();

  const std::string path_;
  int fd_ = -1;
};

}  // namespace semel::file
