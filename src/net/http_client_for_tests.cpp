#include "net/http_client_for_tests.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace semel::net {

Client::Client(unsigned short port, Over over, int tls_version_max) : over_(over) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    close(fd_);
    fd_ = -1;
  }
  if (over == Over::tcp || fd_ < 0) return;
  context_.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_security_level(context_.get(), 0);
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(context_.get(), tls_version_max);
  ssl_.reset(SSL_new(context_.get()));
  SSL_set_fd(ssl_.get(), fd_);
  if (SSL_connect(ssl_.get()) != 1) ssl_.reset();
}

Client::~Client() {
  if (fd_ >= 0) close(fd_);
}

void Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ssl_ ? SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()))
                           : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void Client::half_close() { shutdown(fd_, SHUT_WR); }

void Client::hang_up() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd_);
  fd_ = -1;
}

bool Client::fill() {
  char bytes[16'384];
  const auto count = ssl_ ? SSL_read(ssl_.get(), bytes, sizeof bytes) : recv(fd_, bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) ADD_FAILURE() << "waited 20 s for the server in vain";
  if (count <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(count));
  return true;
}

bool Client::ended() { return buffer_.empty() && !fill(); }

std::string Client::receive_until(std::string_view end) {
  std::size_t at;
  while ((at = buffer_.find(end)) == std::string::npos)
    if (!fill()) return std::exchange(buffer_, {});
  std::string text = buffer_.substr(0, at + end.size());
  buffer_.erase(0, text.size());
  return text;
}

std::string Client::receive_rest() {
  while (fill()) {
  }
  return std::exchange(buffer_, {});
}

Received Client::receive(bool head_only) {
  std::size_t head_end;
  while ((head_end = buffer_.find("\r\n\r\n")) == std::string::npos)
    if (!fill()) return {};
  Received answer;
  answer.status = std::atoi(buffer_.c_str() + std::string_view("HTTP/1.1 ").size());
  std::size_t line = buffer_.find("\r\n") + 2;
  while (line < head_end + 2) {
    const auto end = buffer_.find("\r\n", line);
    const auto colon = buffer_.find(": ", line);
    answer.headers.add(buffer_.substr(line, colon - line), buffer_.substr(colon + 2, end - colon - 2));
    line = end + 2;
  }
  buffer_.erase(0, head_end + 4);
  const auto length = head_only ? 0 : std::strtoul(answer.header("content-length").c_str(), nullptr, 10);
  while (buffer_.size() < length)
    if (!fill()) return {};
  answer.body = buffer_.substr(0, length);
  buffer_.erase(0, length);
  return answer;
}

std::string post(std::string_view target, std::string_view body, std::string_view headers) {
  return "POST " + std::string(target) + " HTTP/1.1\r\nHost: semel\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

Certificate::Certificate() {
  std::string pattern = std::filesystem::temp_directory_path() / "semel-tls-XXXXXX";
  folder_ = mkdtemp(pattern.data());
  certificate_ = folder_ + "/certificate.pem";
  key_ = folder_ + "/key.pem";
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3'600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3'600);
  X509_set_pubkey(certificate, key);
  X509_NAME* const name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_sign(certificate, key, EVP_sha256());
  std::FILE* file = std::fopen(certificate_.c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
  file = std::fopen(key_.c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

Certificate::~Certificate() { std::filesystem::remove_all(folder_); }

}  // namespace semel::net
