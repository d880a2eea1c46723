#include "performers/http/compose.hpp"

#include <algorithm>
#include <cstdio>

namespace semel::http {

namespace {

Error misused(std::string message) { return fix_call(ErrorCode::handler_misused, std::move(message)); }

const Error& key_of_its_own() {
  static const Error error =
      misused("The request brings an idempotency key of its own; there must be one, and it must be the intent's.");
  return error;
}

/// The node that a pointer's steps but the last lead to, to be changed; null where it is no object.
json::Node* parent_of(json::Node& root, std::string_view pointer, std::string& last) {
  json::Node* node = &root;
  pointer.remove_prefix(1);
  while (true) {
    const auto end = pointer.find('/');
    const std::string token(pointer.substr(0, end));
    if (node->kind != json::Kind::object) return nullptr;
    if (end == pointer.npos) {
      last = token;
      return node;
    }
    const auto child = std::find_if(node->children.begin(), node->children.end(),
                                    [&](const json::Node& one) { return one.name == token; });
    if (child == node->children.end()) return nullptr;
    node = &*child;
    pointer.remove_prefix(end + 1);
  }
}

Result<std::string> with_member(const std::string& body, const std::string& pointer, const std::string& key) {
  auto parsed = json::parse(body);
  if (std::holds_alternative<json::Problem>(parsed) || !pointer.starts_with('/'))
    return misused("The request's body is no JSON, in which the provider takes the idempotency key.");
  json::Node root = *std::get<0>(parsed);
  std::string last;
  json::Node* const parent = parent_of(root, pointer, last);
  if (!parent) return misused("The request's body has no place for the idempotency key at " + pointer + ".");
  for (const auto& child : parent->children)
    if (child.name == last) return key_of_its_own();
  parent->children.push_back({.kind = json::Kind::string, .name = last, .text = key});
  return json::compact(root);
}

Result<std::string> with_field(const std::string& body, const std::string& name, const std::string& key) {
  const Body form(body, "application/x-www-form-urlencoded");
  if (!body.empty() && !form.root()) return misused("The request's body is no form, in which the key is sent.");
  if (form.root())
    for (const auto& field : form.root()->children)
      if (field.name == name) return key_of_its_own();
  return body + (body.empty() ? "" : "&") + url_encode(name) + "=" + url_encode(key);
}

std::string rfc3339(std::chrono::system_clock::time_point time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

std::optional<std::string> value_of(std::string_view name, const Lookup& lookup, const Question& question) {
  const auto unless_empty = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  if (name == "reference") return unless_empty(question.reference);
  if (name == "key") return unless_empty(question.key);
  if (name == "id") return unless_empty(question.id);
  if (name == "to") return rfc3339(question.now);
  if (name == "from") return rfc3339(question.now - lookup.window);
  if (name.starts_with("asked:")) return question.asked.text(name.substr(6));
  return std::nullopt;
}

using Escape = std::string (*)(std::string_view);

/// Braces that are no template of ours stay as they are: bodies are JSON and GraphQL. Nothing where a value is missing.
std::optional<std::string> fill(std::string_view text, const Lookup& lookup, const Question& question, Escape escape) {
  std::string out;
  while (!text.empty()) {
    const auto open = text.find('{');
    out += text.substr(0, open);
    if (open == text.npos) break;
    const auto close = text.find('}', open);
    const auto name = close == text.npos ? std::string_view{} : text.substr(open + 1, close - open - 1);
    constexpr std::string_view names[] = {"reference", "key", "id", "from", "to"};
    const bool ours =
        name.starts_with("asked:/") || std::find(std::begin(names), std::end(names), name) != std::end(names);
    if (!ours) {
      out += '{';
      text.remove_prefix(open + 1);
      continue;
    }
    const auto value = value_of(name, lookup, question);
    if (!value) return std::nullopt;
    out += escape(*value);
    text.remove_prefix(close + 1);
  }
  return out;
}

std::string json_escape(std::string_view text) {
  std::string quoted;
  json::append_string(quoted, text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string origin_of(std::string_view url) {
  const auto authority = url.find("://");
  if (authority == url.npos) return {};
  return std::string(url.substr(0, url.find_first_of("/?#", authority + 3)));
}

Result<std::string> fill_url(const Lookup& lookup, const Question& question) {
  const auto mark = lookup.url.find('?');
  auto url = fill(std::string_view(lookup.url).substr(0, mark), lookup, question, url_encode);
  if (!url) return misused("The lookup's address needs what the intent does not have (a reference, or an id).");
  if (url->starts_with('/')) *url = origin_of(question.request.url) + *url;
  if (mark == std::string::npos) return *url;
  std::string_view query = std::string_view(lookup.url).substr(mark + 1);
  char separator = '?';
  while (!query.empty()) {
    const auto end = query.find('&');
    if (const auto part = fill(query.substr(0, end), lookup, question, url_encode)) {
      *url += separator + *part;
      separator = '&';
    }
    query.remove_prefix(end == query.npos ? query.size() : end + 1);
  }
  return *url;
}

}  // namespace

Result<net::Outgoing> compose_call(const StoredRequest& request, const KeyCarrier& carrier, const std::string& key) {
  net::Outgoing outgoing{
      .method = request.method, .url = request.url, .headers = request.headers, .body = request.body};
  if (carrier.in == KeyCarrier::In::none) return outgoing;
  if (key.empty() || key.size() > carrier.size_max)
    return misused("The idempotency key is empty, or longer than the " + std::to_string(carrier.size_max) +
                   " bytes that the provider takes.");
  if (carrier.in == KeyCarrier::In::header) {
    if (outgoing.headers.count(carrier.name) > 0) return key_of_its_own();
    outgoing.headers.add(carrier.name, key);
    return outgoing;
  }
  const bool in_json = carrier.in == KeyCarrier::In::json_member;
  auto body = in_json ? with_member(request.body, carrier.name, key) : with_field(request.body, carrier.name, key);
  if (!body) return std::move(body).error();
  outgoing.body = *std::move(body);
  return outgoing;
}

void add_headers(Attributes& headers, const Attributes& more) {
  Attributes all;
  for (const auto& [name, value] : headers.entries())
    if (more.count(name) == 0) all.add(name, value);
  for (const auto& [name, value] : more.entries()) all.add(name, value);
  headers = std::move(all);
}

Result<net::Outgoing> compose_lookup(const Lookup& lookup, const Question& question) {
  auto url = fill_url(lookup, question);
  if (!url) return std::move(url).error();
  auto body = fill(lookup.body, lookup, question, json_escape);
  if (!body) return misused("The lookup's body needs what the intent does not have.");
  net::Outgoing outgoing{.method = lookup.method, .url = *std::move(url), .body = *std::move(body)};
  // As the call itself chose the version of the API, or the merchant's account.
  for (const auto& [name, value] : question.request.headers.entries())
    if (Attributes{{name, ""}}.count("Content-Type") == 0) outgoing.headers.add(name, value);
  if (!outgoing.body.empty()) outgoing.headers.add("Content-Type", "application/json");
  return outgoing;
}

std::string with_query(const std::string& url, std::string_view name, std::string_view value) {
  return url + (url.find('?') == std::string::npos ? "?" : "&") + std::string(name) + "=" + url_encode(value);
}

}  // namespace semel::http
