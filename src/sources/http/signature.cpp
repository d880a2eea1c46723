#include "sources/http/signature.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/digest.hpp"
#include "base/encoding.hpp"

namespace semel::http {

namespace {

using Scheme = Verification::Scheme;

/// More signatures than any rotation needs are not looked at, so that a header cannot buy much work.
constexpr std::size_t signatures_max = 16;

/// What a request claims.
struct Claim {
  std::vector<std::string> signatures{};  ///< as bytes
  std::string signed_text{};
  std::optional<std::int64_t> signed_at{};  ///< seconds since 1970
};

Error invalid(std::string message) { return fix_call(ErrorCode::signature_invalid, std::move(message)); }

Result<std::string_view> the_header(const Attributes& headers, std::string_view name) {
  const auto count = headers.count(name);
  if (count == 0) return invalid("there is no " + std::string(name) + " header");
  if (count > 1) return invalid("there is more than one " + std::string(name) + " header");
  return *headers.find(name);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    std::string_view part = text.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    parts.push_back(part);
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<std::int64_t> seconds_of(std::string_view text) {
  std::int64_t seconds = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool digits = !text.empty() && text.size() <= 12 && text.front() >= '0' && text.front() <= '9';
  if (!digits || failed != std::errc{} || end != text.data() + text.size())
    return invalid("the signature's timestamp is not a number of seconds");
  return seconds;
}

void add_signature(Claim& claim, std::string_view text, std::string_view prefix,
                   std::optional<std::string> (*decode)(std::string_view)) {
  if (!text.starts_with(prefix) || claim.signatures.size() == signatures_max) return;
  auto bytes = decode(text.substr(prefix.size()));
  if (bytes && !bytes->empty()) claim.signatures.push_back(*std::move(bytes));
}

Result<Claim> stripe_claim(std::string_view header, std::string_view body) {
  Claim claim;
  std::optional<std::string_view> stamp;
  for (const auto part : split(header, ',')) {
    add_signature(claim, part, "v1=", hex_decode);
    if (!part.starts_with("t=")) continue;
    if (stamp) return invalid("Stripe-Signature holds two timestamps");
    stamp = part.substr(2);
  }
  if (!stamp) return invalid("Stripe-Signature holds no timestamp");
  auto seconds = seconds_of(*stamp);
  if (!seconds) return std::move(seconds).error();
  claim.signed_at = *seconds;
  claim.signed_text.append(*stamp).append(".").append(body);
  return claim;
}

Result<Claim> slack_claim(std::string_view header, const Attributes& headers, std::string_view body) {
  auto stamp = the_header(headers, "X-Slack-Request-Timestamp");
  if (!stamp) return std::move(stamp).error();
  auto seconds = seconds_of(*stamp);
  if (!seconds) return std::move(seconds).error();
  Claim claim{.signed_at = *seconds};
  add_signature(claim, header, "v0=", hex_decode);
  claim.signed_text.append("v0:").append(*stamp).append(":").append(body);
  return claim;
}

Result<Claim> standard_claim(std::string_view header, const Attributes& headers, std::string_view body) {
  auto id = the_header(headers, "webhook-id");
  if (!id) return std::move(id).error();
  if (id->empty()) return invalid("the webhook-id header is empty");
  auto stamp = the_header(headers, "webhook-timestamp");
  if (!stamp) return std::move(stamp).error();
  auto seconds = seconds_of(*stamp);
  if (!seconds) return std::move(seconds).error();
  Claim claim{.signed_at = *seconds};
  for (const auto part : split(header, ' ')) add_signature(claim, part, "v1,", base64_decode);
  claim.signed_text.append(*id).append(".").append(*stamp).append(".").append(body);
  return claim;
}

Claim body_claim(std::string_view header, std::string_view prefix, Verification::Encoding encoding,
                 std::string_view body) {
  Claim claim{.signed_text = std::string(body)};
  add_signature(claim, header, prefix, encoding == Verification::Encoding::hex ? hex_decode : base64_decode);
  return claim;
}

std::string_view header_name(const Verification& verification) {
  switch (verification.scheme) {
    case Scheme::stripe:
      return "Stripe-Signature";
    case Scheme::github:
      return "X-Hub-Signature-256";
    case Scheme::shopify:
      return "X-Shopify-Hmac-Sha256";
    case Scheme::slack:
      return "X-Slack-Signature";
    case Scheme::standard_webhooks:
      return "webhook-signature";
    case Scheme::hmac:
      return verification.header;
    case Scheme::none:
      break;
  }
  return {};
}

Result<Claim> claim_of(const Verification& verification, const Attributes& headers, std::string_view body) {
  auto header = the_header(headers, header_name(verification));
  if (!header) return std::move(header).error();
  switch (verification.scheme) {
    case Scheme::stripe:
      return stripe_claim(*header, body);
    case Scheme::slack:
      return slack_claim(*header, headers, body);
    case Scheme::standard_webhooks:
      return standard_claim(*header, headers, body);
    case Scheme::github:
      return body_claim(*header, "sha256=", Verification::Encoding::hex, body);
    case Scheme::shopify:
      return body_claim(*header, "", Verification::Encoding::base64, body);
    default:
      return body_claim(*header, verification.prefix, verification.encoding, body);
  }
}

constexpr std::string_view standard_prefix = "whsec_";

/// The bytes that a secret's text stands for.
std::optional<std::string> key_of(Scheme scheme, std::string_view value) {
  if (scheme != Scheme::standard_webhooks) return std::string(value);
  if (value.starts_with(standard_prefix)) value.remove_prefix(standard_prefix.size());
  return base64_decode(value);
}

std::string digest_of(const Verification& verification, std::string_view key, std::string_view text) {
  const bool sha512 = verification.scheme == Scheme::hmac && verification.digest == Verification::Digest::sha512;
  return sha512 ? hmac_sha512(key, text) : hmac_sha256(key, text);
}

/// Tries every secret on every signature, so that the time tells nothing of which one fits.
bool is_signed(const Verification& verification, const Claim& claim) {
  bool fits = false;
  for (const auto& secret : verification.secrets) {
    const auto key = key_of(verification.scheme, secret.value);
    if (!key || key->empty()) continue;
    const std::string expected = digest_of(verification, *key, claim.signed_text);
    for (const auto& signature : claim.signatures) fits |= equal_in_constant_time(expected, signature);
  }
  return fits;
}

std::string labels(const Verification& verification) {
  std::string text;
  for (const auto& secret : verification.secrets) text += (text.empty() ? "\"" : ", \"") + secret.label + "\"";
  return text;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// What makes a text impossible as a secret of its scheme; empty where nothing does.
std::string secret_problem(Scheme scheme, const std::string& value) {
  if (value.empty()) return "is empty";
  if (is_blank(value.front()) || is_blank(value.back())) return "begins or ends with white space";
  if (scheme == Scheme::stripe && !value.starts_with(standard_prefix))
    return "does not begin with whsec_: the endpoint's signing secret is needed, not an API key";
  if (scheme != Scheme::standard_webhooks) return {};
  const auto key = key_of(scheme, value);
  return key && !key->empty() ? "" : "is not base64 after whsec_";
}

}  // namespace

Result<void> check_verification(const Verification& verification) {
  const auto refuse = [](std::string message) {
    return fix_call(ErrorCode::source_settings_invalid, std::move(message));
  };
  if (verification.scheme == Scheme::none)
    return verification.secrets.empty() ? Result<void>{} : refuse("there are secrets but no scheme that uses them");
  if (verification.secrets.empty()) return refuse("a signature cannot be verified without a secret");
  if (verification.scheme == Scheme::hmac && verification.header.empty())
    return refuse("hmac needs the name of the header with the signature");
  if (verification.tolerance.count() <= 0) return refuse("the tolerance must be positive");
  for (const auto& secret : verification.secrets)
    if (const auto problem = secret_problem(verification.scheme, secret.value); !problem.empty())
      return refuse("the secret \"" + secret.label + "\" " + problem);
  return {};
}

Result<void> verify(const Verification& verification, const Attributes& headers, std::string_view body,
                    std::chrono::system_clock::time_point now) {
  if (verification.scheme == Scheme::none) return {};
  const auto claim = claim_of(verification, headers, body);
  if (!claim) return claim.error();
  const std::string name(header_name(verification));
  if (claim->signatures.empty()) return invalid(name + " holds no signature that can be read");
  if (!is_signed(verification, *claim))
    return invalid("no signature in " + name + " fits; secrets tried: " + labels(verification));
  if (!claim->signed_at) return {};
  const auto age = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count() - *claim->signed_at;
  if (std::abs(age) > verification.tolerance.count())
    return fix_call(ErrorCode::timestamp_outside_tolerance,
                    "signed " + std::to_string(std::abs(age)) + " s " + (age > 0 ? "ago" : "from now") + "; at most " +
                        std::to_string(verification.tolerance.count()) + " s are allowed");
  return {};
}

std::string delivery_id(Scheme scheme, const Attributes& headers) {
  const auto value = [&](std::string_view name) { return std::string(headers.find(name).value_or("")); };
  if (scheme == Scheme::github) return value("X-GitHub-Delivery");
  if (scheme == Scheme::standard_webhooks) return value("webhook-id");
  if (scheme != Scheme::shopify) return {};
  return headers.find("X-Shopify-Webhook-Id") ? value("X-Shopify-Webhook-Id") : value("Shopify-Webhook-Id");
}

}  // namespace semel::http
