// A progress bar on a terminal, while a file is read.
#pragma once

#include <condition_variable>
#include <mutex>
#include <semel/sources/file.hpp>
#include <string>
#include <thread>
#include <vector>

namespace semel::app {

/// "[#####     ]  50%  1,234 lines", or without the bar where the size is not known.
std::string progress_line(const file::Progress& progress);

/// Draws on standard error until its destruction, which wipes it.
class ProgressBar {
 public:
  /// The files outlive it.
  explicit ProgressBar(std::vector<const file::Source*> files);
  ~ProgressBar();

 private:
  void draw() const;

  std::vector<const file::Source*> files_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace semel::app
