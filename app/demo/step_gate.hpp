// The child's side of ChildProcess: says which step it has reached, and waits there to be released.
#pragma once

#include <string_view>

namespace semel::demo {

/// Ends the process where the parent is gone.
void reach_step(std::string_view name);

}  // namespace semel::demo
