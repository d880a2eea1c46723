// A request, its answer, and the hand that gives it.
#pragma once

#include <memory>
#include <optional>
#include <semel/delivery.hpp>
#include <string>
#include <string_view>

namespace semel::net {

struct Request {
  std::string method;
  std::string target;  ///< as received, with the query
  Attributes headers;
  std::string body;
  std::string peer{};  ///< the client's address, without port
  bool over_tls = false;
  unsigned version = 11;  ///< of HTTP/1.1

  /// The target without its query.
  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
};

/// A request's head before anything is copied out of it. Valid during a call.
class RequestHead {
 public:
  virtual ~RequestHead() = default;
  virtual std::string_view method() const = 0;
  virtual std::string_view target() const = 0;
  /// The first value under `name`.
  virtual std::optional<std::string_view> find(std::string_view name) const = 0;
};

struct Response {
  int status = 200;
  /// Those that frame the message (Content-Length, Connection, …) are the server's own, and left out here.
  Attributes headers{};
  std::string body{};
  bool close = false;  ///< the connection ends after this answer
  /// The name of the problem that it tells, from the table of problems; empty where it tells none.
  std::string_view problem{};
};

/// Where an answer goes. Called at most once, from any thread.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void answer(Response response) = 0;
  /// There will be none: the connection ends.
  virtual void abandon() = 0;
};

/// The right to answer one request, once: from any thread, now or later, whether the client is still there or not.
/// Destroyed unused it ends the connection.
class Responder {
 public:
  explicit Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  Responder(Responder&&) noexcept = default;
  Responder& operator=(Responder&& other) noexcept;
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  ~Responder();

  void answer(Response response) &&;

 private:
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace semel::net
