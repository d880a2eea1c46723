// An answer's status line and header, as bytes.
#pragma once

#include <string>
#include <string_view>

#include "net/http_message.hpp"

namespace semel::net {

/// "Not Found"; empty for a status that is not well known.
std::string_view reason_phrase(int status);

/// Whether an answer with this status may have a body.
bool may_have_body(int status);

/// Everything before the body. A header that is not well-formed, or that frames the message, is left out: what a
/// handler stored can split no answer in two.
std::string response_head(const Response& response, bool keep_alive, std::string_view date);

/// Now, as a Date header gives it.
std::string http_date();

}  // namespace semel::net
