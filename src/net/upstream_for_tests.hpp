// A service behind a proxy that says what it is told, byte for byte. Tests only.
#pragma once

#include <string>
#include <string_view>

namespace semel::net {

/// One accepted connection. Every read gives up after 20 s by failing the test.
class RawConnection {
 public:
  explicit RawConnection(int fd) : fd_(fd) {}
  RawConnection(RawConnection&& other) noexcept;
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection();

  /// All up to and with `end`; what came before the connection ended where that is sooner.
  std::string receive_until(std::string_view end);
  /// The next `count` bytes.
  std::string receive(std::size_t count);
  void send(std::string_view bytes);
  void close();
  /// True once the other side has closed and nothing is left to read.
  bool ended();

 private:
  bool fill();

  int fd_;
  std::string buffer_;
};

/// Listens on a free port of the loopback.
class RawUpstream {
 public:
  RawUpstream();
  ~RawUpstream();
  RawUpstream(const RawUpstream&) = delete;
  RawUpstream& operator=(const RawUpstream&) = delete;

  unsigned short port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  RawConnection accept();
  /// Whether somebody waits to be accepted.
  bool has_caller() const;
  void stop_listening();

 private:
  int fd_;
  unsigned short port_;
};

}  // namespace semel::net
