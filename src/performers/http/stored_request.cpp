// The form in which a request is kept with its intent: JSON, so that an operator can read it.
#include <semel/performers/http.hpp>

#include "base/encoding.hpp"
#include "base/json.hpp"
#include "base/utf8.hpp"
#include "net/credentials.hpp"
#include "net/http_client.hpp"

namespace semel::http {

namespace {

void append_member(std::string& out, std::string_view name, std::string_view text) {
  if (out.size() > 1) out += ',';
  json::append_string(out, name);
  out += ':';
  json::append_string(out, text);
}

Error unreadable(std::string_view what) {
  return fix_call(ErrorCode::malformed_body, "The stored request cannot be read: " + std::string(what) + ".");
}

const json::Node* member(const json::Node& object, std::string_view name) {
  for (const auto& child : object.children)
    if (child.name == name) return &child;
  return nullptr;
}

/// False where it is there and no string.
bool take_text(const json::Node& root, std::string_view name, std::string& into) {
  const auto* node = member(root, name);
  if (!node) return true;
  if (node->kind != json::Kind::string) return false;
  into = node->text;
  return true;
}

bool take_headers(const json::Node& node, Attributes& into) {
  const bool is_object = node.kind == json::Kind::object;
  if (!is_object && node.kind != json::Kind::array) return false;
  for (const auto& one : node.children) {
    const bool is_pair = one.kind == json::Kind::array && one.children.size() == 2 &&
                         one.children[0].kind == json::Kind::string && one.children[1].kind == json::Kind::string;
    if (is_object && one.kind == json::Kind::string)
      into.add(one.name, one.text);
    else if (!is_object && is_pair)
      into.add(one.children[0].text, one.children[1].text);
    else
      return false;
  }
  return true;
}

}  // namespace

Result<std::string> encode_request(const StoredRequest& request) {
  const net::Outgoing outgoing{.method = request.method, .url = request.url, .headers = request.headers};
  std::string problem = net::outgoing_problem(outgoing);
  for (const auto& [name, value] : request.headers.entries())
    if (net::holds_credentials(name))
      problem = "the header " + name + " is a credential, which is not stored with an intent";
  const bool is_text = is_valid_utf8(request.body);
  if (!is_valid_utf8(request.url)) problem = "the URL is not UTF-8";
  for (const auto& [name, value] : request.headers.entries())
    if (!is_valid_utf8(value)) problem = "the header " + name + " is not UTF-8";
  if (!problem.empty())
    return fix_call(ErrorCode::handler_misused, "A request that cannot be stored: " + problem + ".");
  std::string out = "{";
  append_member(out, "method", request.method);
  append_member(out, "url", request.url);
  out += ",\"headers\":[";
  for (const auto& [name, value] : request.headers.entries()) {
    if (out.back() != '[') out += ',';
    out += '[';
    json::append_string(out, name);
    out += ',';
    json::append_string(out, value);
    out += ']';
  }
  out += ']';
  append_member(out, is_text ? "body" : "body_base64", is_text ? request.body : base64_encode(request.body));
  return out + "}";
}

Result<StoredRequest> decode_request(std::string_view stored) {
  auto parsed = json::parse(stored);
  if (const auto* problem = std::get_if<json::Problem>(&parsed)) return unreadable(problem->message);
  const auto& root = *std::get<0>(parsed);
  if (root.kind != json::Kind::object) return unreadable("it is no JSON object");
  StoredRequest request;
  if (!take_text(root, "method", request.method)) return unreadable("the method is no text");
  if (!take_text(root, "url", request.url) || request.url.empty()) return unreadable("it has no URL");
  if (!take_text(root, "body", request.body)) return unreadable("the body is no text");
  if (const auto* encoded = member(root, "body_base64")) {
    auto bytes = base64_decode(encoded->text);
    if (encoded->kind != json::Kind::string || !bytes) return unreadable("body_base64 is not base64");
    if (member(root, "body")) return unreadable("it has two bodies");
    request.body = *std::move(bytes);
  }
  if (const auto* headers = member(root, "headers"); headers && !take_headers(*headers, request.headers))
    return unreadable("the headers are neither an object of texts nor a list of pairs");
  return request;
}

}  // namespace semel::http
