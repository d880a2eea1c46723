#include "probe_fd.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>

namespace semel::app {

void ProbeFd::reached(Step step) {
  const std::lock_guard lock(mutex_);
  const auto line = std::string(step_name(step)) + "\n";
  // A line is shorter than PIPE_BUF, so it is written whole or not at all.
  if (::write(descriptors_.steps, line.data(), line.size()) < 0) return;
  char byte = 0;
  while (::read(descriptors_.releases, &byte, 1) < 0 && errno == EINTR) {
  }
}

}  // namespace semel::app
