// What an answer means: pure functions of the profile and of what came back.
#pragma once

#include <chrono>
#include <optional>
#include <semel/performers/http.hpp>
#include <string>

#include "net/http_client.hpp"
#include "performers/http/select.hpp"

namespace semel::http {

/// What was asked, as far as it is compared.
struct Asked {
  const Body& body;
  std::string reference;
  /// How much is taken of an answer's body: what was cut there is too long, what was cut before broke off.
  std::size_t body_bytes_max = Answer::body_size_max;
};

struct Judgement {
  CallReport report{};
  /// The provider must be asked before anything can be said; `report` holds what is said where that fails.
  enum class Ask { nothing, by_reference, by_id } ask = Ask::nothing;
  std::string id{};  ///< for `by_id`
};

/// Of the answer to a call. `now` is for a Retry-After that is a date.
Judgement judge_answer(const ProviderProfile& profile, const Asked& asked, const net::Returned& returned,
                       std::chrono::system_clock::time_point now);

/// Of the answer to a call that has no body to read and no profile: a webhook's.
CallReport judge_status(const net::Returned& returned, std::chrono::system_clock::time_point now);

/// One page of a lookup's answer.
struct Page {
  CallReport report{};  ///< where `found`, or nothing more is to be read
  bool found = false;
  std::optional<std::string> next{};  ///< not found yet: the value of the page field
};
/// `page` counts from 1.
Page judge_page(const Lookup& lookup, const Asked& asked, const net::Returned& returned, int page,
                std::chrono::system_clock::time_point now);

/// A report without an answer.
CallReport report_of(CallVerdict verdict, std::string detail);

}  // namespace semel::http
