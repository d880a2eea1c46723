// Retry-After (RFC 9110, 10.2.3).
#pragma once

#include <chrono>
#include <optional>
#include <semel/delivery.hpp>
#include <string_view>

namespace semel::http {

/// An HTTP-date (RFC 9110, 5.6.7) in any of its three forms; nothing for anything else.
std::optional<std::chrono::sys_seconds> http_date(std::string_view text);

/// How long a server wants to be left alone: from 0 to a day; nothing where it does not say so. A date is counted from
/// the answer's own Date where it has one, so that clocks need not agree, else from `now`.
std::optional<std::chrono::milliseconds> retry_after(const Attributes& headers,
                                                     std::chrono::system_clock::time_point now);

}  // namespace semel::http
