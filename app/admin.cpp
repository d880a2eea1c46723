#include "admin.hpp"

#include "net/http_server.hpp"

namespace semel::app {
namespace {

constexpr std::chrono::seconds between_questions(2);

net::Response text_response(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}, {"Cache-Control", "no-store"}},
          .body = std::move(body)};
}

net::Response respond(const net::Request& request, Metrics& metrics, Backlog& backlog, const Readiness& readiness,
                      const Redactor& redactor) {
  if (request.method != "GET" && request.method != "HEAD") return text_response(405, "GET only\n");
  const auto path = request.path();
  if (path == "/healthz") return text_response(200, "alive\n");
  if (path == "/metrics") {
    metrics.backlog(backlog.counts());
    return text_response(200, metrics.text());
  }
  if (path != "/readyz") return text_response(404, "there are /healthz, /readyz and /metrics\n");
  const auto obstacle = readiness.obstacle();
  return obstacle ? text_response(503, redactor.clean(*obstacle) + "\n") : text_response(200, "ready\n");
}

}  // namespace

Readiness::Readiness(Store& store) : store_(store), thread_([this] { watch(); }) {}

Readiness::~Readiness() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<std::string> Readiness::obstacle() const {
  if (!running_) return "starting";
  const std::lock_guard lock(mutex_);
  if (asked_at_ && std::chrono::steady_clock::now() - *asked_at_ > answer_max) return "the store does not answer";
  return obstacle_;
}

std::optional<std::string> Readiness::ask() const {
  const auto findings = store_.check();
  if (!findings) return "the store is away: " + findings.error().message;
  for (const auto& finding : *findings) {
    if (finding.severity == Finding::Severity::refuse) return finding.message;
  }
  return std::nullopt;
}

void Readiness::watch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    asked_at_ = std::chrono::steady_clock::now();
    lock.unlock();
    auto obstacle = ask();
    lock.lock();
    asked_at_.reset();
    obstacle_ = std::move(obstacle);
    changed_.wait_for(lock, between_questions, [this] { return stopping_ || asked_for_; });
    asked_for_ = false;
  }
}

void Readiness::ask_now() {
  {
    const std::lock_guard lock(mutex_);
    asked_for_ = true;
  }
  changed_.notify_all();
}

Result<std::unique_ptr<net::Server>> serve_admin(const AdminConfig& config, Metrics& metrics, Backlog& backlog,
                                                 const Readiness& readiness, const Redactor& redactor) {
  net::ServerOptions options;
  options.address = config.address;
  options.port = config.port;
  options.connections_max = 64;
  net::Service service;
  service.serve = [&metrics, &backlog, &readiness, &redactor](net::Request request, net::Responder responder) {
    std::move(responder).answer(respond(request, metrics, backlog, readiness, redactor));
  };
  return net::serve(std::move(options), std::move(service));
}

}  // namespace semel::app
