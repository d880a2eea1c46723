// Which paths a guarded route covers.
//
//   pattern = 1*( "/" ( "*" / segment ) ) [ "/**" ] / "/" / "/**"
#pragma once

#include <semel/result.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace semel::http {

/// A path as patterns are compared with: percent-decoded (but for %2F, which is no slash), without dot segments
/// (RFC 3986, 5.2.4), doubled slashes and a slash at the end.
std::string plain_path(std::string_view path);

class PathPattern {
 public:
  /// Errors: source_settings_invalid.
  static Result<PathPattern> parse(std::string_view text);

  /// `path` as `plain_path` gives it.
  bool matches(std::string_view path) const;

 private:
  std::vector<std::string> segments_;
  bool and_below_ = false;  ///< it ends in "/**": at least one segment more
};

}  // namespace semel::http
