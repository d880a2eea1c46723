// A server that does with each connection what a test tells it, byte by byte. Tests only.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace semel::net {

/// One accepted connection. Closed when it goes.
class RawConnection {
 public:
  RawConnection(int fd, int number, std::shared_future<void> test_over)
      : fd_(fd), number_(number), test_over_(std::move(test_over)) {}
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  int number() const { return number_; }  ///< counted from 1
  /// A whole request with its body by Content-Length; empty where the client has closed.
  std::string read_request();
  void send(std::string_view bytes);
  void reset();
  /// Says nothing until the test is over.
  void hang() { test_over_.wait(); }

 private:
  int fd_;
  const int number_;
  const std::shared_future<void> test_over_;
  std::string buffer_{};
};

class RawServer {
 public:
  using Script = std::function<void(RawConnection&)>;
  explicit RawServer(Script script);
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  unsigned short port() const { return port_; }
  std::string url(std::string_view target = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string(target);
  }

 private:
  void accept_all();

  const Script script_;
  int fd_ = -1;
  unsigned short port_ = 0;
  std::promise<void> over_;
  const std::shared_future<void> test_over_{over_.get_future()};
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> connections_;
  std::thread accepting_;
};

/// "HTTP/1.1 <status> <reason>", the headers (whole lines), a Content-Length and the body.
std::string raw_answer(int status, std::string_view body = "", std::string_view headers = "");

/// A port of this machine on which nobody listens.
unsigned short closed_port();

}  // namespace semel::net
