#include "progress.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>

namespace semel::app {
namespace {

std::string grouped(std::uint64_t number) {
  auto text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

}  // namespace

std::string progress_line(const file::Progress& progress) {
  constexpr std::uint64_t width = 30;
  const auto lines = grouped(progress.lines) + " lines";
  if (progress.bytes_total == 0) return lines;
  const auto read = std::min(progress.bytes_read, progress.bytes_total);
  const auto filled = static_cast<std::size_t>(read * width / progress.bytes_total);
  const auto percent = std::to_string(read * 100 / progress.bytes_total);
  return "[" + std::string(filled, '#') + std::string(width - filled, ' ') + "] " +
         std::string(3 - std::min<std::size_t>(3, percent.size()), ' ') + percent + "%  " + lines;
}

ProgressBar::ProgressBar(std::vector<const file::Source*> files) : files_(std::move(files)) {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return stopping_; })) draw();
  });
}

ProgressBar::~ProgressBar() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  std::cerr << "\r\033[K" << std::flush;
}

void ProgressBar::draw() const {
  file::Progress sum;
  bool known = true;
  for (const auto* file : files_) {
    const auto progress = file->progress();
    known = known && progress.bytes_total > 0;
    sum.bytes_read += progress.bytes_read;
    sum.bytes_total += progress.bytes_total;
    sum.lines += progress.lines;
  }
  if (!known) sum.bytes_total = 0;
  std::cerr << "\r\033[K" << progress_line(sum) << std::flush;
}

}  // namespace semel::app
