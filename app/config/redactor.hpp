// Keeps secrets out of everything that is printed: messages of databases and libraries repeat what they were given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace semel::app {

/// Knows the secrets of one configuration. Everything for standard output, standard error, logs and `--json` that may
/// quote a foreign text goes through `clean`.
class Redactor {
 public:
  /// An empty secret is none.
  void add(std::string secret);
  /// The password in a connection URI ("postgresql://user:password@host") or string ("password=…"), in both of its
  /// spellings, escaped and not.
  void add_passwords_of(std::string_view connection);
  /// `text` with "***" for every secret.
  std::string clean(std::string text) const;

 private:
  std::vector<std::string> secrets_;
};

}  // namespace semel::app
