#include "net/raw_server_for_tests.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace semel::net {

namespace {

int listening_socket(unsigned short& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) std::abort();
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  port = ntohs(address.sin_port);
  return fd;
}

std::size_t content_length(std::string_view head) {
  constexpr std::string_view name = "\r\nContent-Length:";
  for (std::size_t at = 0; at + name.size() < head.size(); ++at)
    if (strncasecmp(head.data() + at, name.data(), name.size()) == 0)
      return std::strtoul(std::string(head.substr(at + name.size(), 20)).c_str(), nullptr, 10);
  return 0;
}

}  // namespace

RawConnection::~RawConnection() {
  if (fd_ >= 0) close(fd_);
}

std::string RawConnection::read_request() {
  std::size_t wanted = std::string::npos;
  while (buffer_.size() < wanted) {
    const auto end = buffer_.find("\r\n\r\n");
    if (end != std::string::npos) wanted = end + 4 + content_length(std::string_view(buffer_).substr(0, end));
    if (buffer_.size() >= wanted) break;
    char bytes[16'384];
    const auto count = recv(fd_, bytes, sizeof bytes, 0);
    if (count <= 0) return {};
    buffer_.append(bytes, static_cast<std::size_t>(count));
  }
  std::string request = buffer_.substr(0, wanted);
  buffer_.erase(0, wanted);
  return request;
}

void RawConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void RawConnection::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd_);
  fd_ = -1;
}

RawServer::RawServer(Script script) : script_(std::move(script)) {
  fd_ = listening_socket(port_);
  listen(fd_, 64);
  accepting_ = std::thread([this] { accept_all(); });
}

RawServer::~RawServer() {
  stopping_ = true;
  over_.set_value();
  shutdown(fd_, SHUT_RDWR);
  accepting_.join();
  for (auto& one : connections_) one.join();
  close(fd_);
}

void RawServer::accept_all() {
  for (int number = 1; !stopping_; ++number) {
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    connections_.emplace_back([this, fd, number] {
      RawConnection connection(fd, number, test_over_);
      script_(connection);
    });
  }
}

std::string raw_answer(int status, std::string_view body, std::string_view headers) {
  return "HTTP/1.1 " + std::to_string(status) + " Such\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

unsigned short closed_port() {
  unsigned short port = 0;
  close(listening_socket(port));  // bound, never listening, now free
  return port;
}

}  // namespace semel::net
