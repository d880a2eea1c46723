// The page of each error code: what it means, what is certain, what to do. The pages are docs/errors, compiled in.
#pragma once

#include <optional>
#include <string_view>

namespace semel {

/// The page of a code given as "SEMEL-0203", "semel-0203" or "203"; nothing where there is no such code.
std::optional<std::string_view> explain(std::string_view code_name);

}  // namespace semel
