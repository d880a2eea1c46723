"""Calls to a payment provider and publications, end to end: the shipped program, a real database, and a provider that
misbehaves when it is told to."""

import base64
import hashlib
import hmac
import http.client
import http.server
import json
import pathlib
import sys
import threading
import unittest

from harness import Case, Program, SqliteDatabase, free_port, on_every_store, post, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "provider"))
from provider_process import ProviderProcess  # noqa: E402

WEBHOOK_SECRET = "whsec_" + base64.b64encode(b"a secret of ours for the receiver").decode()
ENVIRONMENT = {"BANK_KEY": "sk_c0nfidential", "EVENTS_SECRET": WEBHOOK_SECRET}

CONFIG = """
store: {{ uri: "{store}", lock_timeout: 10s }}
admin: {{ listen: "127.0.0.1:{admin}" }}
sources:
  orders: {{ http: {{ listen: "127.0.0.1:{port}", path: /orders, requests: {{ principal: none }} }} }}
providers:
  bank:
    headers: {{ Authorization: "Bearer ${{BANK_KEY}}" }}
    {policy}
targets:
  events: {{ url: "{events}", secrets: [ "${{EVENTS_SECRET}}" ], delay: 10ms, delay_max: 10ms }}
  audit: {{ file: "{audit}" }}
  jobs: {{ queue: jobs }}
handlers:
  charge:
    from: orders
    key: /id
    execute: INSERT INTO orders (id, cents, state) VALUES (:/id, :/amount, 'open')
    call:
      provider: bank
      url: "{bank}/charges"
      body: {{ amount: ":/amount", currency: EUR, reference: ":/id" }}
      reference: /id
      timeout: {timeout}
      settle:
        execute: UPDATE orders SET state = :outcome, charge = :outcome_reference WHERE id = :/id
        answer: {{ status: 201, body: {{ order: ":/id", charge: ":{{outcome:/id}}" }} }}
        publish: {{ to: events, body: {{ order: ":/id", by: "order-:{{/id}}" }}, order_key: /id }}
        on_failure:
          execute: UPDATE orders SET state = :outcome, charge = 'none' WHERE id = :/id
          answer: {{ status: 402, body: {{ order: ":/id", why: ":{{outcome:/error/code}}" }} }}
{more}
    publish:
      - {{ to: audit, body: {{ order: ":/id" }} }}
      - {{ to: jobs }}
    waiting: {{ deadline: 15s, late: 202, again: refuse }}
"""

WITH_KEY = "key: { header: Idempotency-Key, lifetime: 24h }"
WITH_LOOKUP = """lookup:
      url: "/charges?reference={reference}"
      list: /data
      reference: /reference
      status: /status
      succeeded: [ succeeded ]
      failed: [ failed ]
      visibility_delay: 0s
      compare: { /amount: /amount }"""
WITH_NEITHER = "calls_max: 4"

THEN_A_SECOND_STEP = """
        call:
          effect: capture
          provider: bank
          url: "{bank}/captures"
          body: {{ charge: ":{{outcome:/id}}", amount: ":/amount", currency: EUR, reference: ":/id" }}
          reference: /id
          settle: {{ on_failure: {{ answer: {{ status: 409, body: {{ refunding: true }} }} }} }}
      compensate:
        effect: refund
        url: "{bank}/refunds"
        body: {{ charge: ":{{outcome:/id}}", amount: ":/amount", currency: EUR, reference: "refund-:{{/id}}" }}"""


class Receiver(http.server.ThreadingHTTPServer):
    """Takes webhooks, and keeps what it got."""

    def __init__(self, statuses):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.got = []
        self.changed = threading.Condition()
        self.statuses = statuses  # answered first, one each; then 200
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with self.server.changed:
                self.server.got.append((dict(self.headers), body))
                status = self.server.statuses.pop(0) if self.server.statuses else 200
                self.server.changed.notify_all()
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    def wait(self, count):
        with self.changed:
            self.changed.wait_for(lambda: len(self.got) >= count)
            return list(self.got)

    def close(self):
        self.shutdown()
        self.server_close()


class Outside(Case):
    def start(self, database, policy, timeout="20s", more="", statuses=()):
        self.receiver = Receiver(list(statuses))
        self.addCleanup(self.receiver.close)
        self.audit = self.folder / f"audit-{database.name}.jsonl"
        database.execute("CREATE TABLE orders (id text PRIMARY KEY, cents bigint, state text, charge text)")
        self.provider = ProviderProcess(database_folder(self, database)).start()
        self.addCleanup(self.provider.stop)
        self.port, self.admin = free_port(), free_port()
        text = CONFIG.format(store=database.uri, port=self.port, admin=self.admin, policy=policy, timeout=timeout,
                             bank=self.provider.url, audit=self.audit, more=more.format(bank=self.provider.url),
                             events=f"http://127.0.0.1:{self.receiver.server_address[1]}/in")
        self.config = self.write(f"{self.port}.yaml", text)
        code, _, errors = self.semel("migrate")
        self.assertEqual(code, 0, errors)
        return self.serve_on()

    def serve_on(self):
        program = Program("run", self.config, env=ENVIRONMENT)
        self.addCleanup(lambda: program.process.poll() is None and program.kill())
        program.wait_until_it_says("listening")
        return program

    def semel(self, command, *arguments):
        return run(command, self.config, *arguments, env=ENVIRONMENT)

    def order(self, order_id="o1", amount=1250):
        return post(self.port, "/orders", {"id": order_id, "amount": amount}, {"Idempotency-Key": order_id})

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    def orders(self, database):
        return database.execute("SELECT id, state, charge FROM orders ORDER BY id")

    def intents(self, *arguments):
        code, output, errors = self.semel("intents", "list", "--json", *arguments)
        self.assertIn(code, (0, 4), errors)
        return code, json.loads(output)


def database_folder(case, database):
    folder = case.folder / f"provider-{database.name}"
    folder.mkdir()
    return folder


class Charging(Outside):
    @on_every_store
    def test_an_order_is_charged_once_settled_and_answered_with_what_came_of_it(self, database):
        program = self.start(database, WITH_KEY)
        status, headers, body = self.order()
        charge = self.provider.charges("o1")[0]
        self.assertEqual((status, json.loads(body)), (201, {"order": "o1", "charge": charge["id"]}))
        again = self.order()
        self.assertEqual((again[0], again[2], again[1].get("Idempotent-Replayed")), (201, body, "true"))
        self.assertEqual(self.orders(database), [("o1", "succeeded", charge["id"])])
        self.assertEqual(len(self.provider.ledger()), 1)
        metrics = self.metrics()
        self.assertEqual(metrics['semel_calls_total{effect="charge",verdict="succeeded"}'], "1")
        self.assertEqual((metrics["semel_intents_waiting_for_operator"], metrics["semel_backlog_known"]), ("0", "1"))
        code, intents = self.intents()
        self.assertEqual((code, [i["state"] for i in intents]), (0, ["succeeded"]))
        code, output, errors = self.semel("intents", "show", intents[0]["id"][:8], "--json")
        self.assertEqual(code, 0, errors)
        shown = json.loads(output)
        self.assertEqual(shown["idempotency_key"], charge["idempotency_key"])
        self.assertNotIn("request", shown)
        self.assertEqual(shown["outcome"]["reference"], charge["id"])
        self.ended(program)
        self.assertNotIn("c0nfidential", database.dump() + "".join(program.text()))

    @on_every_store
    def test_a_declined_charge_is_an_answer_like_any_other(self, database):
        program = self.start(database, WITH_KEY)
        self.provider.faults("decline")
        status, _, body = self.order()
        self.assertEqual((status, json.loads(body)), (402, {"order": "o1", "why": "card_declined"}))
        self.assertEqual(self.orders(database), [("o1", "failed", "none")])
        self.assertEqual(self.order()[0], 402)
        self.assertEqual(len(self.provider.received()), 1)
        self.ended(program)

    @on_every_store
    def test_a_call_whose_answer_is_lost_is_repeated_with_its_key(self, database):
        program = self.start(database, WITH_KEY)
        self.provider.faults({"fault": "close_after", "next": 1})
        self.assertEqual(self.order()[0], 201)
        self.assertEqual(len(self.provider.charges("o1")), 1)
        keys = {request["keys"][0] for request in self.provider.received()}
        self.assertEqual(len(keys), 1)
        self.ended(program)

    @on_every_store
    def test_a_call_whose_answer_is_lost_is_looked_up(self, database):
        program = self.start(database, WITH_LOOKUP)
        self.provider.faults({"fault": "close_after", "next": 1})
        self.assertEqual(self.order()[0], 201)
        charge, = self.provider.charges("o1")
        self.assertEqual(self.orders(database), [("o1", "succeeded", charge["id"])])
        self.ended(program)


class Operator(Outside):
    def left_ambiguous(self, database):
        """A charge that was made, of which nobody knows."""
        program = self.start(database, WITH_NEITHER)
        self.provider.faults({"fault": "close_after", "next": 1})
        status, _, body = self.order()
        self.assertEqual(status, 409, body)
        code, intents = self.intents("--waiting")
        self.assertEqual((code, [i["state"] for i in intents]), (4, ["ambiguous"]))
        metrics = self.metrics()
        self.assertEqual(metrics["semel_intents_waiting_for_operator"], "1")
        self.assertEqual(metrics['semel_intents{state="ambiguous"}'], "1")
        return program, intents[0]["id"]

    def resolve(self, intent, *what):
        return self.semel("intents", "resolve", intent, *what, "--by", "ann", "--why", "asked the bank")

    @on_every_store
    def test_the_history_shows_every_attempt_and_one_that_started_with_its_intent(self, database):
        program = self.start(database, WITH_KEY)
        status, _, body = self.order()
        self.assertEqual(status, 201, body)
        intent, = self.intents("--state", "succeeded")[1]
        history = json.loads(self.semel("intents", "show", intent["id"], "--json")[1])["history"]
        self.assertEqual([(e["kind"], e["attempt"]) for e in history], [("started", 1), ("succeeded", 1)])
        self.assertEqual(history[0]["at"], intent["created_at"])
        self.assertIn("with its intent", self.semel("intents", "show", intent["id"])[1])
        self.ended(program)

    @on_every_store
    def test_what_happened_is_settled_by_an_operators_word(self, database):
        program, intent = self.left_ambiguous(database)
        code, output, errors = self.semel("intents", "show", intent[:6])
        self.assertEqual(code, 4, errors)
        self.assertIn("ambiguous", output)
        charge, = self.provider.charges("o1")
        self.says_nothing(intent)
        code, _, errors = self.resolve(intent, "--happened", charge["id"])
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.settled(database), [("o1", "succeeded", charge["id"])])
        self.assertEqual(len(self.provider.charges("o1")), 1)
        self.assertEqual(self.intents()[0], 0)
        history = json.loads(self.semel("intents", "show", intent, "--json")[1])["history"]
        self.assertIn(("resolved", "ann", "happened: asked the bank"),
                      [(e["kind"], e["by"], e["detail"]) for e in history])
        code, _, errors = self.resolve(intent, "--did-not-happen")
        self.assertEqual(code, 1)
        self.assertIn("SEMEL-0506", errors)
        self.ended(program)

    @on_every_store
    def test_of_a_payment_in_doubt_square_is_told_by_its_key_to_cancel_it(self, database):
        program = self.start(database, "profile: square")
        reused = {"errors": [{"category": "INVALID_REQUEST_ERROR", "code": "IDEMPOTENCY_KEY_REUSED"}]}
        self.provider.faults({"fault": "answer", "status": 400, "body": reused, "next": 1})
        self.assertEqual(self.order()[0], 409)
        sent, = self.provider.received()
        code, intents = self.intents("--waiting")
        self.assertEqual((code, [i["state"] for i in intents]), (4, ["ambiguous"]))
        code, output, _ = self.semel("intents", "show", intents[0]["id"])
        self.assertEqual(code, 4)
        self.assertIn("CancelPaymentByIdempotencyKey (POST /v2/payments/cancel with the key)", output)
        self.assertIn(f"idempotency key  {sent['body']['idempotency_key']}\n", output)
        self.assertEqual(self.resolve(intents[0]["id"], "--abandoned")[0], 0)
        while (answer := self.order())[0] == 409:  # until the running program has written what follows
            pass
        self.assertEqual(answer[0], 402)
        self.assertEqual(self.orders(database), [("o1", "abandoned", "none")])
        self.assertEqual(len(self.provider.received()), 1, "nobody called it again")
        shown = json.loads(self.semel("intents", "show", intents[0]["id"], "--json")[1])
        self.assertEqual(shown["provider_advice"], "", "nobody asks any more")
        self.ended(program)

    def says_nothing(self, intent):
        """What a script's empty variable left of a command is refused, and changes nothing."""
        for words in (["--happened", "", "--by", "ann", "--why", "seen"],
                      ["--happened", "ch_1", "--by", "", "--why", "seen"],
                      ["--abandoned", "--by", "ann", "--why", ""]):
            code, _, errors = self.semel("intents", "resolve", intent, *words)
            self.assertEqual(code, 2, errors)
            self.assertIn("must not be empty", errors)
        self.assertEqual([i["state"] for i in self.intents("--waiting")[1]], ["ambiguous"])

    def settled(self, database):
        """The rows once that is told which is published with them."""
        self.receiver.wait(1)
        return self.orders(database)

    @on_every_store
    def test_what_did_not_happen_runs_again(self, database):
        program, intent = self.left_ambiguous(database)
        self.provider.reset()
        self.assertEqual(self.resolve(intent, "--did-not-happen")[0], 0)
        self.settled(database)
        self.assertEqual(len(self.provider.charges("o1")), 1)
        self.ended(program)


class Chain(Outside):
    @on_every_store
    def test_a_later_step_that_fails_for_good_has_the_earlier_one_undone(self, database):
        program = self.start(database, WITH_KEY, more=THEN_A_SECOND_STEP)
        self.provider.faults({"fault": "answer", "on": "captures", "status": 422, "body": {"error": "no"}})
        status, _, body = self.order()
        self.assertEqual((status, json.loads(body)), (409, {"refunding": True}))
        ledger = self.provider.ledger(at_least=2)
        self.assertEqual([(one["kind"], one["reference"]) for one in ledger],
                         [("charge", "o1"), ("refund", "refund-o1")])
        self.assertEqual(ledger[1]["charge"], ledger[0]["id"])
        self.ended(program)


class Publishing(Outside):
    def verified(self, headers, body):
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(WEBHOOK_SECRET.removeprefix("whsec_"))
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{expected}" in headers["webhook-signature"].split(" ")

    @on_every_store
    def test_a_publication_comes_signed_under_one_id_until_it_is_taken(self, database):
        program = self.start(database, WITH_KEY, statuses=[503, 503])
        self.assertEqual(self.order()[0], 201)
        got = self.receiver.wait(3)
        self.assertEqual({headers["webhook-id"] for headers, _ in got}, {got[0][0]["webhook-id"]})
        for headers, body in got:
            self.assertTrue(self.verified(headers, body))
            self.assertEqual(json.loads(body), {"order": "o1", "by": "order-o1"})
        self.ended(program)
        self.assertNotIn("events", self.semel("outbox", "list")[1])
        line, = [json.loads(line) for line in self.audit.read_text().splitlines()]
        self.assertEqual((line["target"], json.loads(line["body"])), ("audit", {"order": "o1"}))

    @on_every_store
    def test_what_is_turned_away_for_good_waits_for_an_operator(self, database):
        program = self.start(database, WITH_KEY, statuses=[410])
        self.assertEqual(self.order()[0], 201)
        program.wait_until_it_says("not_sent")
        self.ended(program)
        code, output, errors = self.semel("outbox", "list", "--held", "--json")
        self.assertEqual(code, 0, errors)
        held, = json.loads(output)
        self.assertEqual(self.semel("outbox", "list", "--to", "audit", "--json")[1].strip(), "[]")
        for command, option, slip in (("outbox", "--to", "evnts"), ("intents", "--provider", "bnk"),
                                      ("intents", "--effect", "chrge")):
            code, _, errors = self.semel(command, "list", option, slip)
            self.assertEqual(code, 2)
            self.assertRegex(errors, rf'^semel: SEMEL-0407: there is no .*"{slip}"; did you mean "')
        self.assertEqual((held["to"], held["held"]), ("events", True))
        for action in ("release", "drop"):
            for slip in ("f" * 32, "ffffff", "none"):
                code, _, errors = self.semel("outbox", action, slip)
                self.assertEqual(code, 1)
                self.assertRegex(errors, rf"^semel: SEMEL-0407: publication {slip}: ")
        code, output, errors = self.semel("outbox", "release", held["id"][:6].upper())
        self.assertEqual((code, output), (0, held["id"] + " released\n"), errors)
        program = self.serve_on()
        self.receiver.wait(2)
        self.ended(program)
        self.assertEqual(self.semel("outbox", "drop", held["id"])[0], 1, "it is gone")


class Checking(Outside):
    def test_check_explains_each_policy_and_what_an_operator_will_have_to_do(self):
        database = self.database(SqliteDatabase)
        for policy, said in [(WITH_KEY, "remembers the key for 1d; a call without an outcome is repeated with it for "
                                        "23h, then an operator is asked"),
                             (WITH_LOOKUP, "is looked up by reference"),
                             (WITH_NEITHER, "semel intents resolve")]:
            self.assertIn(said, self.check(database, policy))

    def check(self, database, policy, more="", timeout="5s"):
        text = CONFIG.format(store=database.uri, port=free_port(), admin=free_port(), policy=policy, timeout=timeout,
                             more=more, bank="http://127.0.0.1:1", audit=self.folder / "audit",
                             events="http://127.0.0.1:1")
        self.config = self.write("check.yaml", text)
        return self.semel("check")[1]

    def test_check_warns_of_a_key_that_does_not_live_as_long_as_its_repeats(self):
        database = self.database(SqliteDatabase)
        of_a_key = "'s key may be used for "
        for policy, more, timeout, warned in [
                (WITH_KEY, "", "30s", None),
                ("key: { header: Idempotency-Key, lifetime: 2m, margin: 1m }", "", "30s", None),
                ("key: { header: Idempotency-Key, lifetime: 2m, margin: 61s }", "", "30s", "59s only, but"),
                ("key: { header: Idempotency-Key, lifetime: 24h }", "", "12h", "23h only, but that an attempt is lost"),
                (WITH_KEY, "      give_up_after: 23h", "30s", None),
                (WITH_KEY, "      give_up_after: 2d", "30s", "23h only and it has no lookup"),
                (WITH_KEY + "\n    " + WITH_LOOKUP, "      give_up_after: 2d", "12h", None)]:
            said = self.check(database, policy, more, timeout)
            self.assertIn("handler charge", said)
            self.assertEqual(of_a_key in said, warned is not None, said)
            self.assertIn(warned or "", said)


if __name__ == "__main__":
    unittest.main()
