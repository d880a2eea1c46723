// What a handler decides: an answer, or a rejection.
#pragma once

#include <semel/delivery.hpp>
#include <string>
#include <variant>

namespace semel {

/// What a caller gets, and gets again from a replay. A message source without callers ignores it.
/// `status` is an HTTP status; `headers` are kept by an allow-list, and never hold credentials.
struct Answer {
  int status = 200;
  Attributes headers{};
  std::string body{};

  /// Stored answers are at most this long (body); a longer one is given once, and a replay says that it is no
  /// longer kept.
  static constexpr std::size_t body_size_max = 1 << 20;
};

/// The handler's final no: its writes are rolled back, the rejection and its answer are recorded and replayed,
/// and the message is dead-lettered with `reason`.
struct Rejection {
  std::string reason;
  Answer answer{.status = 422, .headers = {}, .body = {}};
};

using Outcome = std::variant<Answer, Rejection>;

/// The headers of an answer that a replay may carry: content-type, content-encoding (without it the body cannot be
/// read), content-language, content-location, etag, link, location, last-modified, retry-after. Cookies never.
Attributes replayable_headers(const Attributes& headers);

}  // namespace semel
