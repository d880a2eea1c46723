// UTF-8 (RFC 3629).
#pragma once

#include <string_view>

namespace semel {

/// No overlong forms, no surrogates, nothing above U+10FFFF, nothing cut short. NUL is a character like any other.
bool is_valid_utf8(std::string_view text);

}  // namespace semel
