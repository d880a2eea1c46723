// What is sent: a stored request with its one key, or a question about it.
#pragma once

#include <chrono>
#include <semel/performers/http.hpp>
#include <semel/result.hpp>
#include <string>

#include "net/http_client.hpp"
#include "performers/http/select.hpp"

namespace semel::http {

/// `request` with `key` where the carrier has it. Errors, without any text of the request: handler_misused for a
/// request that brings a key of its own, a key that is too long, or a body that has no place for one.
Result<net::Outgoing> compose_call(const StoredRequest& request, const KeyCarrier& carrier, const std::string& key);

/// Adds `more`, which replaces what has the same name.
void add_headers(Attributes& headers, const Attributes& more);

/// What a lookup's templates are filled with.
struct Question {
  const StoredRequest& request;
  const Body& asked;
  std::string reference;
  std::string key;
  std::string id{};
  std::chrono::system_clock::time_point now{};
};

/// Errors: handler_misused for a template that needs, outside of a query, what is not there.
Result<net::Outgoing> compose_lookup(const Lookup& lookup, const Question& question);

/// `url` with one more field in its query.
std::string with_query(const std::string& url, std::string_view name, std::string_view value);

}  // namespace semel::http
