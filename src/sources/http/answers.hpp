// What became of a delivery, as an HTTP answer.
//
//   verdict                       a request                        a webhook
//   Done                          the answer                       the same
//   Done, answer no longer kept   410 answer-no-longer-kept        200
//   SetAside                      202 with the reason              the same
//   Refused                       the problem of its code          the same
//   … in progress                 409 in-flight and Retry-After    the same
//   … ambiguous                   409 outcome-unknown              the same
//   HandedBack                    503 and Retry-After, or 500      the same
#pragma once

#include <semel/error.hpp>
#include <semel/source.hpp>

#include "net/http_message.hpp"

namespace semel::http {

/// An error as a problem. Its message is given only where it was written for callers: a store's may hold SQL.
net::Response problem_of(const Error& error);

net::Response response_of(const decltype(Settlement::verdict)& verdict, Sender sender);

}  // namespace semel::http
