// A client that sends what it is told, byte for byte, and reads answers one by one. Tests only.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <semel/delivery.hpp>
#include <string>
#include <string_view>

namespace semel::net {

struct Received {
  int status = 0;
  Attributes headers;
  std::string body;
  std::string header(std::string_view name) const { return std::string(headers.find(name).value_or("")); }
};

/// Blocks; every read gives up after 20 s by failing the test.
class Client {
 public:
  enum class Over { tcp, tls };
  explicit Client(unsigned short port, Over over = Over::tcp, int tls_version_max = TLS1_3_VERSION);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return fd_ >= 0 && (over_ == Over::tcp || ssl_); }
  void send(std::string_view bytes);
  /// Sends no more; still reads.
  void half_close();
  /// Goes away, with a reset.
  void hang_up();
  /// The next answer; status 0 where the connection ended before its head. `head_only` after a HEAD request.
  Received receive(bool head_only = false);
  Received ask(std::string_view bytes) { return send(bytes), receive(); }
  /// All that comes up to and with `end`; without it where the connection ended before.
  std::string receive_until(std::string_view end);
  /// All that comes until the server closes.
  std::string receive_rest();
  /// True once the server has closed and nothing is left to read.
  bool ended();

 private:
  bool fill();

  Over over_;
  int fd_ = -1;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, &SSL_free};
  std::string buffer_;
};

/// A POST with a Host and a Content-Length; `headers` are whole lines.
std::string post(std::string_view target, std::string_view body, std::string_view headers = "");

/// A self-signed certificate and its key, in files that go with it.
class Certificate {
 public:
  Certificate();
  ~Certificate();
  const std::string& certificate_file() const { return certificate_; }
  const std::string& key_file() const { return key_; }

 private:
  std::string folder_;
  std::string certificate_;
  std::string key_;
};

}  // namespace semel::net
