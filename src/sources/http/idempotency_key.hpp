// The Idempotency-Key header of the IETF draft: a String of RFC 8941, or what most clients send, a bare token.
//
//   field   = string *parameter / bare
//   string  = DQUOTE *( %x20-21 / %x23-5B / %x5D-7E / "\" DQUOTE / "\\" ) DQUOTE
//   bare    = 1*( any visible ASCII character except DQUOTE, "," and ";" )
//
// `"abc"` and `abc` are the same key. Parameters have no meaning in the draft and are read over, as RFC 8941 wants it.
#pragma once

#include <semel/delivery.hpp>
#include <semel/result.hpp>
#include <string>

namespace semel::http {

/// The key's bytes. Errors: idempotency_key_missing; idempotency_key_invalid for several lines, a list, an empty or
/// malformed one, or one over Key::size_max. They never repeat the key.
Result<std::string> idempotency_key(const Attributes& headers);

}  // namespace semel::http
