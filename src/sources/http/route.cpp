#include "sources/http/route.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/digest.hpp"
#include "base/encoding.hpp"
#include "base/utf8.hpp"
#include "net/credentials.hpp"
#include "net/passed_head.hpp"
#include "net/problem.hpp"
#include "sources/http/idempotency_key.hpp"
#include "sources/http/path_pattern.hpp"
#include "sources/http/signature.hpp"

namespace semel::http {

namespace {

constexpr std::array<std::string_view, 4> request_methods{"POST", "PUT", "PATCH", "DELETE"};
constexpr std::array<std::string_view, 1> webhook_methods{"POST"};
constexpr std::string_view key_header = "Idempotency-Key";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

/// Without credentials: a delivery may be set aside in the store.
Attributes attributes_of(const net::Request& request, const Credentials& credentials, const std::string* key) {
  Attributes attributes{{":method", request.method}, {":path", net::without_credentials(request.target)}};
  for (const auto& [name, value] : request.headers.entries()) {
    if (net::holds_credentials(name, credentials)) continue;
    if (key && same_name(name, key_header))
      attributes.add("idempotency-key", *key);
    else
      attributes.add(name, value);
  }
  return attributes;
}

Result<std::string> principal_header(const Attributes& headers, std::string_view name) {
  const auto value = headers.find(name);
  if (!value || value->empty())
    return fix_call(ErrorCode::principal_missing, "there is no " + std::string(name) + " header, which is needed here");
  if (headers.count(name) > 1)
    return fix_call(ErrorCode::principal_missing, "there is more than one " + std::string(name) + " header");
  return std::string(*value);
}

Result<std::string> principal_of(const Principal& principal, const Attributes& headers) {
  if (principal.from == Principal::From::none) return std::string();
  if (principal.from == Principal::From::header) return principal_header(headers, principal.header);
  auto credential = principal_header(headers, "Authorization");
  if (!credential) return credential;
  return hex_encode(sha256(*credential));
}

/// Of a webhook or a request.
template <class Kind>
Delivery delivery_of(const Kind& kind, Sender sender, net::Request request, const std::string* key) {
  Delivery delivery{.receipt = Receipt(0), .source = kind.name, .sender = sender};
  delivery.attributes = attributes_of(request, kind.credentials, key);
  delivery.body = std::move(request.body);
  return delivery;
}

Result<Delivery> admit_to(const Webhook& webhook, net::Request request, std::chrono::system_clock::time_point now) {
  if (auto verified = verify(webhook.verify, request.headers, request.body, now); !verified)
    return std::move(verified).error();
  std::string id = delivery_id(webhook.verify.scheme, request.headers);
  auto delivery = delivery_of(webhook, Sender::message, std::move(request), nullptr);
  delivery.transport_id = std::move(id);
  delivery.sender_verified = webhook.verify.scheme != Verification::Scheme::none;
  return delivery;
}

Result<Delivery> admit_to(const Requests& requests, net::Request request, std::chrono::system_clock::time_point) {
  auto principal = principal_of(requests.principal, request.headers);
  if (!principal) return std::move(principal).error();
  const auto key = idempotency_key(request.headers);
  if (!key) return key.error();
  auto delivery = delivery_of(requests, Sender::caller, std::move(request), &*key);
  delivery.principal = *std::move(principal);
  return delivery;
}

/// It is stored as an operator reads it: as text. Credentials are not stored.
Result<void> check_text(const GuardedRoute& route, const net::Request& request) {
  const auto refuse = [](const std::string& what) {
    return fix_call(ErrorCode::malformed_body, what + " is not UTF-8, as a guarded request must be but for its body");
  };
  if (!is_valid_utf8(request.target)) return refuse("the target");
  for (const auto& [name, value] : request.headers.entries())
    if (!net::holds_credentials(name, route.credentials) && !is_valid_utf8(value)) return refuse("the header " + name);
  return {};
}

Result<Delivery> admit_to(const Guarded& guarded, net::Request request, std::chrono::system_clock::time_point) {
  const auto& route = guarded.route;
  auto principal = principal_of(route.principal, request.headers);
  if (!principal) return std::move(principal).error();
  const auto key = idempotency_key(request.headers);
  if (!key) return key.error();
  if (key->size() > route.key_size_max) {
    return fix_call(
        ErrorCode::idempotency_key_invalid,
        "Idempotency-Key is longer than the " + std::to_string(route.key_size_max) + " bytes that the service takes");
  }
  if (auto checked = check_text(route, request); !checked) return std::move(checked).error();
  Delivery delivery{.receipt = Receipt(0), .source = route.name, .sender = Sender::caller};
  delivery.attributes = {{":method", request.method}, {":path", request.target}};
  const auto passed = net::end_to_end(request, guarded.upstream);
  for (const auto& [name, value] : passed.entries()) {
    if (net::holds_credentials(name, route.credentials))
      delivery.credentials.add(name, value);
    else
      delivery.attributes.add(name, same_name(name, key_header) ? *key : value);
  }
  delivery.body = std::move(request.body);
  delivery.principal = *std::move(principal);
  return delivery;
}

std::optional<std::string> problem_with(const GuardedRoute& route) {
  if (route.methods.empty()) return "it guards no method";
  for (const auto& method : route.methods)
    if (std::ranges::find(request_methods, method) == request_methods.end())
      return "the method \"" + method + "\" cannot be guarded; POST, PUT, PATCH and DELETE can";
  if (route.principal.from == Principal::From::header && route.principal.header.empty())
    return "the principal's header has no name";
  if (auto pattern = PathPattern::parse(route.path); !pattern) return std::move(pattern).error().message;
  return std::nullopt;
}

std::span<const std::string_view> methods_of(const Route& route) {
  if (std::holds_alternative<Webhook>(route.kind)) return webhook_methods;
  return request_methods;
}

}  // namespace

const std::string& Route::name() const {
  if (const auto* guarded = std::get_if<Guarded>(&kind)) return guarded->route.name;
  const auto* webhook = std::get_if<Webhook>(&kind);
  return webhook ? webhook->name : std::get<Requests>(kind).name;
}

const std::string& Route::path() const {
  if (const auto* guarded = std::get_if<Guarded>(&kind)) return guarded->route.path;
  const auto* webhook = std::get_if<Webhook>(&kind);
  return webhook ? webhook->path : std::get<Requests>(kind).path;
}

Result<void> check_route(const Route& route) {
  const auto refuse = [&](const std::string& problem) {
    return fix_call(ErrorCode::source_settings_invalid, "source \"" + route.name() + "\": " + problem);
  };
  if (route.name().empty()) return refuse("a source needs a name");
  if (const auto* guarded = std::get_if<Guarded>(&route.kind)) {
    if (auto problem = problem_with(guarded->route)) return refuse(*problem);
    return {};
  }
  if (!route.path().starts_with('/')) return refuse("the path \"" + route.path() + "\" does not begin with /");
  if (route.path().find_first_of("?# \t\r\n") != std::string::npos)
    return refuse("the path \"" + route.path() + "\" holds a space, ? or #");
  if (const auto* webhook = std::get_if<Webhook>(&route.kind))
    if (const auto checked = check_verification(webhook->verify); !checked) return refuse(checked.error().message);
  if (const auto* requests = std::get_if<Requests>(&route.kind))
    if (requests->principal.from == Principal::From::header && requests->principal.header.empty())
      return refuse("the principal's header has no name");
  return {};
}

std::optional<net::Response> refuse_method(const Route& route, const std::string& method) {
  const auto methods = methods_of(route);
  if (std::ranges::find(methods, method) != methods.end()) return std::nullopt;
  auto refusal = net::problem_response(net::Problem::method_not_allowed);
  std::string allowed;
  for (const auto one : methods) allowed.append(allowed.empty() ? "" : ", ").append(one);
  refusal.headers.add("Allow", allowed);
  return refusal;
}

Result<Delivery> admit(const Route& route, net::Request request, std::chrono::system_clock::time_point now) {
  return std::visit([&](const auto& one) { return admit_to(one, std::move(request), now); }, route.kind);
}

}  // namespace semel::http
