// One address, any number of paths: finds the path's source and hands the request over.
#include <map>
#include <semel/sources/http.hpp>

#include "net/http_server.hpp"
#include "net/problem.hpp"
#include "sources/http/source.hpp"

namespace semel::http {

namespace {

constexpr std::chrono::milliseconds last_answers{2'000};

class ServingListener final : public Listener {
 public:
  explicit ServingListener(Options options) : options_(std::move(options)) {}
  ~ServingListener() override {
    if (server_) server_->stop(last_answers);
  }

  Result<semel::Source*> add(Webhook webhook) override { return add(Route{std::move(webhook)}); }
  Result<semel::Source*> add(Requests requests) override { return add(Route{std::move(requests)}); }
  Result<void> start() override;
  unsigned short port() const override { return server_ ? server_->port() : options_.port; }

 private:
  Result<semel::Source*> add(Route route);
  std::optional<net::Response> refuse(const net::Request& head) const;
  net::ServerOptions server_options() const;

  const Options options_;
  std::map<std::string, std::unique_ptr<PathSource>, std::less<>> sources_;  ///< by path; fixed once serving
  std::unique_ptr<net::Server> server_;
};

Result<semel::Source*> ServingListener::add(Route route) {
  const auto refuse_settings = [](std::string problem) {
    return fix_call(ErrorCode::source_settings_invalid, std::move(problem));
  };
  if (server_) return refuse_settings("a source is added before the listener starts");
  if (auto checked = check_route(route); !checked) return std::move(checked).error();
  for (const auto& [path, source] : sources_) {
    if (path == route.path())
      return refuse_settings("the path \"" + path + "\" belongs to source \"" + source->name() + "\" already");
    if (source->name() == route.name()) return refuse_settings("two sources are named \"" + route.name() + "\"");
  }
  std::string path = route.path();
  auto& place = sources_[std::move(path)];
  place = std::make_unique<PathSource>(std::move(route), options_.queued_max, options_.on_refused);
  return static_cast<semel::Source*>(place.get());
}

std::optional<net::Response> ServingListener::refuse(const net::Request& head) const {
  const auto found = sources_.find(head.path());
  if (found == sources_.end()) return net::problem_response(net::Problem::not_found);
  return refuse_method(found->second->route(), head.method);
}

net::ServerOptions ServingListener::server_options() const {
  net::ServerOptions options{.address = options_.address, .port = options_.port};
  if (options_.tls) options.tls = net::TlsFiles{options_.tls->certificate_file, options_.tls->key_file};
  options.header_bytes_max = options_.header_bytes_max;
  options.body_bytes_max = options_.body_bytes_max;
  options.receive_timeout = options_.receive_timeout;
  options.idle_timeout = options_.idle_timeout;
  options.answer_deadline = options_.answer_deadline;
  options.connections_max = options_.connections_max;
  return options;
}

Result<void> ServingListener::start() {
  if (server_) return fix_call(ErrorCode::source_settings_invalid, "the listener has started already");
  net::Service service;
  service.refuse = [this](const net::Request& head) { return refuse(head); };
  service.serve = [this](net::Request request, net::Responder responder) {
    const auto found = sources_.find(request.path());
    found->second->serve(std::move(request), std::move(responder));
  };
  auto server = net::serve(server_options(), std::move(service));
  if (!server) return std::move(server).error();
  server_ = *std::move(server);
  return {};
}

}  // namespace

Result<std::unique_ptr<Listener>> listen(Options options) {
  if (options.connections_max == 0 || options.queued_max == 0 || options.header_bytes_max == 0)
    return fix_call(ErrorCode::source_settings_invalid, "connections, queue and header need room for at least one");
  if (options.header_bytes_max > net::header_bytes_limit)
    return fix_call(ErrorCode::source_settings_invalid, "a header may have 64 KiB at most");
  return std::unique_ptr<Listener>(std::make_unique<ServingListener>(std::move(options)));
}

}  // namespace semel::http
