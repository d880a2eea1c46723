"""Webhooks as providers really send them, against the shipped program: again, late, twice at once, out of order,
forged, under two secrets, in test mode. Each test is one promise to whoever receives them."""

import json
import random
import time
import unittest

import signed
from harness import Asked, Case, SqliteDatabase, all_at_once, free_port, on_every_store, post, run

SECRET = "whsec_current"
OLD_SECRET = "whsec_previous"

CONFIG = """
store: {{ uri: "{store}", lock_timeout: {lock_timeout} }}
admin: none
sources:
  hooks:
    http: {{ listen: "127.0.0.1:{port}", path: /hooks, verify: {{ {scheme}: {{ secrets: [ {secrets} ] }} }} }}
handlers:
{handlers}
"""

ADD_TO_BALANCE = """
  credit:
    from: hooks
    key: /id
    key_is: event-id
    execute: [ "UPDATE balances SET cents = cents + :/cents WHERE account = :/account" ]
    answer: { status: 200, body: "[accepted]" }
"""

INSERT = "INSERT INTO effects (id, cents) VALUES (:key, 0)"

BY_DELIVERY = """
  pay:
    from: hooks
    key: transport-id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:transport_id, :/cents)" ]
"""


def text_of(event):
    return json.dumps(event).encode()


class Webhooks(Case):
    """Each test runs on every store, with a service that takes signed webhooks."""

    scheme = "stripe"

    def config(self, database, handlers, lock_timeout="10s"):
        """The configuration of one more process on the database, and its port."""
        port = free_port()
        text = CONFIG.format(store=database.uri, port=port, scheme=self.scheme, handlers=handlers,
                             lock_timeout=lock_timeout, secrets=f"{SECRET}, {OLD_SECRET}")
        return self.migrated(self.write(f"{port}.yaml", text)), port

    def service(self, database, handlers, **settings):
        config, port = self.config(database, handlers, **settings)
        return self.serve(config), port

    def effects(self, database):
        return {row[0]: int(row[1]) for row in database.execute("SELECT id, count(*) FROM effects GROUP BY id")}

    def hook(self, port, event, secret=SECRET):
        """A delivery attempt by Stripe's scheme, signed now."""
        body = text_of(event)
        return post(port, "/hooks", body, signed.stripe(body, secret))

    def delivered(self, port, event, secret=SECRET):
        """With a sender's patience: what is answered 503 comes again."""
        while (answer := self.hook(port, event, secret))[0] == 503:
            pass
        return answer


class Redelivery(Webhooks):
    def balances(self, database):
        return database.execute("SELECT account, cents FROM balances ORDER BY account")

    @on_every_store
    def test_a_redelivery_signed_anew_adds_once_and_is_told_the_same(self, database):
        database.execute("CREATE TABLE balances (account text, cents bigint)")
        database.execute("INSERT INTO balances VALUES ('a', 100)")
        program, port = self.service(database, ADD_TO_BALANCE)
        event = {"id": "evt_1", "account": "a", "cents": 50, "pending_webhooks": 2}
        first = post(port, "/hooks", text_of(event), signed.stripe(text_of(event), SECRET, at=time.time() - 240))
        # Minutes later: another time and signature, and the provider counts what it has still to deliver.
        second = self.hook(port, {**event, "pending_webhooks": 1})
        self.assertEqual([a[::2] for a in (first, second)], [(200, "[accepted]")] * 2)
        self.assertEqual(second[1].get("Idempotent-Replayed"), "true")
        self.assertEqual(self.balances(database), [("a", "150")])
        self.ended(program)

    @on_every_store
    def test_a_delivery_that_failed_works_when_it_comes_again(self, database):
        handler = """
  pay:
    from: hooks
    key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, (SELECT cents FROM prices WHERE item = :/item))" ]
"""
        database.execute("CREATE TABLE prices (item text, cents bigint)")
        config, port = self.config(database, handler)
        program = self.serve(config)
        event = {"id": "evt_1", "item": "book"}
        self.assertEqual(self.hook(port, event)[0], 500)
        self.assertEqual(run("records", config, "--handler", "pay", "--key", "evt_1")[0], 1, "nothing is recorded")
        database.execute("INSERT INTO prices VALUES ('book', 7)")
        status, headers, _ = self.hook(port, event)
        self.assertEqual((status, headers.get("Idempotent-Replayed")), (200, None))
        self.assertEqual(self.hook(port, event)[1].get("Idempotent-Replayed"), "true")
        self.assertEqual(database.execute("SELECT * FROM effects"), [("evt_1", "7")])
        self.ended(program)

    @on_every_store
    def test_the_memory_is_the_databases_and_outlives_the_process(self, database):
        database.execute("CREATE TABLE balances (account text, cents bigint)")
        database.execute("INSERT INTO balances VALUES ('a', 0)")
        event = {"id": "evt_1", "account": "a", "cents": 1}
        for _ in range(3):
            program, port = self.service(database, ADD_TO_BALANCE)
            self.assertEqual(self.hook(port, event)[::2], (200, "[accepted]"))
            self.ended(program)
        self.assertEqual(self.balances(database), [("a", "1")])


class AtOnce(Webhooks):
    pay = """
  pay:
    from: hooks
    key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
"""

    @on_every_store
    def test_a_second_delivery_while_the_first_is_at_work_never_promises_what_is_not_done(self, database):
        other, port = self.service(database, self.pay, lock_timeout="100ms")
        for step in ["begun", "claimed", "handled", "recorded", "committed"]:
            event = {"id": f"evt_{step}", "cents": 1}
            config, held_port = self.config(database, self.pay)
            held = self.serve(config, steps=True)
            first = Asked(self.hook, held_port, event)
            self.assertTrue(held.run_until(step))
            status = self.hook(port, event)[0]
            done = self.effects(database).get(event["id"]) == 1
            self.assertIn((status, done), [(200, True), (503, False)], step)
            held.run_freely()
            self.assertEqual(first.answer()[0], 200, step)
            self.assertEqual(self.hook(port, event)[0], 200, step)
            self.assertEqual(self.effects(database)[event["id"]], 1, step)
            self.ended(held)
        self.ended(other)

    @on_every_store
    def test_copies_that_arrive_before_the_first_is_worked_on_are_one(self, database):
        event = {"id": "evt_1", "cents": 1}
        config, port = self.config(database, self.pay)
        program = self.serve(config, steps=True)
        asked = [Asked(self.hook, port, event)]
        self.assertTrue(program.run_until("received"))
        asked += [Asked(self.hook, port, event) for _ in range(3)]
        program.run_freely()
        answers = [one.answer() for one in asked]
        self.assertEqual([status for status, _, _ in answers], [200] * 4)
        self.assertEqual([h.get("Idempotent-Replayed") for _, h, _ in answers].count("true"), 3)
        self.assertEqual(self.effects(database), {"evt_1": 1})
        self.ended(program)

    @on_every_store
    def test_one_event_signed_with_two_secrets_at_once_has_one_effect(self, database):
        events = [{"id": f"evt_{n}", "cents": n} for n in range(10)]
        programs = [self.service(database, self.pay) for _ in range(2)]
        calls = [lambda e=event, p=port, s=secret: self.delivered(p, e, s) for event in events
                 for (_, port), secret in zip(programs, [SECRET, OLD_SECRET])]
        self.assertEqual({answer[0] for answer in all_at_once(calls)}, {200})
        self.assertEqual(self.effects(database), {event["id"]: 1 for event in events})
        self.ended(*[program for program, _ in programs])


class Order(Webhooks):
    tables = "CREATE TABLE subscriptions (id text PRIMARY KEY, created bigint, rank bigint, status text)"
    handler = """
  subscription:
    from: hooks
    key: /id
    guard: version
    execute:
      - >
        INSERT INTO subscriptions (id, created, rank, status)
        VALUES (:/subscription, :/created, {rank}, :/status)
        ON CONFLICT (id) DO UPDATE SET created = excluded.created, rank = excluded.rank, status = excluded.status
        WHERE (subscriptions.created, subscriptions.rank) < (excluded.created, excluded.rank)
      - "INSERT INTO effects (id, cents) VALUES (:/id, 0)"
""".replace("{rank}", "CASE WHEN :/status = 'incomplete' THEN 0 ELSE 1 END")

    def event(self, event_id, created, status, subscription="sub_1"):
        return {"id": event_id, "subscription": subscription, "created": created, "status": status}

    @on_every_store
    def test_an_older_event_changes_nothing_whichever_comes_first(self, database):
        database.execute(self.tables)
        program, port = self.service(database, self.handler)
        for first, applied in [(265, {265, 266}), (266, {266})]:
            events = {n: self.event(f"evt_{first}_{n}", n, f"state {n}", f"sub_{first}") for n in (265, 266)}
            order = [events[first], *[event for n, event in events.items() if n != first]]
            self.assertEqual([self.hook(port, event)[0] for event in [*order, *order]], [200] * 4)
            self.assertEqual(self.state_of(database, f"sub_{first}"), "state 266")
            written = {events[n]["id"] for n in applied}
            self.assertEqual({i for i in self.effects(database) if i.startswith(f"evt_{first}_")}, written,
                             "what is out of date writes nothing else either")
        self.ended(program)

    @on_every_store
    def test_events_of_one_second_are_told_apart_by_rank_and_not_by_arrival(self, database):
        database.execute(self.tables)
        program, port = self.service(database, self.handler)
        for order in [("incomplete", "active"), ("active", "incomplete")]:
            for status in order:
                event = self.event(f"evt_{order[0]}_{status}", 265, status, f"sub_{order[0]}")
                self.assertEqual(self.hook(port, event)[0], 200)
            self.assertEqual(self.state_of(database, f"sub_{order[0]}"), "active")
        self.ended(program)

    def state_of(self, database, subscription):
        return database.execute(f"SELECT status FROM subscriptions WHERE id = '{subscription}'")[0][0]

    @on_every_store
    def test_the_newest_wins_where_all_come_at_once(self, database):
        events = [self.event(f"evt_{n}", n, f"state {n}") for n in range(1, 21)]
        random.Random(1).shuffle(events)
        database.execute(self.tables)
        programs = [self.service(database, self.handler) for _ in range(2)]
        calls = [lambda e=event, p=programs[n % 2][1]: self.delivered(p, e) for n, event in enumerate(events)]
        self.assertEqual({answer[0] for answer in all_at_once(calls)}, {200})
        self.assertEqual(database.execute("SELECT created, status FROM subscriptions"), [("20", "state 20")])
        self.ended(*[program for program, _ in programs])


class Identity(Webhooks):
    # One payment that its provider tells of twice: two ids of the notice, two bodies.
    notices = [{"id": "WH-1", "type": "SALE.COMPLETED", "sale": "s1", "cents": 5, "invoice_number": "7"},
               {"id": "WH-2", "type": "SALE.COMPLETED", "sale": "s1", "cents": 5}]

    @on_every_store
    def test_two_notices_of_one_payment_meet_in_the_effects_own_unique_key(self, database):
        handler = """
  pay:
    from: hooks
    key: /id
    guard: unique
    execute:
      - "INSERT INTO sales (type, sale) VALUES (:/type, :/sale) ON CONFLICT DO NOTHING"
      - "INSERT INTO effects (id, cents) VALUES (:/sale, :/cents)"
"""
        database.execute("CREATE TABLE sales (type text, sale text, UNIQUE (type, sale))")
        programs = [self.service(database, handler) for _ in range(2)]
        calls = [lambda e=event, p=port: self.delivered(p, e) for event, (_, port) in zip(self.notices, programs)]
        self.assertEqual([answer[0] for answer in all_at_once(calls)], [200, 200])
        self.assertEqual(self.effects(database), {"s1": 1})
        self.ended(*[program for program, _ in programs])

    @on_every_store
    def test_two_notices_of_one_payment_meet_in_a_key_of_several_parts(self, database):
        handler = """
  pay:
    from: hooks
    key: [ /type, /sale ]
    fingerprint: {{ {fingerprint} }}
    execute: [ "INSERT INTO effects (id, cents) VALUES (:/sale, :/cents)" ]
"""
        for n, (fingerprint, second) in enumerate([("only: [ /cents ]", 200), ("except: [ /id ]", 202)]):
            config, port = self.config(database, handler.format(fingerprint=fingerprint))
            program = self.serve(config)
            notices = [{**notice, "sale": f"s{n}"} for notice in self.notices]
            self.assertEqual([self.hook(port, notice)[0] for notice in notices], [200, second])
            self.ended(program)
        self.assertEqual(self.effects(database), {"s0": 1, "s1": 1})
        self.assertEqual(self.dead_letters(config), ["conflict"], "what differs is kept and shown, never run")

    @on_every_store
    def test_an_event_of_the_test_mode_is_acknowledged_and_touches_nothing_live(self, database):
        handlers = """
  live:
    from: hooks
    when: { /livemode: true }
    key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
  test:
    from: hooks
    when: { /livemode: false, /type: paid }
    key: /id
    execute: [ "INSERT INTO rehearsals (id) VALUES (:key)" ]
"""
        database.execute("CREATE TABLE rehearsals (id text)")
        program, port = self.service(database, handlers)
        event = {"id": "evt_1", "cents": 5, "type": "paid", "livemode": False}
        for each in [event, {**event, "type": "other"}, event]:
            self.assertEqual(self.hook(port, each)[0], 200)
        self.assertEqual(self.effects(database), {})
        self.assertEqual(database.execute("SELECT id FROM rehearsals"), [("evt_1",)])
        self.assertEqual(self.hook(port, {**event, "livemode": True})[0], 200)
        self.assertEqual(self.effects(database), {"evt_1": 1}, "the test event has not used the live key up")
        self.ended(program)


class Signatures(Webhooks):
    scheme = "github"

    @on_every_store
    def test_what_was_changed_on_its_way_is_refused_and_leaves_no_trace(self, database):
        body = b'{"cents":1}'
        headers = signed.github(body, SECRET, "delivery-1")
        config, port = self.config(database, BY_DELIVERY)
        program = self.serve(config)
        for changed in [b'{"cents": 1}', b'{\n  "cents": 1\n}', body + b"\n", b'{"cents":2}']:
            status, _, told = post(port, "/hooks", changed, headers)
            self.assertEqual(status, 401)
            self.assertIn("signature-invalid", told)
        self.assertEqual(self.dead_letters(config), [])
        status, answer, _ = post(port, "/hooks", body, headers)
        self.assertEqual((status, answer.get("Idempotent-Replayed")), (200, None))
        self.assertEqual(self.effects(database), {"delivery-1": 1})
        self.ended(program)

    @on_every_store
    def test_a_forger_can_neither_use_a_delivery_up_nor_find_out_that_it_is_known(self, database):
        body = b'{"cents":1}'
        forged = {**signed.github(body, "a guess", "delivery-1")}
        unsigned = {"X-GitHub-Delivery": "delivery-1"}
        program, port = self.service(database, BY_DELIVERY)
        before = [post(port, "/hooks", body, headers)[::2] for headers in (forged, unsigned)]
        self.assertEqual(post(port, "/hooks", body, signed.github(body, SECRET, "delivery-1"))[0], 200)
        after = [post(port, "/hooks", body, headers)[::2] for headers in (forged, unsigned)]
        self.assertEqual({status for status, _ in before}, {401})
        self.assertEqual(before, after)
        self.assertEqual(self.effects(database), {"delivery-1": 1})
        self.ended(program)

    @on_every_store
    def test_a_requested_redelivery_keeps_its_id_and_another_delivery_of_the_same_body_has_its_own(self, database):
        body = b'{"cents":1}'
        program, port = self.service(database, BY_DELIVERY)
        for delivery in ["d1", "d1", "d2"]:
            self.assertEqual(post(port, "/hooks", body, signed.github(body, SECRET, delivery))[0], 200)
        self.assertEqual(self.effects(database), {"d1": 1, "d2": 1})
        self.ended(program)


# What the providers publish, or was computed apart from Semel: the scheme, its secret, the headers, the body.
PUBLISHED = [
    ("stripe", "whsec_test",
     {"Stripe-Signature": "t=1700000000,v1=f83e06935b365cd1c3337fd77472e96b7d71c0f8c8c2b00a372c1ab020b954e1"},
     '{"id":"evt_1","object":"event","type":"invoice.paid","created":1700000000,"livemode":false,'
     '"data":{"object":{"id":"in_1","object":"invoice"}}}'),
    ("github", "It's a Secret to Everybody",
     {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
     "Hello, World!"),
    ("shopify", "hush", {"X-Shopify-Hmac-SHA256": "7DRtVgeAb7ae6AL8R/n6Zley2DD4CAMPtOBaItAKlXM="},
     '{"id":4501,"email":"a@example.com"}'),
    ("standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
     {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, '{"test": 2432232314}'),
    ("hmac", "key", {"X-Mac": "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"},
     "The quick brown fox jumps over the lazy dog"),
]


class Schemes(Case):
    def config(self, database, port):
        """A path and a handler for each scheme; old signatures are taken, since published ones are old."""
        more = {"hmac": "header: X-Mac", "github": "", "shopify": ""}
        sources, handlers = "", ""
        for scheme, secret, _, _ in PUBLISHED:
            rest = more.get(scheme, "tolerance: 10000d")
            verify = f"{scheme}: {{ secrets: [ {json.dumps(secret)} ]{', ' if rest else ''}{rest} }}"
            http = f'{{ listen: "127.0.0.1:{port}", path: /{scheme}, verify: {{ {verify} }} }}'
            sources += f"  {scheme}: {{ http: {http} }}\n"
            handlers += f"  {scheme}: {{ from: {scheme}, key: header:X-Id, execute: {json.dumps(INSERT)} }}\n"
        text = f"store: {database.uri}\nadmin: none\nsources:\n{sources}handlers:\n{handlers}"
        return self.migrated(self.write("schemes.yaml", text))

    def test_what_each_provider_publishes_is_taken_once_and_nothing_else(self):
        database = self.database(SqliteDatabase)
        port = free_port()
        program = self.serve(self.config(database, port))
        for scheme, _, headers, body in PUBLISHED:
            sent = {**headers, "X-Id": scheme}
            asked = [body + "\n", body.replace("e", "E", 1), body, body]
            statuses = [post(port, f"/{scheme}", each, sent)[0] for each in asked]
            self.assertEqual(statuses, [401, 401, 200, 200], scheme)
        self.assertEqual(database.execute("SELECT count(*), count(DISTINCT id) FROM effects"), [("5", "5")])
        self.ended(program)


class AtRest(Webhooks):
    handlers = """
  pay:
    from: hooks
    key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:{/name}, :/cents)" ]
"""

    def deliver(self, port, body, headers=None):
        return post(port, "/hooks", body, {**signed.stripe(body, SECRET), **(headers or {})})

    @on_every_store
    def test_what_is_set_aside_is_kept_without_credentials(self, database):
        config, port = self.config(database, self.handlers)
        program = self.serve(config)
        headers = {"Authorization": "Basic c0nfidential", "Cookie": "session=c0nfidential", "X-Kept": "k3pt",
                   "X-Api-Key": "c0nfidential", "X-Auth-Token": "c0nfidential"}
        for body in [b'{"cents":1}', b'{"cents":']:
            signature = signed.stripe(body, SECRET)
            self.assertEqual(post(port, "/hooks?token=c0nfidential", body, {**signature, **headers})[0], 202)
        self.assertEqual(self.dead_letters(config), ["malformed", "no_key"])
        self.ended(program)
        kept = database.dump()
        self.assertIn("k3pt", kept, "else this test would look in the wrong place")
        for secret in ["c0nfidential", SECRET, OLD_SECRET]:
            self.assertNotIn(secret, kept + "".join(program.text()))

    @on_every_store
    def test_a_nul_is_no_obstacle_where_nobody_needs_it_and_is_never_cut_off(self, database):
        program, port = self.service(database, self.handlers)
        self.assertEqual(self.deliver(port, b'{"id":"e1","name":"n1","cents":1,"note":"a\\u0000b"}')[0], 200)
        self.assertEqual(self.deliver(port, b'{"id":"e\\u00002","name":"n2","cents":1}')[0], 200, "a key is any bytes")
        for _ in range(2):
            self.assertEqual(self.deliver(port, b'{"id":"e3","name":"n3\\u0000","cents":1}')[0], 500)
        self.assertEqual(self.deliver(port, b'{"id":"e\\u00004","name":"n4","cents":1}')[0], 200)
        self.assertEqual(self.effects(database), {"n1": 1, "n2": 1, "n4": 1})
        self.ended(program)


class Shopify(Webhooks):
    scheme = "shopify"

    @on_every_store
    def test_a_retry_is_known_by_its_webhook_id_even_under_the_secret_of_yesterday(self, database):
        body = b'{"cents":1}'
        program, port = self.service(database, BY_DELIVERY)
        for secret in [SECRET, OLD_SECRET]:
            self.assertEqual(post(port, "/hooks", body, signed.shopify(body, secret, "w1"))[0], 200)
        self.assertEqual(self.effects(database), {"w1": 1})
        self.ended(program)


class Slack(Webhooks):
    scheme = "slack"
    handlers = """
  message:
    from: hooks
    key: /event_id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, 0)" ]
"""
    event = {"team_id": "T1", "event_id": "Ev1", "event": {"ts": "1.5"}}

    def deliver(self, port, event, retry=None):
        return post(port, "/hooks", text_of(event), signed.slack(text_of(event), SECRET, retry))

    @on_every_store
    def test_an_event_and_its_three_retries_at_once_are_one(self, database):
        program, port = self.service(database, self.handlers)
        calls = [lambda n=n: self.deliver(port, self.event, n) for n in (None, 1, 2, 3)]
        self.assertEqual([answer[0] for answer in all_at_once(calls)], [200] * 4)
        self.assertEqual(self.deliver(port, {**self.event, "event_id": "Ev2"})[0], 200, "an edit of that message")
        self.assertEqual(self.effects(database), {"Ev1": 1, "Ev2": 1})
        self.ended(program)

    @on_every_store
    def test_a_retry_counts_where_the_first_attempt_died(self, database):
        config, port = self.config(database, self.handlers)
        first = self.serve(config, steps=True)
        asked = Asked(self.deliver, port, self.event)
        self.assertTrue(first.run_until("recorded"))
        first.kill()
        with self.assertRaises(Exception):
            asked.answer()
        second = self.serve(config)
        self.assertEqual(self.deliver(port, self.event, 1)[0], 200)
        self.assertEqual(self.effects(database), {"Ev1": 1})
        self.ended(second)


if __name__ == "__main__":
    unittest.main()
