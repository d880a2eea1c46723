// What this process is called in what it leaves behind.
#pragma once

#include <string>

namespace semel {

/// "host:12345": the host's name and the process id. For people: it is no token, and another process may have it later.
std::string name_of_this_process();

}  // namespace semel
