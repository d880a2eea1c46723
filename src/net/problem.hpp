// What an HTTP answer says when there is no answer: application/problem+json (RFC 9457) with stable types.
#pragma once

#include <chrono>
#include <optional>
#include <semel/error.hpp>
#include <string>
#include <string_view>

#include "net/http_message.hpp"

namespace semel::net {

enum class Problem {
  malformed_request,
  request_timeout,
  header_too_large,
  body_too_large,
  not_found,
  method_not_allowed,
  signature_invalid,
  timestamp_outside_tolerance,
  principal_missing,
  idempotency_key_missing,
  idempotency_key_invalid,
  no_key,
  key_invalid,
  malformed_body,
  field_missing,
  conflict,
  in_flight,
  outcome_unknown,
  rejected,
  answer_no_longer_kept,
  overloaded,
  stopping,
  answer_late,
  try_again,
  upgrade_not_supported,
  upstream_unreachable,
  upstream_timeout,
  upstream_failed,
  not_done,
  failed,
};

/// A problem's row in the table: the type is `urn:semel:problem:` and `name`, and is never changed.
struct ProblemKind {
  Problem problem;
  int status;
  std::string_view name;
  std::string_view title;
};

const ProblemKind& kind_of(Problem problem);

/// A text as a JSON string, quotes included. Where it is not UTF-8, each byte above ASCII becomes '?'.
std::string json_string(std::string_view text);

struct ProblemDetails {
  std::string detail{};  ///< for people; left out where empty
  std::optional<ErrorCode> code{};
  std::optional<std::chrono::milliseconds> retry_after{};  ///< rounded up to whole seconds, at least one
};

Response problem_response(Problem problem, const ProblemDetails& details = {});

}  // namespace semel::net
