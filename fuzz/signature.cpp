// Webhooks: headers and bodies of each scheme.
//
//   input = scheme, 1 byte; mode, 1 byte; headers, a line each; LF; body
//
// Without the secret nothing is let through. What is signed by the scheme's own description is, until one bit of it is
// changed.
#include "sources/http/signature.hpp"

#include "base/digest.hpp"
#include "base/encoding.hpp"
#include "headers.hpp"

namespace semel::fuzz {
namespace {

using Scheme = http::Verification::Scheme;

constexpr std::int64_t now = 1'700'000'000;
constexpr std::string_view key = "not the fuzzer's to know";

http::Verification verification_of(Scheme scheme) {
  const bool base64 = scheme == Scheme::standard_webhooks;
  const std::string secret = base64                     ? "whsec_" + base64_encode(key)
                             : scheme == Scheme::stripe ? "whsec_" + std::string(key)
                                                        : std::string(key);
  http::Verification verification{.scheme = scheme, .secrets = {{"current", secret}}};
  if (scheme == Scheme::hmac) {
    verification.header = "X-Signature";
    verification.prefix = "sha512=";
    verification.digest = http::Verification::Digest::sha512;
    verification.encoding = http::Verification::Encoding::base64;
  }
  return verification;
}

/// As each provider's page says it.
Attributes signed_headers(Scheme scheme, const std::string& body) {
  const auto stamp = std::to_string(now);
  switch (scheme) {
    case Scheme::stripe: {
      const auto digest = hmac_sha256("whsec_" + std::string(key), stamp + "." + body);
      return {{"Stripe-Signature", "t=" + stamp + ",v1=" + hex_encode(digest)}};
    }
    case Scheme::github:
      return {{"X-Hub-Signature-256", "sha256=" + hex_encode(hmac_sha256(key, body))}};
    case Scheme::shopify:
      return {{"X-Shopify-Hmac-Sha256", base64_encode(hmac_sha256(key, body))}};
    case Scheme::slack: {
      const auto digest = hmac_sha256(key, "v0:" + stamp + ":" + body);
      return {{"X-Slack-Request-Timestamp", stamp}, {"X-Slack-Signature", "v0=" + hex_encode(digest)}};
    }
    case Scheme::standard_webhooks: {
      const auto digest = hmac_sha256(key, "m1." + stamp + "." + body);
      return {{"webhook-id", "m1"}, {"webhook-timestamp", stamp}, {"webhook-signature", "v1," + base64_encode(digest)}};
    }
    default:
      return {{"X-Signature", "sha512=" + base64_encode(hmac_sha512(key, body))}};
  }
}

std::chrono::system_clock::time_point at(std::int64_t seconds) {
  return std::chrono::system_clock::time_point(std::chrono::seconds(seconds));
}

void try_signed(Scheme scheme, std::string body, unsigned choice) {
  const auto verification = verification_of(scheme);
  const auto headers = signed_headers(scheme, body);
  promise(http::verify(verification, headers, body, at(now)).has_value(), "what is signed is let through");
  const bool is_dated = scheme == Scheme::stripe || scheme == Scheme::slack || scheme == Scheme::standard_webhooks;
  promise(http::verify(verification, headers, body, at(now + 301)).has_value() == !is_dated,
          "what was signed long ago is refused where the scheme signs a time");
  if (body.empty()) return;
  body[choice % body.size()] ^= 1;
  promise(!http::verify(verification, headers, body, at(now)), "a changed body is refused");
}

}  // namespace

void try_one(Input input) {
  static constexpr Scheme schemes[] = {
      Scheme::stripe, Scheme::github, Scheme::shopify, Scheme::slack, Scheme::standard_webhooks, Scheme::hmac};
  const auto scheme = schemes[input.below(6)];
  const auto mode = input.below(256);
  if (mode % 2 == 0) return try_signed(scheme, std::string(input.rest()), mode);
  const auto headers = take_headers(input);
  const auto verification = verification_of(scheme);
  const auto verified = http::verify(verification, headers, input.rest(), at(now));
  promise(!verified, "nothing is let through without a signature by the secret");
  promise(verified.error().message.find(key) == std::string::npos, "no error tells the secret");
  http::delivery_id(scheme, headers);
}

}  // namespace semel::fuzz
