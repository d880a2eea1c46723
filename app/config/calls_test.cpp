// Calls, providers, targets and publications as the configuration says them, and every mistake in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.hpp"

namespace semel::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

Loaded read(const std::string& text) {
  return read_config(text, "semel.yaml", [](const std::string& name) -> std::optional<std::string> {
    if (name == "KEY") return "sk_live_1";
    if (name == "SECRET") return "whsec_c2VjcmV0";
    return std::nullopt;
  });
}

/// "SEMEL-0404 handlers.charge.call.url: …"
std::vector<std::string> mistakes_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const auto& mistake : read(text).mistakes) {
    EXPECT_GT(mistake.line, 0);
    lines.push_back(code_name(mistake.code) + " " + mistake.path + ": " + mistake.message);
  }
  return lines;
}

constexpr auto example = R"(store: sqlite:shop.db
sources:
  orders: { file: orders.jsonl }
providers:
  stripe: { profile: stripe, headers: { Authorization: "Bearer ${KEY}" }, calls_max: 16, calls_per_second: 25 }
  bank:
    key: { header: X-Key, lifetime: 24h, margin: 2h }
    lookup:
      url: "https://bank.example/charges?reference={reference}"
      list: /data
      reference: /reference
      status: /status
      succeeded: [ done, captured ]
      failed: [ declined ]
      visibility_delay: 90s
      compare: { /amount: /amount, /currency: { at: /currency, as: text_without_case } }
    answers: [ { status: [ 409, 423 ], verdict: unfinished }, { at: /error/code, is: [ gone ], verdict: failed } ]
    breaker: { failures: 3, pause: 5s }
  plain: {}
targets:
  events: { url: "https://hooks.example/in", secrets: [ "${SECRET}" ], sends_max: 4 }
  audit: { file: out.jsonl }
  jobs: { queue: work }
handlers:
  charge:
    from: orders
    key: /id
    execute: INSERT INTO orders (id) VALUES (:/id)
    call:
      effect: charge-card
      provider: bank
      url: "https://bank.example/customers/:{/customer}/charges"
      headers: { X-Version: "7" }
      body: { amount: ":/amount", text: "order :{/id}", nested: [ 1, ":key" ] }
      reference: /id
      timeout: 5s
      lease: 2s
      give_up_after: 1h
      settle:
        execute: UPDATE orders SET charge = :outcome_reference, state = :outcome WHERE id = :/id
        answer: { status: 201, body: { id: ":{outcome:/id}" } }
        on_failure: { execute: UPDATE orders SET state = :outcome WHERE id = :/id, answer: { status: 402 } }
        publish: { to: jobs }
        call:
          effect: capture
          provider: plain
          method: PUT
          url: "https://plain.example/captures/:{outcome:/id}"
          form: { amount: ":/amount", metadata: { order: ":/id" } }
      compensate: { effect: void, url: "https://bank.example/charges/:{outcome:/id}/void" }
    publish:
      - { to: events, order_key: /customer }
      - { to: audit, body: { id: ":/id" } }
    waiting: { deadline: 3s, late: 409, again: wait }
  other:
    from: orders
    key: /id
    call: { provider: stripe, url: "https://api.stripe.com/v1/refunds", form: { charge: ":/charge" } }
)";

TEST(Calls, ReadsWhatIsCalledPublishedAndWaitedFor) {
  ASSERT_THAT(mistakes_of(example), IsEmpty());
  const auto config = *read(example).config;
  const auto& stripe = config.providers[0];
  EXPECT_EQ(stripe.performer.headers.find("authorization"), "Bearer sk_live_1");
  EXPECT_EQ(config.redactor.clean("sk_live_1"), "***");
  EXPECT_EQ(stripe.limits.calls_max, 16u);
  EXPECT_EQ(stripe.policy().kind, ProviderPolicy::Kind::idempotent);
  const auto& bank = config.providers[1];
  EXPECT_EQ(bank.performer.profile.key.name, "X-Key");
  EXPECT_EQ(bank.policy().kind, ProviderPolicy::Kind::idempotent);
  EXPECT_TRUE(bank.policy().can_look_up);
  EXPECT_EQ(bank.policy().key_lifetime, 24h);
  EXPECT_EQ(bank.policy().margin, 2h);
  EXPECT_EQ(bank.policy().visibility_delay, 90s);
  EXPECT_EQ(bank.performer.profile.by_reference->shape.succeeded, (std::vector<std::string>{"done", "captured"}));
  ASSERT_EQ(bank.performer.profile.rules.size(), 3u);
  EXPECT_EQ(bank.performer.profile.rules[1].status_from, 423);
  EXPECT_EQ(bank.performer.profile.rules[2].values, std::vector<std::string>{"gone"});
  EXPECT_EQ(bank.limits.breaker_failures, 3);
  EXPECT_EQ(config.providers[2].policy().kind, ProviderPolicy::Kind::neither);
  EXPECT_EQ(config.providers[2].performer.profile.key.in, http::KeyCarrier::In::none);
  EXPECT_EQ(config.targets[0].options.sends_max, 4u);
  EXPECT_EQ(config.targets[2].name(), "work");

  const auto& handler = config.handlers[0];
  const auto& call = handler.calls.at(0);
  EXPECT_EQ(call.options.name, "charge-card");
  EXPECT_EQ(call.options.timeout, 5s);
  EXPECT_EQ(call.options.lease, 2s);
  EXPECT_EQ(call.options.give_up_after, 1h);
  EXPECT_EQ(call.settle.execute.size(), 1u);
  EXPECT_EQ(call.settle.publish.at(0).to, "work") << "the queue's own name";
  EXPECT_EQ(call.on_failure->answer->status, 402);
  EXPECT_EQ(call.next.at(0).request.method, "PUT");
  EXPECT_EQ(call.next.at(0).request.form.at(1).first, "metadata[order]");
  EXPECT_EQ(call.compensate->options.provider, "bank") << "the call's own, unless it says another one";
  EXPECT_EQ(handler.publish.size(), 2u);
  EXPECT_FALSE(handler.publish[0].body) << "the message's own";
  EXPECT_EQ(handler.options.waiting.deadline, 3s);
  EXPECT_FALSE(handler.options.waiting.accepted_when_late);
  EXPECT_TRUE(handler.options.waiting.wait_again);
  EXPECT_EQ(config.handlers[1].calls.at(0).options.name, "other") << "the handler's name";
}

TEST(Calls, FillsARequestFromTheMessageAndFromTheOutcome) {
  const auto config = *read(example).config;
  const auto& call = config.handlers[0].calls[0];
  const Delivery delivery{.receipt = Receipt(0),
                          .source = "orders",
                          .body = R"({"id":"o\"1","customer":"a/b","amount":12.50})",
                          .problem = "",
                          .attributes = {},
                          .transport_id = "",
                          .principal = "",
                          .receive_count = {},
                          .sent_at = {}};
  const auto document = Document::parse(delivery.body).value();
  const auto key = Key::from_bytes("k").value();
  const Message message(delivery, &document, key);
  EXPECT_EQ(url_for(call.request.url, message), "https://bank.example/customers/a%2Fb/charges");
  EXPECT_EQ(body_for(call.request.body, message), R"({"amount":12.50,"text":"order o\"1","nested":[1,"k"]})");
  const Intent intent{.id = {}, .record = {{"charge", ""}, key}, .status = {.state = IntentState::succeeded}};
  const CallOutcome outcome{.reference = "ch_1", .answer = {.status = 201, .body = R"({"id":"../x"})"}};
  const Settled settled(message, intent, outcome);
  const Facts facts(settled);
  EXPECT_EQ(url_for(call.next[0].request.url, facts), "https://plain.example/captures/..%2Fx");
  EXPECT_EQ(form_for(call.next[0].request.form, facts), "amount=12.50&metadata%5Border%5D=o%221");
  EXPECT_EQ(values_for(call.settle.execute[0], facts),
            (std::vector<Value>{std::string("ch_1"), std::string("succeeded"), std::string("o\"1")}));
}

TEST(Calls, AUrlTakesNoStepUpAndNothingThatIsMissing) {
  const auto url = parse_text_template("https://a/:{/id}").value();
  const auto key = Key::from_bytes("k").value();
  for (const auto* body : {R"({"id":".."})", R"({"id":"."})", R"({"id":""})", R"({})", "no json"}) {
    Delivery delivery{.receipt = Receipt(0),
                      .source = "",
                      .body = body,
                      .problem = "",
                      .attributes = {},
                      .transport_id = "",
                      .principal = "",
                      .receive_count = {},
                      .sent_at = {}};
    const auto document = Document::parse(body);
    const Message message(delivery, document ? &*document : nullptr, key);
    EXPECT_THROW(url_for(url, message), Failure) << body;
  }
}

/// The example with one piece replaced, and what is then wrong with it.
struct Replaced {
  const char* from;
  const char* to;
  std::vector<std::string> mistakes;
};

const std::string stored =
    "what is called with is stored until it is done, and holds no secret; credentials stand at providers.NAME.headers";

const Replaced replaced_pieces[] = {
    {"provider: bank\n",
     "provider: bnak\n",
     {"SEMEL-0407 handlers.charge.call.provider: there is no provider \"bnak\"; did you mean \"bank\"?"}},
    {"provider: bank\n",
     "provider: adyen\n",
     {"SEMEL-0407 handlers.charge.call.provider: there is no provider \"adyen\"; write providers: { adyen: { profile: "
      "adyen, headers: { … } } }"}},
    {"to: events",
     "to: event",
     {"SEMEL-0407 handlers.charge.publish[0].to: there is no target \"event\"; did you mean \"events\"?"}},
    {"profile: stripe",
     "profile: strip",
     {"SEMEL-0407 providers.stripe.profile: there is no built-in profile \"strip\"; did you mean \"stripe\"?"}},
    {"X-Version: \"7\"",
     "Authorization: \"Bearer ${KEY}\"",
     {"SEMEL-0404 handlers.charge.call.headers.Authorization: " + stored}},
    {"X-Version: \"7\"", "X-Version: \"${KEY}\"", {"SEMEL-0404 handlers.charge.call.headers.X-Version: " + stored}},
    {"amount: \":/amount\", text", "amount: \"${KEY}\", text", {"SEMEL-0404 handlers.charge.call.body: " + stored}},
    {"amount: \":/amount\", text",
     "amount: \":{header:Authorization}\", text",
     {"SEMEL-0404 handlers.charge.call.body: " + stored}},
    {"url: \"https://bank.example/customers",
     "url: \"https://me:pw@bank.example/customers",
     {"SEMEL-0404 handlers.charge.call.url: " + stored}},
    {"X-Version: \"7\"",
     "content-length: \"7\"",
     {"SEMEL-0404 handlers.charge.call.headers.content-length: frames the message or belongs to one connection; "
      "whoever sends the request sets it"}},
    {"X-Version: \"7\"",
     "Host: \"7\"",
     {"SEMEL-0404 handlers.charge.call.headers.Host: frames the message or belongs to one connection; whoever "
      "sends the request sets it"}},
    {"X-Version: \"7\"",
     "Idempotency-Key: \"7\"",
     {"SEMEL-0404 handlers.charge.call.headers.Idempotency-Key: the key is Semel's own, the same in every attempt; "
      "where it goes stands at providers.NAME.key"}},
    {"url: \"https://bank.example/customers/:{/customer}/charges\"",
     "url: \"https://:{/host}/charges\"",
     {"SEMEL-0404 handlers.charge.call.url: the host is written out: a message does not choose where calls go"}},
    {"url: \"https://bank.example/customers/:{/customer}/charges\"",
     "url: bank.example",
     {"SEMEL-0404 handlers.charge.call.url: must begin with https:// or http://"}},
    {"VALUES (:/id)",
     "VALUES (:outcome)",
     {"SEMEL-0406 handlers.charge.execute: \":outcome\" is known only once the call has ended: in settle, in the call "
      "that follows it, and in compensate"}},
    {"effect: capture",
     "effect: charge-card",
     {"SEMEL-0404 handlers.charge.call.settle.call.effect: there is another effect \"charge-card\""}},
    {"          effect: capture\n",
     "",
     {"SEMEL-0403 handlers.charge.call.settle.call: \"effect\" is missing: a name of its own, such as charge-card"}},
    {"header: X-Key, lifetime: 24h",
     "header: X-Key",
     {"SEMEL-0403 providers.bank.key: \"lifetime\" is missing: how long the provider remembers a key, such as 24h"}},
    {"header: X-Key, lifetime: 24h",
     "header: X-Key, form_field: key, lifetime: 24h",
     {"SEMEL-0404 providers.bank.key: says where the provider takes the key, in one place: header, field (a JSON "
      "Pointer into the body) or form_field"}},
    {"lifetime: 24h, margin: 2h",
     "lifetime: 1h",
     {"SEMEL-0404 providers.bank.key.lifetime: the margin (1h unless stated) leaves nothing of the lifetime: no repeat "
      "would be made"}},
    {"?reference={reference}",
     "",
     {"SEMEL-0404 providers.bank.lookup: asks about no call in particular: write {reference} or {key} into url or "
      "body"}},
    {"      reference: /reference\n",
     "",
     {"SEMEL-0403 providers.bank.lookup: \"reference\" is missing: where each of the list holds ours, such as "
      "/reference; others in it do not count"}},
    {"      status: /status\n",
     "",
     {"SEMEL-0403 providers.bank.lookup: names values of a status, but not where it is: status: /status"}},
    {"verdict: unfinished",
     "verdict: unfinishd",
     {"SEMEL-0404 providers.bank.answers[0].verdict: must be one of succeeded, failed, refused, not_done, unknown, "
      "unfinished, mismatch, look_up, existing, not \"unfinishd\"; did you mean \"unfinished\"?"}},
    {"is: [ gone ], verdict: failed",
     "is: [ gone ], verdict: existing",
     {"SEMEL-0403 providers.bank.answers[1].verdict: needs \"id\" (where the answer names what exists) and the "
      "provider's lookup_by_id"}},
    {"{ queue: work }",
     "{ queue: events }",
     {"SEMEL-0404 targets.jobs.queue: the target \"events\" has this name already"}},
    {"{ queue: work }",
     "{}",
     {"SEMEL-0403 targets.jobs: is one of url (a webhook), file (JSON lines) or queue (a queue in the store)"}},
    {"https://hooks.example/in",
     "hooks.example",
     {"SEMEL-0404 targets.events.url: must begin with https:// or http://"}},
    {"late: 409", "late: 503", {"SEMEL-0404 handlers.charge.waiting.late: must be one of 202, 409, not \"503\""}},
    {"    key: /id\n    execute: INSERT",
     "    key: /id\n    guard: natural\n    execute: INSERT",
     {"SEMEL-0404 handlers.charge.call: needs guard record: with another one nothing remembers that it was asked for",
      "SEMEL-0404 handlers.charge.publish: needs guard record: with another one nothing remembers that it was asked "
      "for"}},
    {"body: { amount: \":/amount\", text",
     "form: {}\n      body: { amount: \":/amount\", text",
     {"SEMEL-0404 handlers.charge.call.form: either \"body\" or \"form\""}},
    {"reference: /id\n",
     "refrence: /id\n",
     {"SEMEL-0402 handlers.charge.call.refrence: unknown field; did you mean \"reference\"?"}},
};

TEST(Calls, SaysEveryMistakeWithItsPlaceAndWhatToWrite) {
  for (const auto& c : replaced_pieces) {
    std::string text = example;
    const auto at = text.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    text.replace(at, std::string(c.from).size(), c.to);
    EXPECT_EQ(mistakes_of(text), c.mistakes) << c.to;
  }
}

TEST(Calls, AProviderThatIsAskedByReferenceNeedsOne) {
  auto text = std::string(example);
  text.replace(text.find("    key: { header: X-Key, lifetime: 24h, margin: 2h }\n"), 53, "");
  text.replace(text.find("      reference: /id\n"), 21, "");
  EXPECT_THAT(mistakes_of(text), ElementsAre(HasSubstr("\"reference\" is missing")));
}

TEST(Calls, WarnsOfSecretsInTheFileAndOfTargetsThatAreNotSigned) {
  auto text = std::string(example);
  text.replace(text.find("${KEY}"), 6, "sk_inline");
  text.replace(text.find(", secrets: [ \"${SECRET}\" ]"), 26, "");
  EXPECT_THAT(read(text).config.value().warnings,
              ElementsAre(HasSubstr("providers.stripe.headers.Authorization: a secret stands in the file"),
                          HasSubstr("targets.events: no secrets")));
}

}  // namespace
}  // namespace semel::app
