// What waits in the store, counted when somebody asks for the metrics.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <semel/store.hpp>
#include <thread>

namespace semel::app {

struct BacklogCounts {
  IntentCounts intents{};
  OutboxCounts outbox{};
};

/// Counts on a thread of its own, so that who asks waits a second at most for a store that hangs.
class Backlog {
 public:
  explicit Backlog(Store& store);
  ~Backlog();

  /// Counted after the call; nothing where the store did not say in time. One count at a time, however many ask.
  std::optional<BacklogCounts> counts();

 private:
  void serve();
  std::optional<BacklogCounts> count() const;

  Store& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::uint64_t asked_ = 0;    ///< counts those who have asked
  std::uint64_t counted_ = 0;  ///< how many of them had asked before the last count began
  std::optional<BacklogCounts> last_{};
  std::thread thread_;
};

}  // namespace semel::app
