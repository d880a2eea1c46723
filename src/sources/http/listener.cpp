// One address, any number of paths: finds the path's source and hands the request over. What no source takes is a
// gateway's, where there is one.
#include <algorithm>
#include <map>
#include <semel/sources/http.hpp>
#include <set>

#include "net/http_server.hpp"
#include "net/problem.hpp"
#include "sources/http/gateway.hpp"
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
  Result<std::vector<semel::Source*>> add(Gateway gateway) override;
  Result<void> start() override;
  unsigned short port() const override { return server_ ? server_->port() : options_.port; }

 private:
  Result<semel::Source*> add(Route route);
  bool has_source(std::string_view name) const;
  PathSource* source_of(const net::Request& head) const;
  std::optional<std::size_t> forward(const net::RequestHead& head) const;
  std::optional<net::Response> refuse(const net::Request& head) const;
  net::ServerOptions server_options() const;

  const Options options_;
  std::map<std::string, std::unique_ptr<PathSource>, std::less<>> sources_;  ///< by path; fixed once serving
  std::optional<GatewayRoutes> gateway_;
  std::unique_ptr<net::Server> server_;
};

Error refuse_settings(std::string problem) { return fix_call(ErrorCode::source_settings_invalid, std::move(problem)); }

Result<semel::Source*> ServingListener::add(Route route) {
  if (server_) return refuse_settings("a source is added before the listener starts");
  if (auto checked = check_route(route); !checked) return std::move(checked).error();
  for (const auto& [path, source] : sources_)
    if (path == route.path())
      return refuse_settings("the path \"" + path + "\" belongs to source \"" + source->name() + "\" already");
  if (has_source(route.name())) return refuse_settings("two sources are named \"" + route.name() + "\"");
  std::string path = route.path();
  auto& place = sources_[std::move(path)];
  place = std::make_unique<PathSource>(std::move(route), options_.queued_max, options_.on_refused);
  return static_cast<semel::Source*>(place.get());
}

bool ServingListener::has_source(std::string_view name) const {
  const auto is_it = [&](const auto& source) { return source->name() == name; };
  return std::ranges::any_of(sources_, [&](const auto& entry) { return is_it(entry.second); }) ||
         (gateway_ && std::ranges::any_of(gateway_->sources(), is_it));
}

Result<std::vector<semel::Source*>> ServingListener::add(Gateway gateway) {
  const auto refuse_it = [&](const std::string& problem) {
    return refuse_settings("gateway \"" + gateway.name + "\": " + problem);
  };
  if (server_) return refuse_it("a gateway is added before the listener starts");
  if (gateway_) return refuse_it("the listener has a gateway already");
  auto upstream = upstream_options(gateway.upstream);
  if (!upstream) return refuse_it(upstream.error().message);
  std::set<std::string_view> names;
  for (const auto& route : gateway.routes) {
    if (auto checked = check_route(Route{Guarded{route, *upstream}}); !checked) return std::move(checked).error();
    if (has_source(route.name) || !names.insert(route.name).second)
      return refuse_it("two sources are named \"" + route.name + "\"");
  }
  gateway_.emplace(*std::move(upstream));
  std::vector<semel::Source*> sources;
  for (auto& route : gateway.routes)
    sources.push_back(gateway_->add(std::move(route), options_.queued_max, options_.on_refused));
  return sources;
}

/// Null where nothing here takes it.
PathSource* ServingListener::source_of(const net::Request& head) const {
  if (const auto found = sources_.find(head.path()); found != sources_.end()) return found->second.get();
  // What is not guarded was passed through before.
  return gateway_ ? gateway_->guard_of(head.method, head.path(), true) : nullptr;
}

std::optional<std::size_t> ServingListener::forward(const net::RequestHead& head) const {
  const auto target = head.target();
  const auto path = target.substr(0, target.find('?'));
  if (sources_.find(path) != sources_.end()) return std::nullopt;
  const bool has_key = head.find("Idempotency-Key").has_value();
  return gateway_->guard_of(head.method(), path, has_key) ? std::nullopt : std::optional<std::size_t>(0);
}

std::optional<net::Response> ServingListener::refuse(const net::Request& head) const {
  const auto* source = source_of(head);
  if (!source) return net::problem_response(net::Problem::not_found);
  if (std::holds_alternative<Guarded>(source->route().kind)) return std::nullopt;
  return refuse_method(source->route(), head.method);
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
    auto* source = source_of(request);
    source->serve(std::move(request), std::move(responder));
  };
  if (options_.on_problem)
    service.observe = [this](const net::Response& answer) { options_.on_problem(answer.status, answer.problem); };
  if (gateway_) {
    service.upstreams = {gateway_->upstream()};
    service.forward = [this](const net::RequestHead& head) { return forward(head); };
  }
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
