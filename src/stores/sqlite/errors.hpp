// SQLite's result codes in Semel's words.
#pragma once

#include <semel/error.hpp>
#include <string>
#include <string_view>

namespace semel::sqlite {

/// What was being done when a call failed: a failed commit may still be found committed after a crash.
enum class Phase { statement, commit };

/// The one table from extended result codes to remedy, certainty and code. A code that it does not name is judged by
/// its primary code, and one that is wholly unknown as a statement that must be fixed (at commit: unknown).
/// `doing` and `said` (SQLite's own words) make the message.
Error translate(int extended_code, Phase phase, std::string_view doing, std::string_view said);

}  // namespace semel::sqlite
