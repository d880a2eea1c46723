#include "sources/http/signature.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.hpp"
#include "base/encoding.hpp"

namespace semel::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using Scheme = Verification::Scheme;

/// One request that is known to be signed well.
struct Vector {
  const char* what;
  Scheme scheme;
  std::string secret;
  Attributes headers;
  std::string body;
  std::int64_t at = 0;
};

/// Published by the providers: GitHub's and Slack's documentation, the Standard Webhooks libraries' tests. Stripe
/// and Shopify publish none that is whole: theirs were computed apart from this code.
std::vector<Vector> vectors() {
  return {
      {"stripe",
       Scheme::stripe,
       "whsec_test",
       {{"Stripe-Signature", "t=1700000000,v1=f83e06935b365cd1c3337fd77472e96b7d71c0f8c8c2b00a372c1ab020b954e1"}},
       R"({"id":"evt_1","object":"event","type":"invoice.paid","created":1700000000,"livemode":false,)"
       R"("data":{"object":{"id":"in_1","object":"invoice"}}})",
       1'700'000'000},
      {"github",
       Scheme::github,
       "It's a Secret to Everybody",
       {{"X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}},
       "Hello, World!"},
      {"shopify",
       Scheme::shopify,
       "hush",
       {{"X-Shopify-Hmac-SHA256", "7DRtVgeAb7ae6AL8R/n6Zley2DD4CAMPtOBaItAKlXM="}},
       R"({"id":4501,"email":"a@example.com"})"},
      {"slack",
       Scheme::slack,
       "8f742231b10e8888abcd99yyyzzz85a5",
       {{"X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"},
        {"X-Slack-Request-Timestamp", "1531420618"}},
       "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&"
       "channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url="
       "https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id="
       "398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
       1'531'420'618},
      {"standard webhooks",
       Scheme::standard_webhooks,
       "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
       {{"webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"},
        {"webhook-timestamp", "1614265330"},
        {"webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}},
       R"({"test": 2432232314})",
       1'614'265'330},
      {"hmac",
       Scheme::hmac,
       "key",
       {{"X-Signature", "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"}},
       "The quick brown fox jumps over the lazy dog"},
  };
}

Verification verification_of(const Vector& vector) {
  Verification verification{.scheme = vector.scheme, .secrets = {{"current", vector.secret}}};
  if (vector.scheme == Scheme::hmac) verification.header = "X-Signature";
  return verification;
}

std::chrono::system_clock::time_point at(std::int64_t seconds) {
  return std::chrono::system_clock::time_point(std::chrono::seconds(seconds));
}

/// The first header that holds a signature, changed.
Attributes changed(const Attributes& headers, const std::string& name, const std::string& value) {
  Attributes result;
  for (const auto& [each, old] : headers.entries()) result.add(each, each == name ? value : old);
  return result;
}

std::string signature_header(const Vector& vector) {
  for (const auto& [name, value] : vector.headers.entries())
    if (name.find("ignature") != std::string::npos || name.find("Hmac") != std::string::npos) return name;
  return {};
}

TEST(Signature, KnownVectorsAreVerified) {
  for (const auto& vector : vectors()) {
    const auto verified = verify(verification_of(vector), vector.headers, vector.body, at(vector.at));
    EXPECT_TRUE(verified) << vector.what << ": " << (verified ? "" : verified.error().message);
  }
}

TEST(Signature, AnyOneOfSeveralSecretsMayFit) {
  for (const auto& vector : vectors()) {
    auto verification = verification_of(vector);
    const Secret other{"other", vector.scheme == Scheme::standard_webhooks ? "whsec_b3RoZXI=" : "whsec_other"};
    verification.secrets = {other, {"old", vector.secret}};
    EXPECT_TRUE(verify(verification, vector.headers, vector.body, at(vector.at))) << vector.what;
    verification.secrets = {{"old", vector.secret}, other};
    EXPECT_TRUE(verify(verification, vector.headers, vector.body, at(vector.at))) << vector.what;
  }
}

TEST(Signature, AWrongSecretIsNamedByLabelAndNeverByValue) {
  for (const auto& vector : vectors()) {
    auto verification = verification_of(vector);
    const std::string value = vector.scheme == Scheme::standard_webhooks ? "whsec_b3RoZXI=" : "whsec_confidential";
    verification.secrets = {{"spring", value}, {"summer", value + "b3Ro"}};
    const auto verified = verify(verification, vector.headers, vector.body, at(vector.at));
    ASSERT_FALSE(verified) << vector.what;
    EXPECT_EQ(verified.error().code, ErrorCode::signature_invalid);
    EXPECT_THAT(verified.error().message, HasSubstr("\"spring\", \"summer\""));
    EXPECT_THAT(verified.error().message, Not(HasSubstr(value)));
  }
}

TEST(Signature, TheExactBytesCount) {
  for (const auto& vector : vectors()) {
    std::string one_byte = vector.body;
    one_byte[one_byte.size() / 2] ^= 1;
    std::string pretty = vector.body;
    pretty.insert(1, "\n  ");
    for (const std::string& body : {one_byte, pretty, vector.body + "\n", "\xEF\xBB\xBF" + vector.body,
                                    vector.body.substr(1), std::string(), vector.body + std::string(1, '\0')})
      EXPECT_FALSE(verify(verification_of(vector), vector.headers, body, at(vector.at))) << vector.what << ": " << body;
  }
}

TEST(Signature, EveryHeaderIsNeededAndNoneMayBeThereTwice) {
  for (const auto& vector : vectors())
    for (const auto& [name, value] : vector.headers.entries()) {
      Attributes without;
      Attributes twice = vector.headers;
      for (const auto& [each, kept] : vector.headers.entries())
        if (each != name) without.add(each, kept);
      twice.add(name, value);
      for (const auto& headers : {without, twice, changed(vector.headers, name, "")}) {
        const auto verified = verify(verification_of(vector), headers, vector.body, at(vector.at));
        ASSERT_FALSE(verified) << vector.what << ": " << name;
        EXPECT_EQ(verified.error().code, ErrorCode::signature_invalid);
      }
    }
}

TEST(Signature, WhatIsNoSignatureIsRefused) {
  for (const auto& vector : vectors()) {
    const std::string name = signature_header(vector);
    const std::string good(*vector.headers.find(name));
    for (const std::string& bad : {std::string("t=1700000000,v1="), std::string("v1,"), std::string("v0="),
                                   std::string("sha256="), std::string(","), std::string("garbage"),
                                   good.substr(0, good.size() - 2), good + "00", "sha1=" + std::string(40, '0')})
      EXPECT_FALSE(verify(verification_of(vector), changed(vector.headers, name, bad), vector.body, at(vector.at)))
          << vector.what << ": " << bad;
  }
}

TEST(Signature, ASignedTimeMayBeOffByTheToleranceBothWays) {
  for (const auto& vector : vectors()) {
    if (vector.at == 0) continue;
    for (const int off : {-300, -1, 0, 299, 300})
      EXPECT_TRUE(verify(verification_of(vector), vector.headers, vector.body, at(vector.at + off))) << vector.what;
    for (const int off : {-301, 301, 86'400}) {
      const auto verified = verify(verification_of(vector), vector.headers, vector.body, at(vector.at + off));
      ASSERT_FALSE(verified) << vector.what << ": " << off;
      EXPECT_EQ(verified.error().code, ErrorCode::timestamp_outside_tolerance);
    }
  }
}

TEST(Signature, ATimestampIsPartOfWhatIsSigned) {
  for (const auto& vector : vectors()) {
    if (vector.at == 0) continue;
    Attributes headers;
    for (auto [name, value] : vector.headers.entries()) {
      const auto found = value.find(std::to_string(vector.at));
      if (found != std::string::npos) value.replace(found, 10, std::to_string(vector.at + 1));
      headers.add(name, value);
    }
    EXPECT_FALSE(verify(verification_of(vector), headers, vector.body, at(vector.at))) << vector.what;
  }
}

TEST(Signature, StripeTakesAnyOfSeveralV1AndNoOtherScheme) {
  const Vector stripe = vectors().front();
  const std::string digest = std::string(*stripe.headers.find("Stripe-Signature")).substr(16);
  const std::string wrong(64, 'a');
  const std::pair<std::string, bool> cases[] = {
      {"t=1700000000,v1=" + wrong + ",v1=" + digest, true},
      {"t=1700000000,v0=" + wrong + ",v1=" + digest, true},
      {"v1=" + digest + ",t=1700000000", true},
      {"t=1700000000, v1=" + digest, true},
      {"t=1700000000,v0=" + digest, false},
      {"t=1700000000,v2=" + digest, false},
      {"t=1700000000", false},
      {"v1=" + digest, false},
      {"t=1700000000,t=1700000001,v1=" + digest, false},
      {"t=,v1=" + digest, false},
      {"t=-1700000000,v1=" + digest, false},
      {"t=1700000000x,v1=" + digest, false},
      {"t=99999999999999999999,v1=" + digest, false},
  };
  for (const auto& [header, fits] : cases)
    EXPECT_EQ(verify(verification_of(stripe), {{"Stripe-Signature", header}}, stripe.body, at(stripe.at)).has_value(),
              fits)
        << header;
}

TEST(Signature, StandardWebhooksTakesAnyOfSeveralV1AndNoOtherScheme) {
  const Vector standard = vectors()[4];
  const std::string digest = std::string(*standard.headers.find("webhook-signature")).substr(3);
  const std::string wrong = base64_encode(std::string(32, 'x'));
  const std::pair<std::string, bool> cases[] = {{"v1," + wrong + " v1," + digest, true},
                                                {"v1a," + wrong + " v1," + digest, true},
                                                {"v1a," + digest, false},
                                                {"v2," + digest, false},
                                                {digest, false}};
  for (const auto& [header, fits] : cases)
    EXPECT_EQ(verify(verification_of(standard), changed(standard.headers, "webhook-signature", header), standard.body,
                     at(standard.at))
                  .has_value(),
              fits)
        << header;
}

TEST(Signature, ALegacySha1HeaderAloneIsNotEnough) {
  Verification github{.scheme = Scheme::github, .secrets = {{"current", "It's a Secret to Everybody"}}};
  const Attributes legacy{{"X-Hub-Signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"}};
  const auto verified = verify(github, legacy, "Hello, World!", at(0));
  ASSERT_FALSE(verified);
  EXPECT_THAT(verified.error().message, HasSubstr("X-Hub-Signature-256"));
}

TEST(Signature, TheGeneralSchemeHasPrefixDigestAndEncoding) {
  Verification verification{.scheme = Scheme::hmac,
                            .secrets = {{"current", "secret"}},
                            .header = "X-Sign",
                            .prefix = "mac=",
                            .digest = Verification::Digest::sha512,
                            .encoding = Verification::Encoding::base64};
  const std::string mac = base64_encode(hmac_sha512("secret", "body"));
  EXPECT_TRUE(verify(verification, {{"x-sign", "mac=" + mac}}, "body", at(0)));
  EXPECT_FALSE(verify(verification, {{"x-sign", mac}}, "body", at(0)));
  EXPECT_FALSE(
      verify(verification, {{"x-sign", "mac=" + base64_encode(hmac_sha256("secret", "body"))}}, "body", at(0)));
}

TEST(Signature, SettingsThatCannotWorkAreRefused) {
  const std::pair<const char*, Verification> cases[] = {
      {"needs a secret", {.scheme = Scheme::github}},
      {"no scheme", {.scheme = Scheme::none, .secrets = {{"a", "confidential"}}}},
      {"an empty secret", {.scheme = Scheme::github, .secrets = {{"a", ""}}}},
      {"one bad of two", {.scheme = Scheme::github, .secrets = {{"a", "good"}, {"b", ""}}}},
      {"a line's end in it", {.scheme = Scheme::shopify, .secrets = {{"a", "confidential\n"}}}},
      {"an API key", {.scheme = Scheme::stripe, .secrets = {{"a", "sk_live_confidential"}}}},
      {"not base64", {.scheme = Scheme::standard_webhooks, .secrets = {{"a", "whsec_confidential!"}}}},
      {"no key at all", {.scheme = Scheme::standard_webhooks, .secrets = {{"a", "whsec_"}}}},
      {"no header", {.scheme = Scheme::hmac, .secrets = {{"a", "confidential"}}}},
      {"no tolerance", {.scheme = Scheme::slack, .secrets = {{"a", "confidential"}}, .tolerance = 0s}},
  };
  for (const auto& [what, verification] : cases) {
    const auto checked = check_verification(verification);
    ASSERT_FALSE(checked) << what;
    EXPECT_EQ(checked.error().code, ErrorCode::source_settings_invalid) << what;
    EXPECT_THAT(checked.error().message, Not(HasSubstr("confidential"))) << what;
  }
  for (const auto& vector : vectors()) EXPECT_TRUE(check_verification(verification_of(vector))) << vector.what;
  EXPECT_TRUE(check_verification({}));
}

TEST(Signature, ADeliveryIdIsTheSchemesOwn) {
  const Attributes headers{{"x-github-delivery", "g"}, {"X-Shopify-Webhook-Id", "s"}, {"Webhook-Id", "w"}};
  EXPECT_EQ(delivery_id(Scheme::github, headers), "g");
  EXPECT_EQ(delivery_id(Scheme::shopify, headers), "s");
  EXPECT_EQ(delivery_id(Scheme::standard_webhooks, headers), "w");
  for (const Scheme scheme : {Scheme::none, Scheme::stripe, Scheme::slack, Scheme::hmac})
    EXPECT_EQ(delivery_id(scheme, headers), "");
  EXPECT_EQ(delivery_id(Scheme::github, {}), "");
}

}  // namespace
}  // namespace semel::http
