#include "base/process_name.hpp"

#include <unistd.h>

namespace semel {

std::string name_of_this_process() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return std::string(host) + ":" + std::to_string(::getpid());
}

}  // namespace semel
