// Bytes cut into lines.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace semel::file {

struct Line {
  std::uint64_t number = 0;  ///< from 1, blank lines counted
  std::string text;          ///< without its newline; empty where it was too long
  bool too_long = false;
};

/// Passes on every line that is not blank (nothing but JSON white space).
class LineCutter {
 public:
  using Sink = std::function<void(Line)>;

  /// Holds at most `line_bytes_max` bytes of a line.
  LineCutter(std::size_t line_bytes_max, Sink sink) : line_bytes_max_(line_bytes_max), sink_(std::move(sink)) {}

  void feed(std::string_view bytes);
  /// The end: what has come since the last newline is a line too.
  void finish();

 private:
  void append(std::string_view bytes);
  void end_line();

  const std::size_t line_bytes_max_;
  const Sink sink_;
  Line line_{.number = 1, .text = {}};
};

}  // namespace semel::file
