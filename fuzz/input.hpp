// What every fuzz target is made of: the bytes that a stranger might send, and promises about what is made of them.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace semel::fuzz {

/// The fuzzer's bytes, taken from the front. Where they are used up there is 0, and nothing.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  /// One byte's worth of choice, below `bound` (1 to 256).
  unsigned below(unsigned bound) {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return byte % bound;
  }
  /// Up to the next line feed, without it.
  std::string_view line() {
    const auto line = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
    return line;
  }
  /// The lines up to an empty one.
  std::vector<std::string_view> paragraph() {
    std::vector<std::string_view> lines;
    for (auto one = line(); !one.empty(); one = line()) lines.push_back(one);
    return lines;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// What a target does with one input. It returns, or a promise is broken.
void try_one(Input input);

/// Ends the process, so that the fuzzer keeps the input, where a promise does not hold.
inline void promise(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace semel::fuzz
