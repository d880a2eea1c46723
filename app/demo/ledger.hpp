// The demo's payment ledger: a process of its own with a database of its own, as a payment provider is.
//
//   request   charge <payment> <cents>\n
//   reply     ok\n        once the charge is committed
#pragma once

#include <semel/result.hpp>
#include <string>

namespace semel::demo {

/// Serves on a Unix socket until it is killed. Reports the step "ready" once it listens.
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

 private:
  explicit LedgerClient(int socket) : socket_(socket) {}
  int socket_;
};

/// What a ledger's rows say.
struct LedgerCount {
  long long effects = 0;   ///< rows
  long long payments = 0;  ///< distinct payments among them
};
Result<void> create_ledger(const std::string& database);
Result<LedgerCount> count_ledger(const std::string& database);

}  // namespace semel::demo
