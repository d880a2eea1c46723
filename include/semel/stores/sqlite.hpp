// SQLite as a store: one file, no server.
#pragma once

#include <chrono>
#include <memory>
#include <semel/sql.hpp>
#include <semel/store.hpp>
#include <string>

namespace semel::sqlite {

using semel::SqlSession;

struct Options {
  std::string path;  ///< created where missing
  /// How long a transaction waits for another process's, before lock_timeout.
  std::chrono::milliseconds lock_timeout{5'000};
  int cache_mebibytes = 64;
  /// FULL is the only setting that keeps an acknowledged commit through a power cut in WAL mode.
  enum class Synchronous { full, normal, off } synchronous = Synchronous::full;
  /// Says by name that an acknowledged commit may be lost.
  bool allow_unsafe_durability = false;
};

/// Records live in tables named `semel_…` beside the user's. WAL, `BEGIN IMMEDIATE`.
class Store : public semel::Store {
 public:
  using SessionType = SqlSession;
};

/// Opens or creates the file. Errors: source of the trouble in the message, with the path; permission_denied,
/// store_read_only, store_damaged, store_unreachable.
Result<std::unique_ptr<Store>> open(Options options);

}  // namespace semel::sqlite
