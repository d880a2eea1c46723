#include "config/nearest_name.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace semel::app {
namespace {

char folded(char c) { return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Insertions, removals, replacements, and swaps of neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) edits[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) edits[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1])) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view written, std::span<const std::string> names) {
  std::optional<std::string> nearest;
  auto least = std::max<std::size_t>(1, written.size() / 3) + 1;
  for (const auto& name : names) {
    const auto edits = distance(written, name);
    if (edits < least) {
      least = edits;
      nearest = name;
    }
  }
  return nearest;
}

std::string suggestion(std::string_view written, std::span<const std::string> names) {
  if (const auto nearest = nearest_name(written, names)) return "; did you mean \"" + *nearest + "\"?";
  if (names.empty()) return "";
  std::string text = "; known here: ";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return text;
}

}  // namespace semel::app
