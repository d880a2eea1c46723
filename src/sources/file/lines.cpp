#include "sources/file/lines.hpp"

#include <utility>

namespace semel::file {

void LineCutter::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto newline = bytes.find('\n');
    append(bytes.substr(0, newline));
    if (newline == bytes.npos) return;
    end_line();
    bytes.remove_prefix(newline + 1);
  }
}

void LineCutter::finish() { end_line(); }

void LineCutter::append(std::string_view bytes) {
  if (line_.too_long) return;
  line_.too_long = bytes.size() > line_bytes_max_ - line_.text.size();
  if (line_.too_long)
    line_.text = std::string();
  else
    line_.text.append(bytes);
}

void LineCutter::end_line() {
  Line line = std::exchange(line_, Line{.number = line_.number + 1, .text = {}});
  const bool blank = !line.too_long && line.text.find_first_not_of(" \t\r") == std::string::npos;
  if (!blank) sink_(std::move(line));
}

}  // namespace semel::file
