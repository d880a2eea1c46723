// The thread that reads ahead, and the bounded queue between it and the lanes.
//
//   Input --> Decoder --> LineCutter --> queue --> receivers
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <semel/source.hpp>
#include <semel/sources/file.hpp>
#include <thread>
#include <vector>

#include "sources/file/input.hpp"
#include "sources/file/lines.hpp"

namespace semel::file {

/// What a lane finds in the queue.
struct Taken {
  std::vector<Line> lines;
  bool ended = false;          ///< nothing is left, and nothing will come
  std::optional<Error> error;  ///< why it ended before its end; told once
};

/// Thread-safe.
class Reader {
 public:
  Reader(Input input, const Options& options);
  ~Reader();

  /// One more lane takes; the first one starts the thread. `bell` is rung until it leaves.
  void join(Doorbell& bell);
  void leave(Doorbell& bell);
  /// At once: at most `count_max` lines.
  Taken take(std::size_t count_max);

  Progress progress() const;
  std::string file_name() const { return input_.name(); }

 private:
  void run();
  std::optional<Error> read_all();
  void put(Line line);
  bool is_full() const;
  void ring() const;

  Input input_;
  const std::size_t line_bytes_max_;
  const std::size_t lines_max_;
  std::atomic<std::uint64_t> bytes_read_ = 0;
  std::atomic<std::uint64_t> lines_read_ = 0;

  std::mutex mutex_;
  std::condition_variable room_;
  std::deque<Line> lines_;
  std::size_t bytes_queued_ = 0;
  std::vector<Doorbell*> bells_;
  bool done_ = false;
  bool stopping_ = false;
  std::optional<Error> error_;

  std::thread thread_;
};

}  // namespace semel::file
