// The demo's payment provider: a process of its own with a ledger of its own.
//
//   on a Unix socket   charge <payment> <cents>\n   ->  ok\n, once the charge is committed: each is one more
//                      wait <count>\n              ->  ok\n, once there are so many charges
//   over HTTP          POST /charges {"payment":…,"cents":…}   ->  201 {"id":…}, once it is committed
//                      under an Idempotency-Key that it knows, what was made then, and no second charge
#pragma once

#include <semel/result.hpp>
#include <string>

namespace semel::demo {

/// Serves on a Unix socket and on a port of 127.0.0.1 until it is killed. Reports the step "ready PORT" once it
/// listens.
int serve_ledger(const std::string& database, const std::string& socket_path);

/// A connection to a ledger.
class LedgerClient {
 public:
  static Result<LedgerClient> connect(const std::string& socket_path);
  LedgerClient(LedgerClient&& other) noexcept;
  LedgerClient(const LedgerClient&) = delete;
  ~LedgerClient();

  /// Returns once the charge is in the ledger.
  Result<void> charge(const std::string& payment, long long cents);
  /// Returns once it has made so many charges.
  Result<void> wait_for(long long count);

 private:
  explicit LedgerClient(int socket) : socket_(socket) {}
  Result<void> ask(const std::string& line);

  int socket_;
};

/// What a ledger's rows say.
struct LedgerCount {
  long long effects = 0;   ///< rows
  long long payments = 0;  ///< distinct payments among them
};
Result<void> create_ledger(const std::string& database);
Result<LedgerCount> count_ledger(const std::string& database);

/// The shop of the consumer that does not double payments, beside Semel's own tables.
Result<void> create_shop(const std::string& database);
/// Payments that are there with their charge.
Result<long long> count_settled(const std::string& database);

}  // namespace semel::demo
