// One mistake in a configuration file, with its place.
#pragma once

#include <semel/error.hpp>
#include <string>
#include <string_view>

namespace semel::app {

struct Mistake {
  ErrorCode code;
  int line = 0;  ///< from 1; 0 where the mistake is the file's as a whole
  int column = 0;
  std::string path;  ///< "handlers.record-invoice.key"; empty for the file as a whole
  std::string message;
};

/// "semel.yaml:12:5: handlers.record-invoice.key: …".
std::string place_and_message(const Mistake& mistake, std::string_view file);

}  // namespace semel::app
