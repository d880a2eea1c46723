// Paths of requests, and which of them a gateway guards: no other spelling of a guarded path slips past it.
//
//   input = a pattern LF a path LF choices
#include "input.hpp"
#include "sources/http/path_pattern.hpp"

namespace semel::fuzz {
namespace {

std::string encoded(char c) {
  char text[4];
  std::snprintf(text, sizeof text, "%%%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return text;
}

/// The same path as the choices would spell it. `path` has no escapes.
std::string spelled(std::string_view path, Input& choices) {
  std::string out;
  for (const char c : path) {
    const auto choice = choices.below(8);
    if (c != '/') {
      out += choice < 2 ? encoded(c) : std::string(1, c);
      continue;
    }
    static constexpr std::string_view detours[] = {"/", "//", "/./", "/x/../", "/%2e/", "/x/%2E%2e/", "/", "/"};
    out += detours[choice];
  }
  return out;
}

bool has_dot_segment(std::string_view path) {
  if (path == "/") return false;
  const std::string closed = std::string(path) + "/";
  return closed.find("/./") != closed.npos || closed.find("/../") != closed.npos || closed.find("//") != closed.npos;
}

}  // namespace

void try_one(Input input) {
  const auto text = input.line();
  const auto pattern = http::PathPattern::parse(text);
  const auto path = input.line();
  const auto plain = http::plain_path(path);
  if (pattern) pattern->matches(plain);
  if (path.starts_with('/') && path.find('%') == path.npos) {
    promise(!has_dot_segment(plain), "a plain path has no dot segments and no empty ones");
    promise(http::plain_path(spelled(path, input)) == plain, "another spelling is the same path");
  }
  if (!pattern || text.find_first_of("*%") != text.npos) return;
  promise(pattern->matches(http::plain_path(text)), "a pattern without * guards the path that it says");
  promise(pattern->matches(http::plain_path(spelled(text, input))), "a pattern guards its path in every spelling");
  promise(!pattern->matches(http::plain_path(std::string(text) + "/below")),
          "a pattern without ** guards nothing below");
}

}  // namespace semel::fuzz
