// A probe for tests: it reports every step of the shipped program on one file descriptor and waits on another, so that
// a test can kill the process exactly there.
#pragma once

#include <mutex>
#include <semel/probe.hpp>
#include <string_view>

namespace semel::app {

class ProbeFd : public Probe {
 public:
  struct Descriptors {
    int steps;     ///< gets "claimed\n" and so on
    int releases;  ///< gives one byte for each step
  };
  explicit ProbeFd(Descriptors descriptors) : descriptors_(descriptors) {}

  /// One lane at a time. Waits for ever where nobody releases; goes on where the other end was closed.
  void reached(Step step) override;

 private:
  Descriptors descriptors_;
  std::mutex mutex_;
};

}  // namespace semel::app
