// "Did you mean …": the valid name that a mistyped one is nearest to.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace semel::app {

/// Nothing where no name is near enough to be meant: more than one edit in three letters apart.
std::optional<std::string> nearest_name(std::string_view written, std::span<const std::string> names);

/// "; did you mean "key"?", or what there is to choose from, or nothing where there is no choice.
std::string suggestion(std::string_view written, std::span<const std::string> names);

}  // namespace semel::app
