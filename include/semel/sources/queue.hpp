// A queue in the store as a source: what one handler publishes, another one takes.
#pragma once

#include <chrono>
#include <memory>
#include <semel/source.hpp>
#include <semel/store.hpp>
#include <string>

namespace semel::queue {

struct Options {
  std::string name = "queue";  ///< the source's name
  std::string queue{};         ///< the queue's: the name that handlers publish to; empty: the source's name
  /// How long a message is nobody else's. Past it, it comes again: its record then makes it a replay.
  std::chrono::milliseconds lease{60'000};
  std::chrono::milliseconds poll_every{200};  ///< how often an empty queue is asked
};

/// A message's transport id is the publication's id, the same in every delivery; messages come in the order published.
/// `store` outlives the source. Errors: source_settings_invalid.
Result<std::unique_ptr<Source>> open(Store& store, Options options);

}  // namespace semel::queue
