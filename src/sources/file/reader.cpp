#include "sources/file/reader.hpp"

#include <algorithm>
#include <array>

#include "sources/file/decoder.hpp"

namespace semel::file {

namespace {

/// Long lines fill the queue sooner than their number does.
constexpr std::size_t bytes_queued_max = 64u << 20;

}  // namespace

Reader::Reader(Input input, const Options& options)
    : input_(std::move(input)),
      line_bytes_max_(options.line_bytes_max),
      lines_max_(std::max<std::size_t>(options.buffered_lines_max, 1)) {}

Reader::~Reader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  input_.wake();
  if (thread_.joinable()) thread_.join();
}

void Reader::join(Doorbell& bell) {
  const std::lock_guard lock(mutex_);
  bells_.push_back(&bell);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void Reader::leave(Doorbell& bell) {
  const std::lock_guard lock(mutex_);
  bells_.erase(std::ranges::find(bells_, &bell));
}

Taken Reader::take(std::size_t count_max) {
  Taken taken;
  {
    const std::lock_guard lock(mutex_);
    while (taken.lines.size() < count_max && !lines_.empty()) {
      bytes_queued_ -= lines_.front().text.size();
      taken.lines.push_back(std::move(lines_.front()));
      lines_.pop_front();
    }
    if (taken.lines.empty() && done_) taken.error = std::exchange(error_, std::nullopt);
    taken.ended = done_ && lines_.empty() && !error_;
  }
  room_.notify_one();
  return taken;
}

Progress Reader::progress() const {
  return {.bytes_read = bytes_read_, .bytes_total = input_.bytes_total(), .lines = lines_read_};
}

void Reader::run() {
  auto error = read_all();
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  done_ = true;
  ring();
}

std::optional<Error> Reader::read_all() {
  LineCutter cutter(line_bytes_max_, [this](Line line) { put(std::move(line)); });
  Decoder decoder([&](std::string_view bytes) { cutter.feed(bytes); });
  std::array<char, 65'536> buffer;
  while (true) {
    const auto count = input_.read(buffer);
    if (!count) return count.error();
    if (*count == 0) break;
    bytes_read_ += *count;
    if (auto fed = decoder.feed({buffer.data(), *count}); !fed) return input_.unreadable(fed.error().message);
  }
  if (auto finished = decoder.finish(); !finished) return input_.unreadable(finished.error().message);
  cutter.finish();
  return std::nullopt;
}

/// Waits while the queue is full.
void Reader::put(Line line) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return stopping_ || !is_full(); });
  if (stopping_) return;
  bytes_queued_ += line.text.size();
  lines_.push_back(std::move(line));
  ++lines_read_;
  // A lane sleeps only after it has found nothing.
  if (lines_.size() == 1) ring();
}

bool Reader::is_full() const { return lines_.size() >= lines_max_ || bytes_queued_ >= bytes_queued_max; }

void Reader::ring() const {
  for (Doorbell* bell : bells_) bell->ring();
}

}  // namespace semel::file
