// A YAML file as one document that is small enough to be walked.
#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "config/mistake.hpp"

namespace semel::app {

/// The whole text of a file, or why it cannot be read.
std::variant<std::string, Mistake> text_of_file(const std::string& file);

/// Calls `read` with the only document of `text`, and returns the mistakes that it found; or what keeps the text from
/// being such a document.
std::vector<Mistake> read_document(const std::string& text,
                                   const std::function<std::vector<Mistake>(const YAML::Node&)>& read);

}  // namespace semel::app
