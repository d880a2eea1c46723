// JSON lines from a file, a pipe or standard input, gzip too.
#pragma once

#include <functional>
#include <memory>
#include <semel/source.hpp>
#include <string>

namespace semel::file {

struct Progress {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_total = 0;  ///< 0 where it is not known (a pipe)
  std::uint64_t lines = 0;
};

struct Options {
  std::string name = "file";  ///< the source's name
  std::string path;           ///< "-" is standard input
  std::size_t line_bytes_max = 16u << 20;
  std::size_t buffered_lines_max = 1'000;
};

/// Each line that is not blank is a message; its transport id is "<file name>:<line number>", or "stdin:<line number>".
/// gzip is recognised by its first bytes. A line over the limit becomes a message with an empty body and a `problem`
/// that says so. A file that ends in the middle of a gzip stream ends with an error from `receive` (source_unreadable),
/// after its whole lines. Reading runs ahead of the lane on a thread of its own, so that a pipe without bytes blocks
/// nobody.
class Source : public semel::Source {
 public:
  virtual Progress progress() const = 0;
};

/// Errors: source_unreadable with the path and the reason.
Result<std::unique_ptr<Source>> open(Options options);

}  // namespace semel::file
