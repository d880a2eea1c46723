#include "net/credentials.hpp"

#include <algorithm>
#include <array>

namespace semel::net {

namespace {

constexpr std::array<std::string_view, 5> whole{"token", "x-token", "jwt", "x-jwt", "job-token"};

/// At the end of a name, after a dash or alone. `token` and `key` by themselves end too many names that are none.
constexpr std::array<std::string_view, 27> endings{"authorization", "authorization-token",
                                                   "cookie",        "api-key",
                                                   "apikey",        "api-token",
                                                   "api-secret",    "auth-key",
                                                   "auth-token",    "access-key",
                                                   "access-token",  "refresh-token",
                                                   "id-token",      "bearer-token",
                                                   "session-token", "private-token",
                                                   "secret-token",  "security-token",
                                                   "csrf-token",    "xsrf-token",
                                                   "vault-token",   "gitlab-token",
                                                   "channel-token", "subscription-key",
                                                   "functions-key", "secret",
                                                   "password"};

constexpr std::array<std::string_view, 2> only_in_queries{"sig", "signature"};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

std::string plain(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '_' ? '-' : lower(c);
  return out;
}

bool ends_in(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return false;
  name.remove_suffix(ending.size());
  return name.empty() || name.ends_with('-');
}

template <class Names>
bool ends_in_one_of(std::string_view name, const Names& names) {
  return std::ranges::any_of(names, [&](std::string_view ending) { return ends_in(name, ending); });
}

}  // namespace

bool holds_credentials(std::string_view field) {
  const std::string name = plain(field);
  return std::ranges::find(whole, name) != whole.end() || ends_in_one_of(name, endings);
}

bool holds_credentials(std::string_view field, const std::vector<std::string>& more) {
  return holds_credentials(field) || std::ranges::any_of(more, [&](const std::string& other) {
           return std::ranges::equal(field, other, {}, lower, lower);
         });
}

std::string without_credentials(std::string_view target) {
  const auto query = std::min(target.find('?'), target.size());
  std::string out(target.substr(0, query));
  target.remove_prefix(query);
  while (!target.empty()) {
    // Each part begins with its "?" or "&".
    const auto part = target.substr(0, std::min(target.find('&', 1), target.size()));
    const auto equals = part.find('=');
    const auto name = part.substr(1, equals == part.npos ? part.npos : equals - 1);
    const bool secret = holds_credentials(name) || ends_in_one_of(plain(name), only_in_queries);
    if (equals != part.npos && secret)
      out.append(part.substr(0, equals + 1)).append("***");
    else
      out.append(part);
    target.remove_prefix(part.size());
  }
  return out;
}

}  // namespace semel::net
