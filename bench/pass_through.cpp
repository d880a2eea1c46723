// A gateway that guards nothing, for gateway.py to measure: passes everything through to the URL given. Prints its
// port, and ends with its input.
#include <fmt/core.h>

#include <cstdio>
#include <semel/sources/http.hpp>

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "usage: pass_through http://127.0.0.1:3000\n");
    return 2;
  }
  auto listener = semel::http::listen({.port = 0});
  if (listener) {
    const auto added = (*listener)->add(semel::http::Gateway{.name = "bench", .upstream = {.url = arguments[1]}});
    const auto started = added ? (*listener)->start() : semel::Result<void>(added.error());
    if (started) {
      fmt::print("{}\n", (*listener)->port());
      std::fflush(stdout);
      while (std::getchar() != EOF) {
      }
      return 0;
    }
    fmt::print(stderr, "{}\n", started.error().message);
  }
  return 1;
}
