// The built-in profiles against docs/providers.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "performers/http/compose.hpp"
#include "performers/http/judge.hpp"

namespace semel::http {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Ask = Judgement::Ask;
using Kind = ProviderPolicy::Kind;
using V = CallVerdict;

net::Returned answer(int status, std::string body = "", Attributes headers = {}) {
  return {.reach = net::Returned::Reach::answered,
          .status = status,
          .headers = std::move(headers),
          .body = std::move(body)};
}

struct Row {
  const char* profile;
  net::Returned returned;
  CallVerdict verdict;
  Ask ask = Ask::nothing;
};

std::string details(const std::string& issue) { return R"({"name": "X", "details": [{"issue": ")" + issue + "\"}]}"; }
std::string square(const std::string& category, const std::string& code) {
  return R"({"errors": [{"category": ")" + category + R"(", "code": ")" + code + "\"}]}";
}
std::string legacy(const std::string& code) {
  return R"({"errors": [{"message": "m", "extensions": {"errorClass": "VALIDATION", "legacyCode": ")" + code + "\"}}]}";
}
std::string charged(const std::string& status) {
  return R"({"data": {"chargePaymentMethod": {"transaction": {"id": "t7", "status": ")" + status + "\"}}}}";
}
const std::string conflict = R"({"error": {"type": "invalid_state", "code": 409, "errors": [{"reason":
  "idempotent_creation_conflict", "links": {"conflicting_resource_id": "PM7"}}]}})";

std::vector<Row> stripe_rows() {
  return {
      {"stripe", answer(200, R"({"id": "pi_7", "status": "succeeded"})"), V::succeeded},
      {"stripe", answer(409, R"({"error": {"code": "idempotency_key_in_use"}})"), V::unfinished},
      {"stripe", answer(400, R"({"error": {"type": "idempotency_error"}})"), V::mismatch},
      {"stripe", answer(409, R"({"error": {"type": "idempotency_error"}})"), V::mismatch},
      {"stripe", answer(409, "{}"), V::not_done},
      {"stripe", answer(429, "{}"), V::not_done},
      {"stripe", answer(402, R"({"error": {"type": "card_error"}})"), V::failed},
      {"stripe", answer(401), V::not_done},
      {"stripe", answer(403), V::not_done},
      {"stripe", answer(400, R"({"error": {"type": "invalid_request_error"}})"), V::failed},
      {"stripe", answer(424), V::unknown},
      {"stripe", answer(500, "{}", {{"stripe-should-retry", "true"}}), V::unknown},
      {"stripe", answer(500, "{}", {{"stripe-should-retry", "false"}}), V::unknown, Ask::by_reference},
      {"stripe", answer(500), V::unknown, Ask::by_reference},
      {"stripe", answer(503, "", {{"Retry-After", "1"}}), V::unknown},
  };
}

std::vector<Row> adyen_rows() {
  const Attributes transient{{"Transient-Error", "true"}};
  return {
      {"adyen", answer(200, R"({"pspReference": "p", "resultCode": "Authorised"})"), V::succeeded},
      {"adyen", answer(200, R"({"pspReference": "p", "resultCode": "Refused"})"), V::failed},
      {"adyen", answer(200, R"({"resultCode": "Cancelled"})"), V::failed},
      {"adyen", answer(200, R"({"resultCode": "Error"})"), V::failed},
      {"adyen", answer(200, R"({"resultCode": "Received"})"), V::succeeded},
      {"adyen", answer(201, R"({"status": "received"})"), V::succeeded},
      {"adyen", answer(200, "<html>"), V::unknown},
      {"adyen", answer(422, R"({"errorCode": "704"})", transient), V::unfinished},
      {"adyen", answer(422, R"({"errorCode": 704})"), V::mismatch},
      {"adyen", answer(409, R"({"errorCode": "704"})"), V::mismatch},
      {"adyen", answer(422, R"({"errorCode": "101"})", transient), V::not_done},
      {"adyen", answer(422, R"({"errorCode": "101"})"), V::failed},
      {"adyen", answer(503, R"({"errorCode": "703"})"), V::not_done},
      {"adyen", answer(503, "", {{"Retry-After", "1"}}), V::unknown},
      {"adyen", answer(500), V::unknown},
      {"adyen", answer(409), V::unknown},
      {"adyen", answer(401), V::not_done},
  };
}

std::vector<Row> paypal_rows() {
  return {
      {"paypal", answer(201, R"({"id": "O7", "status": "CREATED"})"), V::succeeded},
      {"paypal", answer(201, R"({"id": "C7", "status": "COMPLETED"})"), V::succeeded},
      {"paypal", answer(201, R"({"id": "C7", "status": "PENDING"})"), V::succeeded},
      {"paypal", answer(201, R"({"id": "C7", "status": "DECLINED"})"), V::failed},
      {"paypal", answer(201, R"({"id": "C7", "status": "FAILED"})"), V::failed},
      {"paypal", answer(201, R"({"id": "O7", "status": "COMPLETED", "purchase_units": [{"payments": {"captures": [
                    {"status": "DECLINED"}]}}]})"),
       V::failed},
      {"paypal_payments", answer(204), V::succeeded},
      {"paypal_payments", answer(200, "half"), V::unknown},
      {"paypal", answer(422, details("PREVIOUS_REQUEST_IN_PROGRESS")), V::unfinished},
      {"paypal", answer(422, details("PAYPAL_REQUEST_ID_PREVIOUSLY_USED")), V::mismatch},
      {"paypal", answer(422, details("DUPLICATE_INVOICE_ID")), V::unknown, Ask::by_reference},
      {"paypal", answer(400, R"({"name": "DUPLICATE_REQUEST_ID"})"), V::unknown, Ask::by_reference},
      {"paypal", answer(422, details("INSTRUMENT_DECLINED")), V::failed},
      {"paypal", answer(409, "{}"), V::unknown},
      {"paypal", answer(503, "", {{"Retry-After", "1"}}), V::unknown},
      {"paypal", answer(429), V::not_done},
      {"paypal", answer(401), V::not_done},
  };
}

std::vector<Row> square_rows() {
  return {
      {"square", answer(200, R"({"payment": {"id": "p7", "status": "COMPLETED"}})"), V::succeeded},
      {"square", answer(400, square("INVALID_REQUEST_ERROR", "IDEMPOTENCY_KEY_REUSED")), V::mismatch},
      {"square", answer(503, square("API_ERROR", "TEMPORARY_ERROR")), V::not_done},
      {"square", answer(429, square("RATE_LIMIT_ERROR", "RATE_LIMITED")), V::not_done},
      {"square", answer(400, square("INVALID_REQUEST_ERROR", "CARD_TOKEN_USED")), V::unknown, Ask::by_reference},
      {"square", answer(409, square("API_ERROR", "CONFLICT")), V::unknown, Ask::by_reference},
      {"square", answer(504, square("API_ERROR", "GATEWAY_TIMEOUT")), V::unknown},
      {"square", answer(401, square("AUTHENTICATION_ERROR", "UNAUTHORIZED")), V::not_done},
      {"square", answer(402, square("PAYMENT_METHOD_ERROR", "CARD_DECLINED")), V::failed},
      {"square", answer(400, square("INVALID_REQUEST_ERROR", "BAD_REQUEST")), V::failed},
      {"square", answer(400, square("REFUND_ERROR", "REFUND_DECLINED")), V::unknown},
      {"square", answer(409), V::unknown},
      {"square", answer(500), V::unknown},
  };
}

std::vector<Row> gocardless_rows() {
  return {
      {"gocardless", answer(201, R"({"payments": {"id": "PM7", "status": "pending_submission"}})"), V::succeeded},
      {"gocardless", answer(409, conflict), V::unknown, Ask::by_id},
      {"gocardless", answer(409, R"({"error": {"errors": [{"reason": "idempotent_creation_conflict"}]}})"), V::unknown},
      {"gocardless", answer(409, R"({"error": {"type": "invalid_state"}})"), V::unknown},
      {"gocardless", answer(429, R"({"error": {"type": "invalid_api_usage"}})"), V::not_done},
      {"gocardless", answer(401, R"({"error": {"type": "invalid_api_usage"}})"), V::not_done},
      {"gocardless", answer(422, R"({"error": {"type": "validation_failed"}})"), V::failed},
      {"gocardless", answer(422, R"({"error": {"type": "invalid_state"}})"), V::failed},
      {"gocardless", answer(500, R"({"error": {"type": "gocardless"}})"), V::unknown},
  };
}

std::vector<Row> braintree_rows() {
  const std::string refused =
      R"({"errors": [{"message": "m", "extensions": {"errorClass": "AUTHENTICATION"}}], "data": null})";
  return {
      {"braintree", answer(200, charged("SUBMITTED_FOR_SETTLEMENT")), V::succeeded},
      {"braintree", answer(200, charged("AUTHORIZED")), V::succeeded},
      {"braintree", answer(200, charged("AUTHORIZING")), V::unfinished},
      {"braintree", answer(200, charged("PROCESSOR_DECLINED")), V::failed},
      {"braintree", answer(200, charged("GATEWAY_REJECTED")), V::failed},
      {"braintree_without_key", answer(200, charged("GATEWAY_REJECTED")), V::unknown, Ask::by_reference},
      {"braintree", answer(200, legacy("915233")), V::unfinished},
      {"braintree", answer(200, legacy("915232")), V::mismatch},
      {"braintree", answer(422, legacy("915234")), V::unknown, Ask::by_reference},
      {"braintree", answer(200, legacy("81502")), V::failed},
      {"braintree", answer(200, refused), V::not_done},
      {"braintree", answer(200, R"({"errors": [{"message": "m"}], "data": {"a": 1}})"), V::unknown},
      {"braintree", answer(200, "<html>"), V::unknown},
      {"braintree", answer(200, R"({"data": {"refundTransaction": {"refund": {"id": "r"}}}})"), V::succeeded},
      {"braintree", answer(500), V::unknown},
  };
}

TEST(Profiles, ReadAnswersAsTheirPageSays) {
  for (const auto& rows :
       {stripe_rows(), adyen_rows(), paypal_rows(), square_rows(), gocardless_rows(), braintree_rows()})
    for (const auto& row : rows) {
      const auto profile = built_in_profile(row.profile);
      ASSERT_TRUE(profile) << row.profile;
      const Body body("", "");
      const auto judged = judge_answer(*profile, {body, "o1"}, row.returned, {});
      const auto what = std::string(row.profile) + " " + std::to_string(row.returned.status) + " " + row.returned.body;
      EXPECT_EQ(call_verdict_name(judged.report.verdict), call_verdict_name(row.verdict)) << what;
      EXPECT_EQ(judged.ask, row.ask) << what;
    }
}

TEST(Profiles, NoneTakesAConflictForAFailure) {
  for (const auto& profile : built_in_profiles()) {
    const Body body("", "");
    const auto verdict = judge_answer(profile, {body, ""}, answer(409), {}).report.verdict;
    EXPECT_NE(verdict, V::failed) << profile.name;
    EXPECT_NE(verdict, V::refused) << profile.name;
    EXPECT_NE(verdict, V::succeeded) << profile.name;
  }
}

TEST(Profiles, RepeatOnlyWhileTheKeyIsRemembered) {
  struct Expected {
    const char* name;
    Kind kind;
    std::chrono::hours lifetime, margin;
    bool can_look_up;
  };
  const Expected cases[] = {
      {"stripe", Kind::idempotent, 24h, 1h, true},      {"adyen", Kind::idempotent, 168h, 12h, false},
      {"paypal", Kind::idempotent, 6h, 1h, true},       {"paypal_payments", Kind::idempotent, 1080h, 24h, true},
      {"square", Kind::idempotent, 1h, 0h, true},       {"gocardless", Kind::idempotent, 24h, 1h, true},
      {"braintree", Kind::idempotent, 720h, 24h, true}, {"braintree_without_key", Kind::lookup, 0h, 1h, false},
  };
  EXPECT_EQ(built_in_profiles().size(), std::size(cases));
  for (const auto& expected : cases) {
    const auto policy = built_in_profile(expected.name).value().policy;
    EXPECT_EQ(policy.kind, expected.kind) << expected.name;
    EXPECT_EQ(policy.key_lifetime, expected.lifetime) << expected.name;
    EXPECT_EQ(policy.margin, expected.margin) << expected.name;
    EXPECT_EQ(policy.can_look_up, expected.can_look_up) << expected.name;
  }
  EXPECT_EQ(built_in_profile("none"), std::nullopt);
}

TEST(Profiles, CanLookUpWhereTheySayThatTheyCan) {
  std::set<std::string> names;
  for (const auto& profile : built_in_profiles()) {
    EXPECT_TRUE(names.insert(profile.name).second);
    const bool can = profile.policy.kind == Kind::lookup || profile.policy.can_look_up;
    EXPECT_EQ(can, profile.by_reference.has_value()) << profile.name;
    EXPECT_GE(profile.key.size_max, 36u) << profile.name << " must take a UUID";
    EXPECT_FALSE(profile.notes.empty());
    EXPECT_TRUE(http_performer({.profile = profile})) << profile.name;
  }
}

/// Where a lost answer leaves nothing but the key, it is enough: operators are told so.
TEST(Profiles, SquareUndoesAPaymentByItsKey) {
  const auto profile = built_in_profile("square").value();
  EXPECT_THAT(profile.notes, HasSubstr("POST /v2/payments/cancel with the key"));
  EXPECT_THAT(profile.notes, HasSubstr("succeeds where there is none"));
  EXPECT_EQ(profile.key.name, "/idempotency_key");
}

struct Found {
  const char* profile;
  std::string request;
  std::string body;
  CallVerdict verdict;
};

TEST(Profiles, CompareWhatTheyFind) {
  const std::string square_request = R"({"amount_money": {"amount": 500, "currency": "USD"}})";
  const std::string square_list = R"({"payments": [{"id": "p7", "reference_id": "o1", "status": "COMPLETED",
      "amount_money": {"amount": 500, "currency": "USD"}}]})";
  const std::string paypal_list = R"({"total_pages": 1, "transaction_details": [{"transaction_info": {
      "transaction_id": "T7", "invoice_id": "o1", "transaction_status": "S",
      "transaction_amount": {"value": "5.00", "currency_code": "USD"}}}]})";
  const std::string braintree_list = R"({"data": {"search": {"transactions": {"pageInfo": {"hasNextPage": false},
      "edges": [{"node": {"id": "a", "orderId": "o1", "status": "GATEWAY_REJECTED",
                          "amount": {"value": "5.00", "currencyIsoCode": "USD"}}},
                {"node": {"id": "b", "orderId": "o1", "status": "SETTLING",
                          "amount": {"value": "5.00", "currencyIsoCode": "USD"}}}]}}}})";
  const std::string gocardless_list = R"({"payments": [{"id": "PM7", "status": "failed", "amount": 500,
      "currency": "GBP", "metadata": {"intent": "o1"}}], "meta": {"cursors": {"after": null}}})";
  const std::string stripe_list = R"({"has_more": false, "data": [{"id": "pi_7", "status": "succeeded", "amount": 500,
      "currency": "usd", "metadata": {"intent": "o1"}}]})";
  const Found cases[] = {
      {"stripe", "amount=500&currency=usd&metadata%5Bintent%5D=o1", stripe_list, V::succeeded},
      {"stripe", "amount=501&currency=usd", stripe_list, V::mismatch},
      {"stripe", "", R"({"has_more": true, "data": []})", V::unknown},
      {"square", square_request, square_list, V::succeeded},
      {"square", R"({"amount_money": {"amount": 501}})", square_list, V::mismatch},
      {"paypal", R"({"amount": {"value": "5.0", "currency_code": "USD"}})", paypal_list, V::succeeded},
      {"paypal", R"({"purchase_units": [{"amount": {"value": "6.00", "currency_code": "USD"}}]})", paypal_list,
       V::mismatch},
      {"gocardless", R"({"payments": {"amount": 500, "currency": "GBP"}})", gocardless_list, V::failed},
      {"gocardless", R"({"payments": {"amount": 400, "currency": "GBP"}})", gocardless_list, V::mismatch},
      {"braintree_without_key", R"({"variables": {"input": {"transaction": {"amount": "5"}}}})", braintree_list,
       V::succeeded},
      {"braintree", R"({"variables": {"input": {"transaction": {"amount": "5"}}}})", braintree_list, V::mismatch},
  };
  for (const auto& found : cases) {
    const auto profile = built_in_profile(found.profile).value();
    const Body body(found.request, "");
    const auto page = judge_page(*profile.by_reference, {body, "o1"}, answer(200, found.body), 1, {});
    EXPECT_EQ(call_verdict_name(page.report.verdict), call_verdict_name(found.verdict))
        << found.profile << found.request;
  }
}

TEST(Profiles, AskWhereTheCallWent) {
  const StoredRequest request{.url = "https://api.sandbox.example/v1/x", .body = R"({"location_id": "L"})"};
  const Body body(request.body, "");
  const auto now = std::chrono::sys_days(std::chrono::year(2026) / 3 / 4);
  const std::pair<const char*, const char*> cases[] = {
      {"stripe", "/v1/payment_intents/search?query=metadata%5B%27intent%27%5D%3A%27o1%27"},
      {"paypal",
       "/v1/reporting/transactions?start_date=2026-03-01T00%3A00%3A00Z&end_date=2026-03-04T00%3A00%3A00Z&fields="
       "transaction_info"},
      {"square", "/v2/payments?begin_time=2026-03-01T00%3A00%3A00Z&end_time=2026-03-04T00%3A00%3A00Z&location_id=L"},
      {"gocardless", "/payments?created_at%5Bgte%5D=2026-03-01T00%3A00%3A00Z"},
      {"braintree", "/graphql"},
  };
  for (const auto& [name, target] : cases) {
    const auto outgoing =
        compose_lookup(*built_in_profile(name).value().by_reference,
                       {.request = request, .asked = body, .reference = "o1", .key = "k", .now = now});
    EXPECT_EQ(outgoing.value().url, std::string("https://api.sandbox.example") + target);
    EXPECT_EQ(net::outgoing_problem(*outgoing), "") << name;
  }
  const auto braintree =
      compose_lookup(*built_in_profile("braintree").value().by_reference,
                     {.request = request, .asked = body, .reference = "o\"1", .key = "k", .now = now});
  const Body sent(braintree.value().body, "application/json");
  EXPECT_EQ(sent.text("/variables/input/orderId/is"), "o\"1");
}

}  // namespace
}  // namespace semel::http
