#include "net/problem.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/json.hpp"
#include "base/utf8.hpp"

namespace semel::net {

namespace {

constexpr std::array table{
    ProblemKind{Problem::malformed_request, 400, "malformed-request", "The request is not well-formed HTTP"},
    ProblemKind{Problem::request_timeout, 408, "request-timeout", "The request took too long to arrive"},
    ProblemKind{Problem::header_too_large, 431, "header-too-large", "The header is too large"},
    ProblemKind{Problem::body_too_large, 413, "body-too-large", "The body is too large"},
    ProblemKind{Problem::not_found, 404, "not-found", "Nothing is served here"},
    ProblemKind{Problem::method_not_allowed, 405, "method-not-allowed", "The method is not served here"},
    ProblemKind{Problem::signature_invalid, 401, "signature-invalid", "The signature does not vouch for this body"},
    ProblemKind{Problem::timestamp_outside_tolerance, 401, "timestamp-outside-tolerance",
                "The signature is too old, or from the future"},
    ProblemKind{Problem::principal_missing, 401, "principal-missing", "Nothing says on whose behalf this is asked"},
    ProblemKind{Problem::idempotency_key_missing, 400, "idempotency-key-missing", "The Idempotency-Key is missing"},
    ProblemKind{Problem::idempotency_key_invalid, 400, "idempotency-key-invalid", "The Idempotency-Key is malformed"},
    ProblemKind{Problem::no_key, 400, "no-key", "The message has no key"},
    ProblemKind{Problem::key_invalid, 400, "key-invalid", "The message's key cannot be used"},
    ProblemKind{Problem::malformed_body, 400, "malformed-body", "The body cannot be read"},
    ProblemKind{Problem::field_missing, 422, "field-missing", "The body lacks a field"},
    ProblemKind{Problem::conflict, 422, "idempotency-key-reused", "The key was used before for another request"},
    ProblemKind{Problem::in_flight, 409, "in-flight",
                "The same request is being worked on; ask again with the same key"},
    ProblemKind{Problem::outcome_unknown, 409, "outcome-unknown",
                "Whether this was done is not known; an operator is finding out"},
    ProblemKind{Problem::rejected, 422, "rejected", "The request was rejected"},
    ProblemKind{Problem::answer_no_longer_kept, 410, "answer-no-longer-kept",
                "Done before; the answer is no longer kept"},
    ProblemKind{Problem::overloaded, 503, "overloaded", "Too many requests are waiting"},
    ProblemKind{Problem::stopping, 503, "stopping", "The service is stopping"},
    ProblemKind{Problem::answer_late, 503, "answer-late", "Still being worked on; ask again with the same key"},
    ProblemKind{Problem::try_again, 503, "try-again", "Not finished; ask again with the same key"},
    ProblemKind{Problem::upgrade_not_supported, 501, "upgrade-not-supported", "WebSocket is not passed through here"},
    ProblemKind{Problem::upstream_unreachable, 502, "upstream-unreachable",
                "The service behind cannot be reached; the request was not sent to it"},
    ProblemKind{Problem::upstream_timeout, 504, "upstream-timeout", "The service behind did not answer in time"},
    ProblemKind{Problem::upstream_failed, 502, "upstream-failed",
                "The service behind gave no whole answer; what it did with the request is not known"},
    ProblemKind{Problem::not_done, 502, "not-done",
                "The service behind was tried for long enough and has not done it; the key may be used again"},
    ProblemKind{Problem::failed, 500, "failed", "Not done"},
};

}  // namespace

const ProblemKind& kind_of(Problem problem) {
  const auto found = std::ranges::find(table, problem, &ProblemKind::problem);
  assert(found != table.end());
  return *found;
}

std::string json_string(std::string_view text) {
  std::string readable(text);
  if (!is_valid_utf8(readable))
    std::ranges::replace_if(
        readable, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  std::string out;
  json::append_string(out, readable);
  return out;
}

Response problem_response(Problem problem, const ProblemDetails& details) {
  const ProblemKind& kind = kind_of(problem);
  Response response{.status = kind.status, .headers = {{"Content-Type", "application/problem+json"}}};
  response.problem = kind.name;
  response.body = "{\"type\":" + json_string("urn:semel:problem:" + std::string(kind.name)) +
                  ",\"title\":" + json_string(kind.title) + ",\"status\":" + std::to_string(kind.status);
  if (!details.detail.empty()) response.body += ",\"detail\":" + json_string(details.detail);
  if (details.code) response.body += ",\"code\":" + json_string(code_name(*details.code));
  response.body += "}\n";
  if (details.retry_after) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*details.retry_after).count();
    response.headers.add("Retry-After", std::to_string(std::max<std::int64_t>(seconds, 1)));
  }
  return response;
}

}  // namespace semel::net
