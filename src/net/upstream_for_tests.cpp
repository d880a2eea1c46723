#include "net/upstream_for_tests.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <utility>

namespace semel::net {

RawConnection::RawConnection(RawConnection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}

RawConnection::~RawConnection() { close(); }

void RawConnection::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool RawConnection::fill() {
  char bytes[16'384];
  const auto count = recv(fd_, bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) ADD_FAILURE() << "waited 20 s for the proxy in vain";
  if (count <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(count));
  return true;
}

std::string RawConnection::receive_until(std::string_view end) {
  std::size_t at;
  while ((at = buffer_.find(end)) == std::string::npos)
    if (!fill()) return std::exchange(buffer_, {});
  std::string text = buffer_.substr(0, at + end.size());
  buffer_.erase(0, text.size());
  return text;
}

std::string RawConnection::receive(std::size_t count) {
  while (buffer_.size() < count && fill()) {
  }
  std::string text = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return text;
}

void RawConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool RawConnection::ended() { return buffer_.empty() && !fill(); }

RawUpstream::RawUpstream() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(fd_, reinterpret_cast<sockaddr*>(&address), size);
  listen(fd_, 64);
  getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

RawUpstream::~RawUpstream() { stop_listening(); }

void RawUpstream::stop_listening() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

RawConnection RawUpstream::accept() {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) ADD_FAILURE() << "nobody called within 20 s";
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return RawConnection(fd);
}

bool RawUpstream::has_caller() const {
  pollfd one{.fd = fd_, .events = POLLIN, .revents = 0};
  return poll(&one, 1, 0) > 0;
}

}  // namespace semel::net
