// What a failure of the world looks like: what to do next, and what is certain.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace semel {

/// What the receiver of an error does next.
enum class Remedy {
  fix_call,      ///< the same call fails again until something is changed: SQL, configuration, message
  retry_later,   ///< the world is away for now; the same call may go through later
  reread,        ///< somebody else was quicker: roll back, decide again in a new transaction
  ask_operator,  ///< only a person can go on: disk full, unsafe setting, damaged file
};

/// What is known of the effect of the call that failed.
enum class Certainty {
  not_applied,  ///< nothing was changed; may be repeated by itself
  unknown,      ///< it may have been applied (a commit whose reply was lost); the next claim tells
};

/// Stable numbers; each has a page in docs/errors that `semel explain` prints. Never reused.
enum class ErrorCode : int {
  no_key = 101,
  key_invalid = 102,
  malformed_body = 103,
  conflict = 105,
  rejected = 106,
  attempts_exhausted = 107,
  field_missing = 108,
  in_progress = 109,
  ambiguous = 110,

  store_unreachable = 201,
  connection_lost = 202,
  commit_unknown = 203,
  serialization_failure = 204,
  lock_timeout = 205,
  lost_race = 206,
  constraint_violated = 207,
  bad_statement = 208,
  disk_full = 209,
  unsafe_durability = 210,
  schema_missing = 211,
  schema_newer = 212,
  store_read_only = 213,
  permission_denied = 214,
  store_damaged = 215,
  bad_value = 216,

  address_in_use = 301,
  signature_invalid = 302,
  timestamp_outside_tolerance = 303,
  body_too_large = 304,
  idempotency_key_missing = 305,
  idempotency_key_invalid = 306,
  source_unreadable = 307,
  overloaded = 308,
  principal_missing = 309,
  source_settings_invalid = 310,

  config_syntax = 401,
  config_unknown_field = 402,
  config_missing_field = 403,
  config_bad_value = 404,
  config_secret_missing = 405,
  config_bad_expression = 406,
  config_unknown_name = 407,
  config_unstable_key = 408,

  handler_failed = 501,
  handler_misused = 502,
  effect_unknown = 503,
  settle_failed = 504,
  outcome_contradicted = 505,
  resolution_refused = 506,
};

/// "SEMEL-0203".
std::string code_name(ErrorCode code);

/// One failure. `message` is for people: it says what failed and with what, and never holds a secret.
struct [[nodiscard]] Error {
  Remedy remedy;
  Certainty certainty;
  ErrorCode code;
  std::string message;
};

/// An error whose call changed nothing and fails again until its input is changed.
Error fix_call(ErrorCode code, std::string message);
/// An error whose call changed nothing and may go through later.
Error retry_later(ErrorCode code, std::string message);

/// How an Error travels through a user's handler. The engine catches it in one place.
class Failure : public std::exception {
 public:
  explicit Failure(Error error) : error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

}  // namespace semel
