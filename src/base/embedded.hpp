// A text file compiled into the program (see cmake/SemelEmbed.cmake).
#pragma once

#include <string_view>

namespace semel {

struct EmbeddedFile {
  std::string_view name;
  std::string_view text;
};

}  // namespace semel
