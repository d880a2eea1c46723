// Calls to HTTP APIs, each sent at most once an attempt, and what their answers mean.
//
// A call's request is a StoredRequest. What a provider's answers mean, where it takes the idempotency key, and how it
// is asked whether something happened, is a ProviderProfile: a value, to be taken as it is, changed, or written anew.
// The built-in ones follow docs/providers.md.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <semel/performer.hpp>
#include <semel/result.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace semel::http {

/// A request as an Intention keeps it. It holds no credentials: those are PerformerOptions::headers.
struct StoredRequest {
  std::string method = "POST";
  std::string url;  ///< absolute, http or https
  Attributes headers{};
  std::string body{};
};

/// {"method":…,"url":…,"headers":[["name","value"],…],"body":…}, with "body_base64" where the body is no UTF-8.
/// Errors: handler_misused for a URL, method or header that cannot be sent, and for headers that are credentials
/// (Authorization, Cookie, X-Api-Key and their like).
Result<std::string> encode_request(const StoredRequest& request);
/// What encode_request wrote, or a person: "headers" may be an object too; only "url" must be there.
/// Errors: malformed_body.
Result<StoredRequest> decode_request(std::string_view stored);

/// Where a provider takes the idempotency key.
struct KeyCarrier {
  enum class In {
    none,
    header,       ///< `name` is the header's
    json_member,  ///< `name` is a JSON Pointer into the body; all but its last step must be there
    form_field,   ///< `name` is the field's, in an application/x-www-form-urlencoded body
  } in = In::header;
  std::string name = "Idempotency-Key";
  std::size_t size_max = 255;  ///< of the key
};

/// What an answer to a call means.
enum class Meaning {
  succeeded,
  failed,
  refused,
  not_done,
  unknown,
  unfinished,
  mismatch,  ///< an operator must look: the key belongs to other parameters, or to something that nobody can name
  look_up,   ///< repeating tells nothing new: the provider is asked by reference; where that is impossible, `mismatch`
  existing,  ///< the answer names what was made under this key: it is got by its id and compared
};

/// One row of a table that is read from the top; the first row that matches is used. Conditions that are empty match
/// anything; a body that is cut off or is no JSON matches no pointer.
///
/// A pointer is a JSON Pointer (RFC 6901) in which "*" stands for any element or member.
struct AnswerRule {
  int status_from = 0;
  int status_to = 999;
  std::string header{};               ///< this header is there
  std::string header_value{};         ///< and has this value
  std::string pointer{};              ///< this place in the body is there
  std::vector<std::string> values{};  ///< and its text is one of these; numbers compare as they are written
  Meaning meaning = Meaning::unknown;
  std::string id{};  ///< for `existing`: where the id is
};

/// A place in what was asked, and the place in what was found that must hold the same.
struct Comparison {
  enum class As { text, text_without_case, decimal } as = As::text;
  std::string asked;  ///< in the request's body; a form's fields are "/name". Not there: nothing is compared
  std::string found;  ///< in the object
};

/// How what a provider made is read.
struct Shape {
  std::string object{};     ///< where it is: in an answer, or in an element of a list
  std::string id = "/id";   ///< the rest is counted from `object`
  std::string status{};     ///< empty: being there is success
  std::string reference{};  ///< ours; it must be the intent's where both are there
  std::vector<std::string> succeeded{};
  std::vector<std::string> failed{};
  std::vector<std::string> pending{};  ///< the provider is at it; one that is in no list tells nothing
  std::vector<std::string> ignored{};  ///< in a list: what has it counts for nothing
  std::vector<Comparison> compared{};
};

/// A question what has become of a call.
///
/// `url` and `body` may hold {reference}, {key} (the idempotency key), {id} (of what an answer named), {from} and {to}
/// (now, and `window` before; RFC 3339), and {asked:/pointer} (a place in the request's body); escaped for a URL, or
/// for a JSON string. A part of the query that has no value is left out. A `url` that begins with "/" goes to where the
/// call went.
struct Lookup {
  std::string method = "GET";
  std::string url;
  std::string body{};
  bool is_list = false;  ///< `list` has any number of elements, of which those with the intent's reference count
  std::string list{};
  Shape shape{};
  /// A list that goes on: the next page is asked for by `page_field` in the query.
  enum class Paging {
    none,
    cursor,  ///< with the text at `page_pointer`, until there is none
    number,  ///< with 2, 3, … up to the number at `page_pointer`
    single,  ///< one page is read; true at `page_pointer` says that it is not all
  } paging = Paging::none;
  std::string page_pointer{};
  std::string page_field{};
  std::chrono::seconds window = std::chrono::hours(72);
};

struct ProviderProfile {
  std::string name = "http";
  KeyCarrier key{};
  /// A good value for EffectOptions::policy.
  ProviderPolicy policy{};
  /// Before the rules for any provider:
  ///
  ///   no connection was made                      not_done
  ///   timeout, reset, none or half of an answer   unknown
  ///   2xx                                         succeeded
  ///   301, 307, 308, 401, 403, 404                refused (a redirect is never followed)
  ///   408, 425, 429, and 503 with Retry-After     not_done
  ///   409                                         unfinished
  ///   any other 4xx                               failed
  ///   anything else                               unknown
  std::vector<AnswerRule> rules{};
  /// Of an answer to a call that has succeeded, compared with what was asked: a repeat may get something else. Where it
  /// says more than the default, a 2xx whose body cannot be read is unknown, but for a 204 that a rule speaks of.
  Shape answer{};
  std::optional<Lookup> by_reference{};
  std::optional<Lookup> by_id{};
  std::string notes{};  ///< for operators: what else the provider offers where nobody knows
};

/// Built in: "stripe", "adyen", "paypal" (Orders v2), "paypal_payments" (Payments v2), "square", "gocardless",
/// "braintree" (the GraphQL API, with a key), "braintree_without_key" (the same for merchants who have none).
/// A call that was accepted while its end is open has succeeded: the answer's body holds the status, and the provider's
/// webhook tells the end. 401 and 403 are not_done there: a rotated credential must fail no payment for good.
const std::vector<ProviderProfile>& built_in_profiles();
/// Nothing where there is none of that name.
std::optional<ProviderProfile> built_in_profile(std::string_view name);

struct PerformerOptions {
  ProviderProfile profile{};
  /// Added to every call and lookup, and kept nowhere else: credentials. The caller's own (Call::credentials) replace
  /// those of the same name.
  Attributes headers{};
  std::optional<std::string> ca_file{};  ///< PEM, trusted instead of the system's certificates
  std::optional<std::string> proxy{};    ///< nothing: as the environment says; empty: none
  std::chrono::milliseconds connect_timeout{10'000};
  std::size_t response_bytes_max = Answer::body_size_max;  ///< a longer body is not taken; the outcome says so
  std::size_t calls_max = 256;                             ///< under way at once
};

/// Makes calls whose request is a StoredRequest. An attempt sends its request once, with the idempotency key in one
/// place, the same in every attempt; a request that brings a key of its own there is refused. Nothing else that varies
/// is added. Where the profile's policy is not `idempotent`, every call has a connection of its own.
/// Errors: config_bad_value for a CA file that cannot be read, a header that cannot be sent, a bad pointer, or a lookup
/// by list that does not say where an element holds the reference.
Result<std::unique_ptr<Performer>> http_performer(PerformerOptions options);

/// A target of publications: each is POSTed with its body as it is.
struct WebhookOptions {
  std::string url;
  /// Signed with each of them by Standard Webhooks: keep the old one until every receiver knows the new one. Empty: not
  /// signed. Base64, with or without "whsec_" before it.
  std::vector<std::string> secrets{};
  Attributes headers{};  ///< added to each: credentials, a content type
  std::optional<std::string> ca_file{};
  std::optional<std::string> proxy{};
  std::chrono::milliseconds connect_timeout{10'000};
  std::size_t calls_max = 64;
};

/// Sends publications over HTTP: their attributes as headers (but for those that frame a message, or are set here),
/// their id as Idempotency-Key and webhook-id, the same in every attempt, so that the receiver can tell a repeat. Only
/// a 2xx confirms. A redirect, and a 4xx that is final, is failed: an operator is asked. Without a Content-Type it is
/// application/json where the body is JSON, else application/octet-stream. Errors: config_bad_value for a URL, a
/// header, a CA file or a secret that cannot be one.
Result<std::unique_ptr<Performer>> webhook_publisher(WebhookOptions options);

}  // namespace semel::http
