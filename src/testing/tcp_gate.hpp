// A gate on loopback between a client and a server, for tests of what a network can do to both.
//
//   client ──> gate (a free port, a thread of its own) ──> server
//
// It forwards bytes and, when told to, cuts, refuses or holds them. It reads just enough of PostgreSQL's
// protocol (version 3, no TLS) to know a COMMIT on its way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace semel::testing {

/// What the gate does to the next COMMIT that a client sends, once.
enum class CommitFault {
  none,
  cut_before,  ///< what was sent before it is forwarded; the COMMIT is not, and the connection is cut
  lose_reply,  ///< it is forwarded, the server commits; its answer is swallowed, and the connection is cut
};

/// Thread-safe. Every call has taken effect when it returns.
class TcpGate {
 public:
  /// Opens the gate. Throws std::system_error where it cannot.
  TcpGate(std::string host, std::uint16_t server_port);
  /// Cuts what is connected.
  ~TcpGate();
  TcpGate(const TcpGate&) = delete;
  TcpGate& operator=(const TcpGate&) = delete;

  /// Where clients connect, on 127.0.0.1.
  std::uint16_t port() const;

  void cut_all();
  /// New connections are closed at once, or are let in again.
  void refuse_new(bool refuse);
  /// What the server sends is kept, or goes on its way again.
  void hold_replies(bool hold);
  void on_next_commit(CommitFault fault);

  /// How many COMMITs met a fault.
  int commits_struck() const;
  /// How many connections are open.
  int connections() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace semel::testing
