// Which header fields and query parameters hold credentials, by their usual names. What is kept of a request leaves
// them out: a store and its copies are read by more people than may act for a caller.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace semel::net {

/// Authorization, Cookie, X-Api-Key, X-Amz-Security-Token and their like, in any case of letters.
bool holds_credentials(std::string_view field);
/// Or one that is among `more`, in any case of letters.
bool holds_credentials(std::string_view field, const std::vector<std::string>& more);

/// The target with `***` for the value of each query parameter that holds credentials.
std::string without_credentials(std::string_view target);

}  // namespace semel::net
