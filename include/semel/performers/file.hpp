// Publications as JSON lines in a file.
#pragma once

#include <memory>
#include <semel/performer.hpp>
#include <semel/result.hpp>
#include <string>

namespace semel::file {

struct PublisherOptions {
  std::string path;  ///< a regular file; it is made where it is not there, its folder is not
  std::size_t calls_max = 1'000;
};

/// Appends one line for each publication, in the order begun:
///
///   {"id":"…","target":"…","key":"…","attributes":{"name":"value","twice":["a","b"]},"body":"…"}
///
/// with "body_base64" where the body is no UTF-8. "key" is its order key, and left out where that is empty. A line is
/// confirmed when it is on disk: whatever was begun during one fsync shares the next. A publication may stand there
/// twice, with the same id. A last line that a crash has cut off is ended first, so that it spoils no other. Several
/// processes may append to one file; one that was moved away (rotated) is made again.
/// Errors: config_bad_value for a path that cannot be appended to, or is no regular file.
Result<std::unique_ptr<Performer>> file_publisher(PublisherOptions options);

}  // namespace semel::file
