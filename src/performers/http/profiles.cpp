// The built-in profiles. Where a fact comes from, and which ones are choices of ours, is in docs/providers.md.
#include <algorithm>
#include <semel/performers/http.hpp>

namespace semel::http {

namespace {

using std::chrono::hours;
using std::chrono::minutes;
using Kind = ProviderPolicy::Kind;
using As = Comparison::As;
using Texts = std::vector<std::string>;

AnswerRule on_status(int from, int to, Meaning meaning) {
  return {.status_from = from, .status_to = to, .meaning = meaning};
}

AnswerRule on_body(int from, int to, std::string pointer, Texts values, Meaning meaning) {
  return {.status_from = from,
          .status_to = to,
          .pointer = std::move(pointer),
          .values = std::move(values),
          .meaning = meaning};
}

AnswerRule on_any(std::string pointer, Texts values, Meaning meaning) {
  return on_body(0, 999, std::move(pointer), std::move(values), meaning);
}

/// A rotated credential must not settle a thousand intents as failed.
std::vector<AnswerRule> with_credentials_retried(std::vector<AnswerRule> rules) {
  rules.insert(rules.begin(), {on_status(401, 401, Meaning::not_done), on_status(403, 403, Meaning::not_done)});
  return rules;
}

std::vector<Comparison> money(const std::string& asked_amount, const std::string& found_amount,
                              const std::string& asked_currency, const std::string& found_currency) {
  return {{As::decimal, asked_amount, found_amount}, {As::text_without_case, asked_currency, found_currency}};
}

ProviderProfile stripe() {
  const Shape intent{.status = "/status",
                     .reference = "/metadata/intent",
                     .succeeded = {"succeeded"},
                     .failed = {"canceled"},
                     .pending = {"processing", "requires_capture", "requires_action", "requires_confirmation",
                                 "requires_payment_method"},
                     .compared = money("/amount", "/amount", "/currency", "/currency")};
  ProviderProfile profile{.name = "stripe", .key = {.name = "Idempotency-Key", .size_max = 255}};
  profile.policy = {.kind = Kind::idempotent,
                    .key_lifetime = hours(24),
                    .margin = hours(1),
                    .can_look_up = true,
                    .visibility_delay = hours(2)};
  profile.rules = with_credentials_retried({
      on_body(409, 409, "/error/code", {"idempotency_key_in_use"}, Meaning::unfinished),
      on_any("/error/type", {"idempotency_error"}, Meaning::mismatch),
      on_status(409, 409, Meaning::not_done),
      on_status(424, 424, Meaning::unknown),
      {.status_from = 500,
       .status_to = 500,
       .header = "Stripe-Should-Retry",
       .header_value = "true",
       .meaning = Meaning::unknown},
      on_status(500, 500, Meaning::look_up),
      on_status(501, 599, Meaning::unknown),
  });
  profile.answer = intent;
  profile.by_reference = Lookup{
      .url = "/v1/payment_intents/search?query=metadata%5B%27intent%27%5D%3A%27{reference}%27",
      .is_list = true,
      .list = "/data",
      .shape = intent,
      .paging = Lookup::Paging::single,
      .page_pointer = "/has_more",
  };
  profile.by_id = Lookup{.url = "/v1/payment_intents/{id}", .shape = intent};
  profile.notes =
      "The call sets metadata[intent] to the intent's reference, by which it is found. A 500 is kept and "
      "replayed: the webhook tells what came of it.";
  return profile;
}

ProviderProfile adyen() {
  ProviderProfile profile{.name = "adyen", .key = {.name = "idempotency-key", .size_max = 64}};
  profile.policy = {.kind = Kind::idempotent, .key_lifetime = hours(168), .margin = hours(12)};
  profile.rules = with_credentials_retried({
      {.status_from = 300,
       .header = "transient-error",
       .header_value = "true",
       .pointer = "/errorCode",
       .values = {"704"},
       .meaning = Meaning::unfinished},
      {.status_from = 300, .header = "transient-error", .header_value = "true", .meaning = Meaning::not_done},
      on_body(409, 409, "/errorCode", {"704"}, Meaning::look_up),
      on_body(422, 422, "/errorCode", {"704"}, Meaning::look_up),
      on_body(503, 503, "/errorCode", {"703"}, Meaning::not_done),
      on_body(200, 299, "/resultCode", {"Refused", "Cancelled", "Error"}, Meaning::failed),
      on_body(200, 299, "/*", {}, Meaning::succeeded),
      on_status(200, 299, Meaning::unknown),
      on_status(409, 409, Meaning::unknown),
      on_status(500, 599, Meaning::unknown),
  });
  profile.answer = {.id = "/pspReference", .reference = "/merchantReference"};
  profile.notes =
      "There is no lookup: the AUTHORISATION webhook tells, by merchantReference, or the Customer Area. "
      "Every attempt goes to one regional endpoint; keys are not checked across them.";
  return profile;
}

std::vector<AnswerRule> paypal_rules() {
  std::vector<AnswerRule> rules;
  for (const char* pointer : {"/details/*/issue", "/name"}) {
    rules.push_back(on_body(400, 499, pointer, {"PREVIOUS_REQUEST_IN_PROGRESS"}, Meaning::unfinished));
    rules.push_back(on_body(400, 499, pointer, {"PAYPAL_REQUEST_ID_PREVIOUSLY_USED"}, Meaning::mismatch));
    rules.push_back(on_body(400, 499, pointer,
                            {"DUPLICATE_INVOICE_ID", "DUPLICATE_TRANSACTION", "DUPLICATE_REQUEST_ID"},
                            Meaning::look_up));
  }
  const Texts failed{"DECLINED", "FAILED", "CANCELLED"};
  rules.push_back(on_status(409, 409, Meaning::unknown));
  rules.push_back(on_status(500, 599, Meaning::unknown));
  rules.push_back(on_body(200, 299, "/status", failed, Meaning::failed));
  rules.push_back(on_body(200, 299, "/purchase_units/*/payments/captures/*/status", failed, Meaning::failed));
  rules.push_back(on_body(200, 299, "/id", {}, Meaning::succeeded));
  rules.push_back(on_status(204, 204, Meaning::succeeded));
  rules.push_back(on_status(200, 299, Meaning::unknown));
  return with_credentials_retried(std::move(rules));
}

ProviderProfile paypal(std::string name, std::chrono::seconds lifetime, std::chrono::seconds margin) {
  ProviderProfile profile{.name = std::move(name), .key = {.name = "PayPal-Request-Id", .size_max = 108}};
  profile.policy = {.kind = Kind::idempotent,
                    .key_lifetime = lifetime,
                    .margin = margin,
                    .can_look_up = true,
                    .visibility_delay = hours(4)};
  profile.rules = paypal_rules();
  profile.answer = {
      .status = "/status",
      .reference = "/invoice_id",
      .compared = money("/amount/value", "/amount/value", "/amount/currency_code", "/amount/currency_code")};
  Shape listed{.object = "/transaction_info",
               .id = "/transaction_id",
               .status = "/transaction_status",
               .reference = "/invoice_id",
               .succeeded = {"S", "V"},
               .failed = {"D"},
               .pending = {"P"}};
  for (const std::string amount : {"/amount", "/purchase_units/0/amount"})
    for (auto& one : money(amount + "/value", "/transaction_amount/value", amount + "/currency_code",
                           "/transaction_amount/currency_code"))
      listed.compared.push_back(std::move(one));
  profile.by_reference = Lookup{
      .url = "/v1/reporting/transactions?start_date={from}&end_date={to}&fields=transaction_info",
      .is_list = true,
      .list = "/transaction_details",
      .shape = std::move(listed),
      .paging = Lookup::Paging::number,
      .page_pointer = "/total_pages",
      .page_field = "page",
  };
  profile.notes =
      "The call sets invoice_id to the intent's reference, by which it is found within three hours. Create, "
      "capture and refund are three intents, each with its own key.";
  return profile;
}

ProviderProfile square() {
  Shape payment{.status = "/status",
                .reference = "/reference_id",
                .succeeded = {"COMPLETED"},
                .failed = {"FAILED", "CANCELED"},
                .pending = {"APPROVED"},
                .compared = money("/amount_money/amount", "/amount_money/amount", "/amount_money/currency",
                                  "/amount_money/currency")};
  ProviderProfile profile{
      .name = "square",
      .key = {.in = KeyCarrier::In::json_member, .name = "/idempotency_key", .size_max = 45},
  };
  profile.policy = {.kind = Kind::idempotent,
                    .key_lifetime = hours(1),
                    .margin = hours(0),
                    .can_look_up = true,
                    .visibility_delay = minutes(15)};
  const auto code = [](Texts codes, Meaning meaning) { return on_any("/errors/*/code", std::move(codes), meaning); };
  const auto category = [](Texts names, Meaning meaning) {
    return on_any("/errors/*/category", std::move(names), meaning);
  };
  profile.rules = with_credentials_retried({
      code({"IDEMPOTENCY_KEY_REUSED"}, Meaning::mismatch),
      code({"TEMPORARY_ERROR", "RATE_LIMITED"}, Meaning::not_done),
      code({"CARD_TOKEN_USED", "DELAYED_TRANSACTION_CAPTURED", "DELAYED_TRANSACTION_CANCELED", "REFUND_ALREADY_PENDING",
            "CONFLICT"},
           Meaning::look_up),
      code({"REQUEST_TIMEOUT", "GATEWAY_TIMEOUT", "BAD_GATEWAY", "INTERNAL_SERVER_ERROR", "SERVICE_UNAVAILABLE"},
           Meaning::unknown),
      category({"AUTHENTICATION_ERROR", "RATE_LIMIT_ERROR"}, Meaning::not_done),
      category({"PAYMENT_METHOD_ERROR", "INVALID_REQUEST_ERROR"}, Meaning::failed),
      on_any("/errors/*", {}, Meaning::unknown),
      on_status(409, 409, Meaning::unknown),
  });
  payment.object = "/payment";
  profile.answer = payment;
  profile.by_id = Lookup{.url = "/v2/payments/{id}", .shape = payment};
  payment.object = "";
  profile.by_reference = Lookup{
      .url =
          "/v2/payments?begin_time={from}&end_time={to}&total={asked:/amount_money/amount}"
          "&location_id={asked:/location_id}",
      .is_list = true,
      .list = "/payments",
      .shape = std::move(payment),
      .paging = Lookup::Paging::cursor,
      .page_pointer = "/cursor",
      .page_field = "cursor",
  };
  profile.notes =
      "The call sets reference_id to the intent's reference. Where nobody knows, CancelPaymentByIdempotencyKey "
      "(POST /v2/payments/cancel with the key) undoes the payment, and succeeds where there is none.";
  return profile;
}

ProviderProfile gocardless() {
  Shape payment{.status = "/status",
                .reference = "/metadata/intent",
                // Created is what the call asked for; whether the bank pays is told later.
                .succeeded = {"confirmed", "paid_out", "charged_back", "pending_customer_approval",
                              "pending_submission", "submitted"},
                .failed = {"cancelled", "customer_approval_denied", "failed"},
                .compared = money("/payments/amount", "/amount", "/payments/currency", "/currency")};
  payment.compared.push_back({As::text, "/payments/reference", "/reference"});
  payment.compared.push_back({As::text, "/payments/metadata/intent", "/metadata/intent"});
  ProviderProfile profile{.name = "gocardless", .key = {.name = "Idempotency-Key", .size_max = 64}};
  profile.policy = {.kind = Kind::idempotent,
                    .key_lifetime = hours(24),
                    .margin = hours(1),
                    .can_look_up = true,
                    .visibility_delay = hours(1)};
  profile.rules = with_credentials_retried({
      {.status_from = 409,
       .status_to = 409,
       .pointer = "/error/errors/*/reason",
       .values = {"idempotent_creation_conflict"},
       .meaning = Meaning::existing,
       .id = "/error/errors/*/links/conflicting_resource_id"},
      on_status(409, 409, Meaning::unknown),
      on_status(429, 429, Meaning::not_done),
      on_body(400, 499, "/error/type", {"validation_failed", "invalid_api_usage", "invalid_state"}, Meaning::failed),
      on_any("/error/type", {"gocardless"}, Meaning::unknown),
  });
  payment.object = "/payments";
  profile.answer = payment;
  profile.by_id = Lookup{.url = "/payments/{id}", .shape = payment};
  payment.object = "";
  profile.by_reference = Lookup{
      .url = "/payments?mandate={asked:/payments/links/mandate}&created_at%5Bgte%5D={from}",
      .is_list = true,
      .list = "/payments",
      .shape = std::move(payment),
      .paging = Lookup::Paging::cursor,
      .page_pointer = "/meta/cursors/after",
      .page_field = "after",
  };
  profile.notes =
      "For payments. The call sets metadata.intent to the intent's reference. A payment can still fail after "
      "it was confirmed: the webhook tells.";
  return profile;
}

constexpr const char* braintree_search =
    R"({"query":"query ($input: TransactionSearchInput!) { search { transactions(input: $input) { )"
    R"(pageInfo { hasNextPage endCursor } )"
    R"(edges { node { id orderId status amount { value currencyIsoCode } } } } } }",)"
    R"("variables":{"input":{"orderId":{"is":"{reference}"}}}})";

ProviderProfile braintree() {
  Shape transaction{.status = "/status",
                    .reference = "/orderId",
                    .succeeded = {"SUBMITTED_FOR_SETTLEMENT", "SETTLING", "SETTLEMENT_PENDING", "SETTLEMENT_CONFIRMED",
                                  "SETTLED", "AUTHORIZED"},
                    .failed = {"FAILED", "PROCESSOR_DECLINED", "SETTLEMENT_DECLINED", "AUTHORIZATION_EXPIRED", "VOIDED",
                               "GATEWAY_REJECTED"},
                    .pending = {"AUTHORIZING"}};
  transaction.compared = {{As::decimal, "/variables/input/transaction/amount", "/amount/value"},
                          {As::text, "/variables/input/transaction/orderId", "/orderId"}};
  ProviderProfile profile{
      .name = "braintree",
      .key = {.in = KeyCarrier::In::json_member, .name = "/variables/input/apiRequestKey", .size_max = 64},
  };
  profile.policy = {.kind = Kind::idempotent,
                    .key_lifetime = hours(720),
                    .margin = hours(24),
                    .can_look_up = true,
                    .visibility_delay = hours(1)};
  const std::string legacy = "/errors/*/extensions/legacyCode";
  const std::string error_class = "/errors/*/extensions/errorClass";
  const std::string status = "/data/*/transaction/status";
  profile.rules = with_credentials_retried({
      on_any(legacy, {"915233"}, Meaning::unfinished),
      on_any(legacy, {"915232"}, Meaning::mismatch),
      on_any(legacy, {"915234"}, Meaning::look_up),
      on_any(error_class, {"VALIDATION"}, Meaning::failed),
      on_any(error_class, {"AUTHENTICATION", "AUTHORIZATION"}, Meaning::not_done),
      on_any("/errors/*", {}, Meaning::unknown),
      on_body(200, 299, status, transaction.failed, Meaning::failed),
      on_body(200, 299, status, transaction.pending, Meaning::unfinished),
      on_body(200, 299, "/data/*", {}, Meaning::succeeded),
      on_status(200, 299, Meaning::unknown),
      on_status(409, 409, Meaning::unknown),
      on_status(500, 599, Meaning::unknown),
  });
  profile.answer = transaction;
  profile.answer.object = "/data/*/transaction";
  transaction.object = "/node";
  profile.by_reference = Lookup{
      .method = "POST",
      .url = "/graphql",
      .body = braintree_search,
      .is_list = true,
      .list = "/data/search/transactions/edges",
      .shape = std::move(transaction),
      .paging = Lookup::Paging::single,
      .page_pointer = "/data/search/transactions/pageInfo/hasNextPage",
  };
  profile.notes = "The call sets orderId to the intent's reference, and no other transaction has it.";
  return profile;
}

/// Without a key the only guard of Braintree's own is a check for look-alikes, which rejects a second equal purchase
/// that was meant, and lets a late repeat pass. So nothing is repeated before it was looked for.
ProviderProfile braintree_without_key() {
  ProviderProfile profile = braintree();
  profile.name = "braintree_without_key";
  profile.key = {.in = KeyCarrier::In::none};
  profile.policy = {.kind = Kind::lookup, .visibility_delay = hours(1)};
  profile.rules.insert(profile.rules.begin(),
                       on_body(200, 299, "/data/*/transaction/status", {"GATEWAY_REJECTED"}, Meaning::look_up));
  // The rejected look-alike has the same order id as its sibling.
  profile.by_reference->shape.ignored = {"GATEWAY_REJECTED"};
  return profile;
}

}  // namespace

const std::vector<ProviderProfile>& built_in_profiles() {
  static const std::vector<ProviderProfile> profiles{stripe(),
                                                     adyen(),
                                                     paypal("paypal", hours(6), hours(1)),
                                                     paypal("paypal_payments", hours(1080), hours(24)),
                                                     square(),
                                                     gocardless(),
                                                     braintree(),
                                                     braintree_without_key()};
  return profiles;
}

std::optional<ProviderProfile> built_in_profile(std::string_view name) {
  const auto& all = built_in_profiles();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

}  // namespace semel::http
