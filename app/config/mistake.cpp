#include "config/mistake.hpp"

namespace semel::app {

std::string place_and_message(const Mistake& mistake, std::string_view file) {
  std::string text(file);
  if (mistake.line > 0) text += ":" + std::to_string(mistake.line) + ":" + std::to_string(mistake.column);
  if (!mistake.path.empty()) text += ": " + mistake.path;
  return text + ": " + mistake.message;
}

}  // namespace semel::app
