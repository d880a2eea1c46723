#include "net/credentials.hpp"

#include <gtest/gtest.h>

namespace semel::net {
namespace {

TEST(Credentials, AreKnownByTheirUsualNames) {
  for (const char* name : {"Authorization",
                           "proxy-authorization",
                           "COOKIE",
                           "Set-Cookie",
                           "X-Api-Key",
                           "Api-Key",
                           "apikey",
                           "X_API_KEY",
                           "X-Auth-Token",
                           "X-Access-Token",
                           "X-Shopify-Access-Token",
                           "X-Amz-Security-Token",
                           "X-Goog-Api-Key",
                           "Ocp-Apim-Subscription-Key",
                           "X-Functions-Key",
                           "X-Vault-Token",
                           "X-Gitlab-Token",
                           "X-Goog-Channel-Token",
                           "X-Telegram-Bot-Api-Secret-Token",
                           "X-CSRF-Token",
                           "X-Client-Secret",
                           "Password",
                           "Token",
                           "Job-Token"})
    EXPECT_TRUE(holds_credentials(name)) << name;
  for (const char* name :
       {"Idempotency-Key", "X-Routing-Key", "X-Page-Token", "X-Grid-Token", "X-Token-Count", "X-Secretary", "Key",
        "Stripe-Signature", "X-Hub-Signature-256", "Sec-WebSocket-Key", "Host", "X-Api-Version", ""})
    EXPECT_FALSE(holds_credentials(name)) << name;
}

TEST(Credentials, InAQueryAreHidden) {
  const std::pair<const char*, const char*> cases[] = {
      {"/hooks", "/hooks"},
      {"/hooks?", "/hooks?"},
      {"/token=a/b?page=2&token=s3cret", "/token=a/b?page=2&token=***"},
      {"/?api_key=s3cret&a=b=c&&Access_Token=s3=cret", "/?api_key=***&a=b=c&&Access_Token=***"},
      {"/?X-Amz-Signature=s3cret&sig=s3cret&client_secret=", "/?X-Amz-Signature=***&sig=***&client_secret=***"},
      {"/?token&page_token=2&key=3", "/?token&page_token=2&key=3"},
      {"/?a=b?token=c", "/?a=b?token=c"},
  };
  for (const auto& [target, kept] : cases) EXPECT_EQ(without_credentials(target), kept);
}

}  // namespace
}  // namespace semel::net
