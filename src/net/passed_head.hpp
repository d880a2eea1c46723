// Heads on their way through a proxy: what stays behind, what is added (RFC 9110, 7.6).
//
// Left out, in both directions: Connection and every field that it names, Keep-Alive, Proxy-*, TE, Trailer,
// Transfer-Encoding and Upgrade. The body's frame is written anew.
//
// Added to a request: Via with the version of HTTP that it came by, X-Forwarded-For, -Proto and -Host, and traceparent
// where there is none. X-Forwarded-* and Forwarded that the client sent are dropped, unless a trusted proxy in front
// wrote them.
#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_message.hpp"
#include "net/upstream.hpp"

namespace semel::net {

/// From a connection's arena, which is emptied before each request.
using FieldMemory = std::pmr::polymorphic_allocator<char>;
using Fields = boost::beast::http::basic_fields<FieldMemory>;
using RequestHeader = boost::beast::http::header<true, Fields>;
using ResponseHeader = boost::beast::http::header<false, Fields>;

/// How a body's end is told.
struct Framing {
  enum class Kind { none, length, chunked, until_close } kind = Kind::none;
  std::uint64_t length = 0;
};

/// Who asks, and how the request reached us.
struct Asking {
  std::string_view peer;  ///< an address, without port
  bool tls = false;
  unsigned version = 11;  ///< of HTTP/1.1
};

/// The path and query of a target that names the host too, as a client of a proxy may send it; "" where it has a query
/// and no path.
std::string_view origin_form(std::string_view target);

/// The host that a target names itself; empty for the usual target, which is only a path.
std::string_view authority_of(std::string_view target);

/// What is wrong with a request's line or its framing, as RFC 9112 sees it; nobody goes on with such a request, since
/// the next one to read it may read it otherwise. Empty where nothing is.
std::string_view fault_in(const RequestHeader& head);

/// How often an OPTIONS or TRACE request may still be forwarded (RFC 9110, 7.6.2); nothing where it does not say so.
std::optional<std::uint64_t> forwards_left(const RequestHeader& head);

/// The answer to one that may be forwarded no more.
Response answer_of_final_recipient(const RequestHeader& head);

/// Whether the field belongs to one connection. `connection` holds the values of the Connection fields.
bool is_hop_by_hop(std::string_view name, std::string_view connection);

/// The values of all Connection fields, joined by commas; empty where none names a field.
std::string connection_names(const Attributes& headers);

/// Appends the head to `out`, up to and with its empty line.
void pass_request_head(std::string& out, const RequestHeader& head, const UpstreamOptions& upstream,
                       const Asking& asking, const Framing& framing);

/// The same for an answer, final or interim. `date` is added where there is none.
void pass_response_head(std::string& out, const ResponseHeader& head, const Framing& framing, bool keep_alive);

/// The end-to-end fields of a request whose guarded call is made later, with what a proxy adds. Without Content-Length.
Attributes end_to_end(const Request& request, const UpstreamOptions& upstream);

/// A new one, version 00, sampled (so that the services behind decide as they do for a request without one).
std::string new_traceparent();

}  // namespace semel::net
