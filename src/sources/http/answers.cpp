#include "sources/http/answers.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "net/problem.hpp"

namespace semel::http {

namespace {

using net::Problem;

struct Row {
  ErrorCode code;
  Problem problem;
};

/// Where the verdict names no delay.
constexpr std::chrono::milliseconds come_again{1'000};

constexpr std::string_view not_again =
    "Do not retry, and do not mint a new key: it could be done twice. An operator is resolving it; its outcome will be "
    "the answer to this key.";

/// The codes whose message is for callers. All others are told by their remedy.
constexpr std::array told{
    Row{ErrorCode::no_key, Problem::no_key},
    Row{ErrorCode::key_invalid, Problem::key_invalid},
    Row{ErrorCode::malformed_body, Problem::malformed_body},
    Row{ErrorCode::conflict, Problem::conflict},
    Row{ErrorCode::rejected, Problem::rejected},
    Row{ErrorCode::field_missing, Problem::field_missing},
    Row{ErrorCode::signature_invalid, Problem::signature_invalid},
    Row{ErrorCode::timestamp_outside_tolerance, Problem::timestamp_outside_tolerance},
    Row{ErrorCode::body_too_large, Problem::body_too_large},
    Row{ErrorCode::idempotency_key_missing, Problem::idempotency_key_missing},
    Row{ErrorCode::idempotency_key_invalid, Problem::idempotency_key_invalid},
    Row{ErrorCode::principal_missing, Problem::principal_missing},
};

std::optional<Problem> problem_told(ErrorCode code) {
  const auto found = std::ranges::find(told, code, &Row::code);
  return found == told.end() ? std::nullopt : std::optional(found->problem);
}

net::Response response_to(const Done& done, Sender sender) {
  if (!done.answer_kept) {
    if (sender == Sender::message) return {.status = 200, .headers = {{"Idempotent-Replayed", "true"}}};
    auto gone = net::problem_response(Problem::answer_no_longer_kept);
    gone.headers.add("Idempotent-Replayed", "true");
    return gone;
  }
  const Answer& answer = done.answer;
  // A status that HTTP has no final answer for would leave the client waiting.
  if (answer.status < 200 || answer.status > 599) return net::problem_response(Problem::failed);
  net::Response response{.status = answer.status, .headers = answer.headers, .body = answer.body};
  if (done.replayed) response.headers.add("Idempotent-Replayed", "true");
  return response;
}

net::Response response_to(const SetAside& set_aside, Sender) {
  std::string body = "{\"set_aside\":true,\"code\":" + net::json_string(code_name(set_aside.why.code));
  if (problem_told(set_aside.why.code)) body += ",\"reason\":" + net::json_string(set_aside.why.message);
  return {.status = 202, .headers = {{"Content-Type", "application/json"}}, .body = body + "}\n"};
}

net::Response in_flight(ErrorCode code, std::chrono::milliseconds delay) {
  return net::problem_response(Problem::in_flight, {.code = code, .retry_after = delay});
}

net::Response response_to(const Refused& refused, Sender) { return problem_of(refused.why); }

net::Response response_to(const HandedBack& back, Sender sender) {
  // Somebody else holds the key, and we waited for it as long as the store allows.
  if (sender == Sender::caller && back.why.code == ErrorCode::lock_timeout) return in_flight(back.why.code, back.delay);
  if (back.why.code == ErrorCode::in_progress) return in_flight(back.why.code, std::max(back.delay, come_again));
  if (back.why.code == ErrorCode::ambiguous) return problem_of(back.why);
  if (back.why.remedy == Remedy::fix_call) return net::problem_response(Problem::failed, {.code = back.why.code});
  return net::problem_response(Problem::try_again, {.code = back.why.code, .retry_after = back.delay});
}

}  // namespace

net::Response problem_of(const Error& error) {
  if (error.code == ErrorCode::in_progress) return in_flight(error.code, come_again);
  if (error.code == ErrorCode::ambiguous)
    return net::problem_response(Problem::outcome_unknown, {.detail = std::string(not_again), .code = error.code});
  if (const auto problem = problem_told(error.code))
    return net::problem_response(*problem, {.detail = error.message, .code = error.code});
  return response_to(HandedBack{.why = error}, Sender::caller);
}

net::Response response_of(const decltype(Settlement::verdict)& verdict, Sender sender) {
  return std::visit([&](const auto& what) { return response_to(what, sender); }, verdict);
}

}  // namespace semel::http
