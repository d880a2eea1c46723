// Webhook signatures: a keyed digest (HMAC) over the raw bytes that were received.
//
//   scheme             header                    holds                        signed text               key
//   stripe             Stripe-Signature          t=<seconds>,v1=<hex>,…       <t>.<body>                the secret,
//   whole github             X-Hub-Signature-256       sha256=<hex>                 <body>                    the
//   secret shopify            X-Shopify-Hmac-Sha256     <base64>                     <body>                    the
//   secret slack              X-Slack-Signature         v0=<hex>                     v0:<timestamp>:<body>     the
//   secret standard_webhooks  webhook-signature         v1,<base64> v1,<base64> …    <id>.<timestamp>.<body>   base64
//   after whsec_ hmac               as set                    prefix, hex or base64        <body> the secret
//
// slack's timestamp is in X-Slack-Request-Timestamp; standard_webhooks has webhook-id and webhook-timestamp.
#pragma once

#include <chrono>
#include <semel/delivery.hpp>
#include <semel/result.hpp>
#include <semel/sources/http.hpp>
#include <string>
#include <string_view>

namespace semel::http {

/// Says what cannot work: no secrets, a secret that cannot be one of its scheme, no header to look in.
/// Errors: source_settings_invalid, with the secret's label and never its value.
Result<void> check_verification(const Verification& verification);

/// Whether one of the secrets signed `body`, and lately where the scheme signs a time. Errors: signature_invalid,
/// timestamp_outside_tolerance; they name the secrets that were tried by their labels.
Result<void> verify(const Verification& verification, const Attributes& headers, std::string_view body,
                    std::chrono::system_clock::time_point now);

/// The scheme's own id of a delivery, the same on its repeats; empty where it has none.
std::string delivery_id(Verification::Scheme scheme, const Attributes& headers);

}  // namespace semel::http
