#include "config/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace semel::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

const auto usual_environment = environment({{"STRIPE_SECRET", "whsec_9876"}, {"EMPTY", ""}, {"PASSWORD", "hunter2"}});

Loaded read(const std::string& text) { return read_config(text, "semel.yaml", usual_environment); }

std::vector<std::string> mistakes_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const auto& mistake : read(text).mistakes) {
    lines.push_back(code_name(mistake.code) + " " + place_and_message(mistake, "semel.yaml"));
  }
  return lines;
}

constexpr auto usual_example = R"(store: postgresql:///shop
sources:
  stripe:
    http: { listen: 127.0.0.1:8080, path: /webhooks/stripe, verify: { stripe: { secrets: [ "${STRIPE_SECRET}" ] } } }
handlers:
  record-invoice:
    from: stripe
    when: { /type: invoice.paid }
    key: /data/object/id
    execute:
      - INSERT INTO invoices (id, cents) VALUES (:key, :/data/object/amount_paid)
    answer: { status: 200, body: { ok: true } }
)";

TEST(Config, refuses_aliases_that_make_the_tree_endless_or_vast) {
  const std::string head = std::string(usual_example) + "    fingerprint: body\n";
  std::string vast = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name < 'k'; ++name) {
    vast += std::string(1, name) + ": &" + name + " [";
    for (int i = 0; i < 10; ++i) vast += std::string(i ? ", *" : "*") + static_cast<char>(name - 1);
    vast += "]\n";
  }
  for (const auto& text : {"a: &a { b: *a }\n" + head, "? &a [ *a ]\n: 1\n" + head, vast + head}) {
    EXPECT_THAT(mistakes_of(text), ElementsAre("SEMEL-0401 semel.yaml:1:1: too large or too deep; an alias (*name) may "
                                               "stand for what contains it"));
  }
}

TEST(Config, reads_the_example) {
  const auto loaded = read(usual_example);
  ASSERT_THAT(mistakes_of(usual_example), IsEmpty());
  const auto& config = *loaded.config;
  EXPECT_EQ(std::get<postgres::Options>(config.store).connection, "postgresql:///shop");
  ASSERT_EQ(config.listeners.size(), 1u);
  EXPECT_EQ(config.listeners[0].port, 8080);
  const auto& webhook = std::get<http::Webhook>(std::get<HttpSource>(config.sources.at(0).kind).kind);
  EXPECT_EQ(webhook.name, "stripe");
  EXPECT_EQ(webhook.path, "/webhooks/stripe");
  EXPECT_EQ(webhook.verify.scheme, http::Verification::Scheme::stripe);
  EXPECT_EQ(webhook.verify.secrets.at(0).value, "whsec_9876");
  const auto& handler = config.handlers.at(0);
  EXPECT_EQ(handler.options.name, "record-invoice");
  EXPECT_THAT(handler.options.from, ElementsAre("stripe"));
  EXPECT_EQ(handler.options.when.at(0).expression, "/type");
  EXPECT_EQ(handler.options.when.at(0).equals, "invoice.paid");
  EXPECT_EQ(handler.options.key.text(), "/data/object/id");
  EXPECT_EQ(handler.options.guard, Guard::record);
  EXPECT_EQ(handler.options.retention, 24h * 30);
  EXPECT_EQ(handler.execute.at(0).sql, "INSERT INTO invoices (id, cents) VALUES ($1, $2)");
  EXPECT_EQ(fixed_answer(handler.answer).body, R"({"ok":true})");
  EXPECT_EQ(handler.answer.headers.find("content-type"), "application/json");
  EXPECT_EQ(config.admin->port, 9090);
  EXPECT_THAT(config.warnings, IsEmpty());
}

constexpr auto every_field = R"(store:
  uri: postgresql://shop:${PASSWORD}@db/shop
  lock_timeout: 500ms
  statement_timeout: 1m
  connect_timeout: 3s
  schema: once
  prepared_statements: false
  allow_unsafe_durability: true
sources:
  hooks:
    http:
      listen: "[::1]:8443"
      path: /hooks
      tls: { certificate: a.pem, key: b.pem }
      limits:
        header_bytes: 8KiB
        body_bytes: 2MiB
        receive_timeout: 5s
        idle_timeout: 30s
        answer_deadline: 20s
        connections: 10
        queued: 20
      verify:
        hmac: { secrets: [ "${STRIPE_SECRET}" ], header: X-Sign, prefix: "v1=", digest: sha512, encoding: base64 }
  orders:
    http: { listen: "[::1]:8443", path: /orders, requests: { principal: { header: X-Customer } } }
  backlog:
    file: { path: a.jsonl, line_bytes_max: 1MiB, buffered_lines_max: 5 }
handlers:
  hook:
    from: [ hooks, backlog ]
    key: [ /account, header:X-Event-Id ]
    key_is: event-id
    guard: unique
    fingerprint: { except: [ /created, /attempt ] }
    retention: 7d
    execute_batch: INSERT INTO t SELECT * FROM unnest(:key::text[]) ON CONFLICT DO NOTHING
    keep_answer: false
    retry: { attempts: 3, delay: 50ms, delay_max: 2s }
  order:
    from: orders
    execute: INSERT INTO orders VALUES (:key)
    answer: { status: 201, headers: { Location: /orders }, body: [ ":key", 1, "1", null, yes, ":not one" ] }
admin: { listen: 0.0.0.0:9999 }
lanes: 4
batch_max: 50
shutdown_deadline: 3s
log: { format: json, level: warning }
)";

TEST(Config, reads_every_field) {
  ASSERT_THAT(mistakes_of(every_field), IsEmpty());
  const auto config = *read(every_field).config;
  const auto& store = std::get<postgres::Options>(config.store);
  EXPECT_EQ(store.connection, "postgresql://shop:hunter2@db/shop");
  EXPECT_EQ(store.lock_timeout, 500ms);
  EXPECT_EQ(store.statement_timeout, 1min);
  EXPECT_EQ(store.connect_timeout, 3s);
  EXPECT_EQ(store.schema, "once");
  EXPECT_FALSE(store.prepared_statements);
  EXPECT_TRUE(store.allow_unsafe_durability);

  ASSERT_EQ(config.listeners.size(), 1u) << "sources on one address share a listener";
  const auto& listener = config.listeners[0];
  EXPECT_EQ(listener.address, "::1");
  EXPECT_EQ(listener.tls->key_file, "b.pem");
  EXPECT_EQ(listener.header_bytes_max, 8192u);
  EXPECT_EQ(listener.body_bytes_max, 2u << 20);
  EXPECT_EQ(listener.answer_deadline, 20s);
  EXPECT_EQ(listener.queued_max, 20u);
  const auto& verify = std::get<http::Webhook>(std::get<HttpSource>(config.sources[0].kind).kind).verify;
  EXPECT_EQ(verify.header, "X-Sign");
  EXPECT_EQ(verify.encoding, http::Verification::Encoding::base64);
  const auto& requests = std::get<http::Requests>(std::get<HttpSource>(config.sources[1].kind).kind);
  EXPECT_EQ(requests.principal.header, "X-Customer");
  EXPECT_EQ(std::get<file::Options>(config.sources[2].kind).line_bytes_max, 1u << 20);

  const auto& hook = config.handlers[0];
  EXPECT_EQ(hook.options.key.parts().size(), 2u);
  EXPECT_TRUE(hook.options.key_is_event_id);
  EXPECT_EQ(hook.options.guard, Guard::unique);
  EXPECT_EQ(hook.options.fingerprint.parts, FingerprintPolicy::Parts::all_but);
  EXPECT_THAT(hook.options.fingerprint.pointers, ElementsAre("/created", "/attempt"));
  EXPECT_EQ(hook.options.retention, 24h * 7);
  EXPECT_FALSE(hook.options.keep_answer);
  EXPECT_EQ(hook.options.retry.attempts_max, 3);
  EXPECT_EQ(hook.execute_batch->sql, "INSERT INTO t SELECT * FROM unnest($1::text[]) ON CONFLICT DO NOTHING");
  const auto& order = config.handlers[1];
  EXPECT_EQ(order.options.key.text(), "header:Idempotency-Key") << "the key that requests bring";
  EXPECT_FALSE(order.answer.fixed());
  EXPECT_EQ(std::get<std::string>(order.answer.body.back()), R"(,1,"1",null,"yes",":not one"])");

  EXPECT_EQ(config.admin->address, "0.0.0.0");
  EXPECT_EQ(config.consumer.lanes_per_source, 4);
  EXPECT_EQ(config.consumer.batch_max, 50u);
  EXPECT_EQ(config.consumer.shutdown_deadline, 3s);
  EXPECT_EQ(config.log.format, LogConfig::Format::json);
}

/// `usual_example` with one line replaced, and what is then wrong with it.
struct Replaced {
  const char* from;
  const char* to;
  std::vector<std::string> mistakes;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

const Replaced replaced_lines[] = {
    {"    key: /data",
     "    kee: /data",
     {"SEMEL-0403 semel.yaml:7:5: handlers.record-invoice: \"key\" is missing: what names the event: /json/pointer, "
      "header:Name, transport-id, or a list of these",
      "SEMEL-0402 semel.yaml:9:5: handlers.record-invoice.kee: unknown field; did you mean \"key\"?"}},
    {"key: /data/object/id",
     "key: data/object/id",
     {"SEMEL-0406 semel.yaml:9:10: handlers.record-invoice.key: \"data/object/id\" is no key expression: it is none "
      "of the known forms. Write a JSON Pointer such as \"/id\", \"header:Name\" or \"transport-id\"."}},
    {"key: /data/object/id",
     "key: header:X-Api-Key",
     {"SEMEL-0404 semel.yaml:9:10: handlers.record-invoice.key: \"X-Api-Key\" holds credentials, which \"stripe\" "
      "takes out of its messages"}},
    {"key: /data/object/id",
     "key: header:X-Request-Id",
     {"SEMEL-0408 semel.yaml:9:10: handlers.record-invoice.key: \"X-Request-Id\" names no event: proxies make a new "
      "one for every attempt"}},
    {"key: /data/object/id",
     "key: [ /id, header:stripe-signature ]",
     {"SEMEL-0408 semel.yaml:9:17: handlers.record-invoice.key[1]: \"stripe-signature\" names no event: it is made "
      "anew "
      "for every attempt"}},
    {"key: /data/object/id",
     "key: /a\n    key: /b",
     {"SEMEL-0401 semel.yaml:10:5: handlers.record-invoice.key: is there twice; the first is on line 9"}},
    {"key: /data/object/id", "key:", {"SEMEL-0404 semel.yaml:9:5: handlers.record-invoice.key: has no value"}},
    {"from: stripe",
     "from: stirpe",
     {"SEMEL-0407 semel.yaml:7:11: handlers.record-invoice.from: there is no source \"stirpe\"; did you mean "
      "\"stripe\"?"}},
    {"${STRIPE_SECRET}",
     "${STRIPE_SECRETS}",
     {"SEMEL-0405 semel.yaml:4:92: sources.stripe.http.verify.stripe.secrets[0]: the environment variable "
      "STRIPE_SECRETS is not set"}},
    {"\"${STRIPE_SECRET}\"",
     "\"${EMPTY}\"",
     {"SEMEL-0405 semel.yaml:4:92: sources.stripe.http.verify.stripe.secrets[0]: the secret is empty"}},
    {"\"${STRIPE_SECRET}\"",
     "{ file: /nowhere/secret }",
     {"SEMEL-0405 semel.yaml:4:100: sources.stripe.http.verify.stripe.secrets[0].file: cannot read the file "
      "/nowhere/secret"}},
    {"listen: 127.0.0.1:8080",
     "listen: localhost",
     {"SEMEL-0404 semel.yaml:4:21: sources.stripe.http.listen: must be an address and a port, such as 127.0.0.1:8080 "
      "or "
      "[::1]:8080, not \"localhost\""}},
    {"verify: { stripe: ",
     "verify: { stripes: ",
     {"SEMEL-0402 semel.yaml:4:71: sources.stripe.http.verify.stripes: unknown field; did you mean \"stripe\"?"}},
    {"verify: { stripe: { secrets: [ \"${STRIPE_SECRET}\" ] } }",
     "requests: {}",
     {"SEMEL-0403 semel.yaml:4:71: sources.stripe.http.requests: \"principal\" is missing: say on whose behalf a "
      "caller "
      "asks: { header: Name } that a trusted proxy sets, credential, or none for a single tenant; one tenant must "
      "never "
      "get another's answer"}},
    {"store: postgresql:///shop",
     "store: mysql://root:hunter2@db/shop",
     {"SEMEL-0404 semel.yaml:1:8: store: a store is sqlite:path, or postgresql://user@host/database"}},
    {"store: postgresql:///shop",
     "stroe: postgresql:///shop",
     {"SEMEL-0403 semel.yaml:1:1: \"store\" is missing: sqlite:path, or postgresql://user@host/database",
      "SEMEL-0402 semel.yaml:1:1: stroe: unknown field; did you mean \"store\"?"}},
    {"    key:",
     "    guard: uniqe\n    key:",
     {"SEMEL-0404 semel.yaml:9:12: handlers.record-invoice.guard: must be one of record, unique, version, natural, "
      "not "
      "\"uniqe\"; did you mean \"unique\"?"}},
    {"    key:",
     "    retention: 30 days\n    key:",
     {"SEMEL-0404 semel.yaml:9:16: handlers.record-invoice.retention: must be a duration such as 250ms, 10s, 5m, 12h "
      "or "
      "30d, not \"30 days\""}},
    {"    key:",
     "    fingerprint: { only: [ id ] }\n    key:",
     {"SEMEL-0406 semel.yaml:9:28: handlers.record-invoice.fingerprint.only[0]: it must be empty or begin with "
      "\"/\""}},
    {"(:key, ",
     "(:kye, ",
     {"SEMEL-0406 semel.yaml:11:9: handlers.record-invoice.execute[0]: \":kye\" is no parameter; did you mean "
      "\":key\"?"}},
    {"status: 200",
     "status: 99",
     {"SEMEL-0404 semel.yaml:12:23: handlers.record-invoice.answer.status: must be a whole number from 200 to 599, "
      "not "
      "\"99\""}},
    {"when: { /type: invoice.paid }",
     "when: { type: invoice.paid }",
     {"SEMEL-0406 semel.yaml:8:19: handlers.record-invoice.when.type: \"type\" is no condition: it looks at a JSON "
      "Pointer (/type) or at a header (header:Name)"}},
    {"handlers:",
     "handlers: {}\nhandler:",
     {"SEMEL-0404 semel.yaml:5:11: handlers: must name at least one handler",
      "SEMEL-0402 semel.yaml:6:1: handler: unknown field; did you mean \"handlers\"?"}},
};

TEST(Config, says_every_mistake_with_its_place) {
  for (const auto& c : replaced_lines)
    EXPECT_EQ(mistakes_of(replaced(usual_example, c.from, c.to)), c.mistakes) << c.to;
}

TEST(Config, says_what_is_no_yaml) {
  EXPECT_THAT(mistakes_of("store: [a"),
              ElementsAre("SEMEL-0401 semel.yaml:1:1: not YAML: end of sequence flow not found"));
  EXPECT_THAT(mistakes_of(""), ElementsAre("SEMEL-0401 semel.yaml: the file is empty"));
  EXPECT_THAT(mistakes_of("- a"), ElementsAre("SEMEL-0404 semel.yaml:1:1: must be a mapping, not a list"));
  EXPECT_THAT(mistakes_of("store: a\n---\nstore: b\n"),
              ElementsAre("SEMEL-0401 semel.yaml:3:1: one document only, but \"---\" begins another"));
  // yaml-cpp finds a document after the other in this, without end.
  EXPECT_THAT(mistakes_of(", -\na"),
              ElementsAre("SEMEL-0401 semel.yaml:1:1: not YAML: no value begins with this character"));
  const auto loaded = load_config("/nowhere/semel.yaml", usual_environment);
  EXPECT_EQ(place_and_message(loaded.mistakes.at(0), "/nowhere/semel.yaml"),
            "/nowhere/semel.yaml: cannot be read: No such file or directory");
}

TEST(Config, keeps_the_limits_of_an_address_in_one_place) {
  const auto text = replaced(every_field, "path: /orders,", "path: /orders, limits: { queued: 3 },");
  EXPECT_THAT(mistakes_of(text), ElementsAre("SEMEL-0404 semel.yaml:26:58: sources.orders.http.limits: belongs to the "
                                             "address: write it once, at sources.hooks.http"));
}

TEST(Config, replaces_variables_but_never_in_sql) {
  const auto text = replaced(replaced(usual_example, "path: /webhooks/stripe", "path: \"/hooks/$${x}\""),
                             "INSERT INTO invoices", "INSERT /* ${PASSWORD} */ INTO invoices");
  const auto config = *read(text).config;
  EXPECT_EQ(std::get<http::Webhook>(std::get<HttpSource>(config.sources[0].kind).kind).path, "/hooks/${x}");
  EXPECT_THAT(config.handlers[0].execute[0].sql, testing::HasSubstr("${PASSWORD}"));
}

TEST(Config, reads_a_secret_from_a_file_without_its_line_end) {
  const auto file = std::filesystem::temp_directory_path() / ("semel_secret_" + std::to_string(getpid()));
  std::ofstream(file) << "whsec_of_file\n";
  const auto loaded = read(replaced(usual_example, "\"${STRIPE_SECRET}\"", "{ file: " + file.string() + " }"));
  std::filesystem::remove(file);
  const auto& kind = std::get<HttpSource>(loaded.config.value().sources[0].kind).kind;
  EXPECT_EQ(std::get<http::Webhook>(kind).verify.secrets.at(0).value, "whsec_of_file");
  EXPECT_EQ(loaded.config->redactor.clean("it is whsec_of_file"), "it is ***");
}

TEST(Config, warns_of_secrets_in_the_file_without_showing_them) {
  const auto config = *read(replaced(usual_example, "${STRIPE_SECRET}", "whsec_inline")).config;
  EXPECT_THAT(config.warnings, ElementsAre("sources.stripe.http.verify.stripe.secrets[0]: a secret stands in the file; "
                                           "write ${NAME} or { file: path }"));
}

TEST(Config, refuses_a_handler_that_reads_what_its_source_takes_out) {
  const std::string text = R"(store: sqlite:a.db
admin: none
sources:
  hooks: { http: { listen: "127.0.0.1:1", path: /h, verify: none, credentials: X-Our-Pass } }
  lines: { file: a.jsonl }
handlers:
  a: { from: hooks, when: { "header:x-our-pass": b }, key: /id, execute: "DELETE FROM t WHERE a = :{header:X-Api-Key}" }
  b: { from: lines, when: { "header:x-our-pass": b }, key: /id, execute: "DELETE FROM t WHERE a = :{header:X-Api-Key}" }
)";
  EXPECT_THAT(mistakes_of(text), ElementsAre(HasSubstr("handlers.a.when.header:x-our-pass: \"x-our-pass\" holds"),
                                             HasSubstr("handlers.a.execute: \"X-Api-Key\" holds credentials")));
}

TEST(Config, warns_of_a_principal_that_is_a_credential) {
  const auto config = *read(replaced(every_field, "{ header: X-Customer }", "{ header: X-Api-Key }")).config;
  EXPECT_THAT(config.warnings,
              ElementsAre(HasSubstr("sources.orders.http.requests.principal.header: \"X-Api-Key\" holds "
                                    "credentials, and a principal is stored as it is")));
}

TEST(Config, serves_no_admin_listener_where_it_only_reads_files_or_is_told_so) {
  const auto only_file = replaced(usual_example,
                                  "http: { listen: 127.0.0.1:8080, path: /webhooks/stripe, verify: { stripe: { "
                                  "secrets: [ \"${STRIPE_SECRET}\" ] } } }",
                                  "file: a.jsonl");
  EXPECT_FALSE(read(only_file).config.value().admin);
  EXPECT_FALSE(read(std::string(usual_example) + "admin: none\n").config.value().admin);
}

}  // namespace
}  // namespace semel::app
