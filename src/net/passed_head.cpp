#include "net/passed_head.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <random>

#include "net/credentials.hpp"
#include "net/http_head.hpp"

namespace semel::net {

namespace http = boost::beast::http;

namespace {

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

bool begins(std::string_view name, std::string_view prefix) {
  return name.size() >= prefix.size() && same(name.substr(0, prefix.size()), prefix);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Calls `use` with each item of a comma-separated list.
template <class Use>
void for_each_item(std::string_view list, const Use& use) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (const auto item = trimmed(list.substr(0, comma)); !item.empty()) use(item);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

/// close and keep-alive name no field.
bool names_a_field(std::string_view connection) {
  bool found = false;
  for_each_item(connection, [&](std::string_view item) { found |= !same(item, "close") && !same(item, "keep-alive"); });
  return found;
}

bool is_named(std::string_view name, std::string_view connection) {
  bool found = false;
  for_each_item(connection, [&](std::string_view item) { found |= same(item, name); });
  return found;
}

constexpr std::array<std::string_view, 7> for_one_connection{
    "connection", "keep-alive", "te", "trailer", "trailers", "upgrade", "transfer-encoding"};

bool is_forwarded(std::string_view name) {
  return same(name, "forwarded") || same(name, "x-forwarded-for") || same(name, "x-forwarded-proto") ||
         same(name, "x-forwarded-host");
}

bool is_one_connections(http::field field, std::string_view name) {
  switch (field) {
    case http::field::connection:
    case http::field::keep_alive:
    case http::field::te:
    case http::field::trailer:
    case http::field::upgrade:
    case http::field::transfer_encoding:
      return true;
    default:
      return begins(name, "proxy-");
  }
}

template <class Header>
std::string connection_names_of(const Header& head) {
  std::string names;
  const auto [first, last] = head.equal_range(http::field::connection);
  for (auto field = first; field != last; ++field)
    if (const auto value = view(field->value()); names_a_field(value)) names.append(value).append(",");
  return names;
}

void add(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void add_number(std::string& out, std::string_view name, std::uint64_t value) {
  std::array<char, 24> digits{};
  auto* end = digits.data() + digits.size();
  auto* first = end;
  do {
    *--first = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  add(out, name, {first, static_cast<std::size_t>(end - first)});
}

void add_framing(std::string& out, const Framing& framing) {
  if (framing.kind == Framing::Kind::length) add_number(out, "Content-Length", framing.length);
  if (framing.kind == Framing::Kind::chunked) add(out, "Transfer-Encoding", "chunked");
}

/// What a request's fields say that the proxy's own must take up.
struct Seen {
  std::string_view host;
  std::string forwarded_for;  ///< all of them, in their order
  bool forwarded_proto = false;
  bool forwarded_host = false;
  bool traceparent = false;
};

/// True where the field is not passed on as it stands.
bool take_up(Seen& seen, http::field field, std::string_view name, std::string_view value, bool trust_forwarded) {
  switch (field) {
    case http::field::host:
      seen.host = value;
      return true;
    case http::field::content_length:
      return true;
    case http::field::forwarded:
      return !trust_forwarded;
    case http::field::unknown:
      break;
    default:
      return false;
  }
  if (name.size() == 11 && same(name, "traceparent")) seen.traceparent = true;
  if (!begins(name, "x-forwarded-") || !is_forwarded(name)) return false;
  if (!trust_forwarded) return true;
  if (same(name, "x-forwarded-proto")) seen.forwarded_proto = true;
  if (same(name, "x-forwarded-host")) seen.forwarded_host = true;
  if (!same(name, "x-forwarded-for")) return false;
  seen.forwarded_for.append(value).append(", ");
  return true;
}

/// "1.1".
std::string version_text(unsigned version) { return std::to_string(version / 10) + "." + std::to_string(version % 10); }

/// Calls `put` with name and value of all that a proxy adds.
template <class Put>
void add_ours(const Seen& seen, const UpstreamOptions& upstream, const Asking& asking, const Put& put) {
  put("Via", version_text(asking.version) + " semel");
  if (seen.forwarded_for.empty())
    put("X-Forwarded-For", asking.peer);
  else
    put("X-Forwarded-For", std::string(seen.forwarded_for).append(asking.peer));
  if (!seen.forwarded_proto) put("X-Forwarded-Proto", std::string_view(asking.tls ? "https" : "http"));
  if (!seen.forwarded_host && !seen.host.empty()) put("X-Forwarded-Host", seen.host);
  if (!seen.traceparent && upstream.add_traceparent) put("traceparent", new_traceparent());
}

char* put_hex(char* at, std::uint64_t value) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) *at++ = digits[(value >> shift) & 15];
  return at;
}

/// Schemes are compared without case (RFC 9110, 4.2.3).
std::optional<std::string_view> after_scheme(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (begins(target, scheme)) return target.substr(scheme.size());
  return std::nullopt;
}

/// The characters of a host and a port (RFC 3986, 3.2.2); no user, which RFC 9110, 4.2.4 forbids.
bool is_authority(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-._~!$&'()*+,;=:[]%").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

}  // namespace

std::string_view origin_form(std::string_view target) {
  const auto rest = after_scheme(target);
  if (!rest) return target;
  const auto end = rest->find_first_of("/?");
  if (end == rest->npos) return "/";
  return rest->at(end) == '/' ? rest->substr(end) : std::string_view();
}

std::string_view authority_of(std::string_view target) {
  const auto rest = after_scheme(target);
  return rest ? rest->substr(0, rest->find_first_of("/?")) : std::string_view();
}

std::string_view fault_in(const RequestHeader& head) {
  // 6.3: Beast reads another coding as no body at all, and the body would be read as the next request.
  const auto coding = head.find(http::field::transfer_encoding);
  if (coding != head.end() && (!same(view(coding->value()), "chunked") || head.version() < 11))
    return "chunked is the only transfer coding";
  // 3.2
  const auto hosts = head.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && head.version() == 11)) return "one Host header is needed";
  if (!is_authority(view(head[http::field::host]))) return "its Host header is not a host";
  if (head.method() == http::verb::connect) return "";
  const auto target = view(head.target());
  if (target.find('#') != target.npos) return "its target has a fragment";
  if (!is_authority(authority_of(target))) return "its target names no host that can be read";
  if (target != "*" && !origin_form(target).starts_with('/')) return "its target is no path";
  return "";
}

std::optional<std::uint64_t> forwards_left(const RequestHeader& head) {
  if (head.method() != http::verb::options && head.method() != http::verb::trace) return std::nullopt;
  const auto text = view(head[http::field::max_forwards]);
  std::uint64_t left = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), left);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  return error == std::errc() ? left : std::numeric_limits<std::uint64_t>::max();
}

Response answer_of_final_recipient(const RequestHeader& head) {
  Response response;
  if (head.method() != http::verb::trace) return response;
  response.headers.add("Content-Type", "message/http");
  response.body.append("TRACE ").append(view(head.target())).append(" HTTP/");
  response.body.append(version_text(head.version())).append("\r\n");
  // RFC 9110, 9.3.8: what is secret is not read back, for who reads the answer need not be who sent the request.
  for (const auto& field : head)
    if (const auto name = view(field.name_string()); !holds_credentials(name))
      add(response.body, name, view(field.value()));
  response.body.append("\r\n");
  return response;
}

bool is_hop_by_hop(std::string_view name, std::string_view connection) {
  return begins(name, "proxy-") ||
         std::ranges::any_of(for_one_connection, [&](std::string_view other) { return same(name, other); }) ||
         is_named(name, connection);
}

std::string connection_names(const Attributes& headers) {
  std::string names;
  for (const auto& [name, value] : headers.entries())
    if (same(name, "connection") && names_a_field(value)) names.append(value).append(",");
  return names;
}

void pass_request_head(std::string& out, const RequestHeader& head, const UpstreamOptions& upstream,
                       const Asking& asking, const Framing& framing) {
  const auto target = view(head.target());
  const auto names = connection_names_of(head);
  out.append(view(head.method_string())).append(" ");
  if (target != "*") out.append(upstream.base_path);
  out.append(origin_form(target)).append(" HTTP/1.1\r\n");
  Seen seen;
  const auto left = forwards_left(head);
  const auto host_at = out.size();
  for (const auto& field : head) {
    const auto name = view(field.name_string());
    const auto value = view(field.value());
    if (take_up(seen, field.name(), name, value, upstream.trust_forwarded)) continue;
    if (is_one_connections(field.name(), name) || (!names.empty() && is_named(name, names))) continue;
    if (left && field.name() == http::field::max_forwards)
      add_number(out, name, *left - 1);
    else
      add(out, name, value);
  }
  // RFC 9112, 3.2.2: a target that names the host outweighs the field.
  if (const auto named = authority_of(target); !named.empty()) seen.host = named;
  std::string host = "Host: ";
  host.append(upstream.keep_host && !seen.host.empty() ? std::string(seen.host) : upstream.authority()).append("\r\n");
  out.insert(host_at, host);
  add_ours(seen, upstream, asking, [&](std::string_view name, std::string_view value) { add(out, name, value); });
  add_framing(out, framing);
  out.append("\r\n");
}

void pass_response_head(std::string& out, const ResponseHeader& head, const Framing& framing, bool keep_alive) {
  const auto names = connection_names_of(head);
  out.append("HTTP/1.1 ").append(std::to_string(head.result_int())).append(" ").append(view(head.reason()));
  out.append("\r\n");
  const bool interim = head.result_int() < 200;
  bool dated = interim;
  for (const auto& field : head) {
    const auto name = view(field.name_string());
    if (field.name() == http::field::content_length || is_one_connections(field.name(), name)) continue;
    if (!names.empty() && is_named(name, names)) continue;
    dated |= field.name() == http::field::date;
    add(out, name, view(field.value()));
  }
  // RFC 9110, 6.6.1: whoever passes on an answer without a date adds one.
  if (!dated) add(out, "Date", http_date());
  add_framing(out, framing);
  if (!interim && !keep_alive) add(out, "Connection", "close");
  out.append("\r\n");
}

Attributes end_to_end(const Request& request, const UpstreamOptions& upstream) {
  const auto names = connection_names(request.headers);
  Attributes passed;
  Seen seen;
  for (const auto& [name, value] : request.headers.entries()) {
    if (same(name, "host")) passed.add(name, value);
    if (take_up(seen, http::string_to_field(name), name, value, upstream.trust_forwarded)) continue;
    if (!is_hop_by_hop(name, names)) passed.add(name, value);
  }
  add_ours(seen, upstream, {.peer = request.peer, .tls = request.over_tls, .version = request.version},
           [&](std::string_view name, std::string_view value) { passed.add(std::string(name), std::string(value)); });
  return passed;
}

std::string new_traceparent() {
  static thread_local std::mt19937_64 random{[] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }()};
  std::string text = "00-................................-................-01";
  char* const trace = text.data() + 3;
  // Neither id may be all zeros.
  char* const parent = put_hex(put_hex(trace, random()), random() | 1) + 1;
  put_hex(parent, random() | 1);
  return text;
}

}  // namespace semel::net
