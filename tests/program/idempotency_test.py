"""Requests with an Idempotency-Key, against the shipped program: the first answer again, never another's, never for
another request; and what a failure, a crash or a caller that goes away leaves of a key."""

import http.client
import json
import unittest

from harness import Asked, Case, all_at_once, free_port, on_every_store, post, run

CONFIG = """
store: {{ uri: "{store}", lock_timeout: {lock_timeout} }}
admin: none
sources:
  orders: {{ http: {{ listen: "127.0.0.1:{port}", path: /orders, requests: {{ principal: {principal} }} }} }}
handlers:
  order:
    from: orders
{handler}
"""

ORDER = """
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    answer:
      status: 201
      headers:
        Location: /orders/7
        ETag: '"v1"'
        Set-Cookie: session=s3; expires=Mon, 21 Oct 2030 07:28:00 GMT
        X-Trace: t1
      body: { ordered: ":/cents" }
"""


class Requests(Case):
    def config(self, database, handler=ORDER, principal="none", lock_timeout="10s"):
        port = free_port()
        text = CONFIG.format(store=database.uri, port=port, handler=handler, principal=principal,
                             lock_timeout=lock_timeout)
        return self.migrated(self.write(f"{port}.yaml", text)), port

    def service(self, database, *arguments, **settings):
        config, port = self.config(database, *arguments, **settings)
        return self.serve(config), port

    def order(self, port, key, body, headers=None):
        keyed = {"Idempotency-Key": key} if key is not None else {}
        return post(port, "/orders", body, {**keyed, **(headers or {})})

    def effects(self, database):
        return database.execute("SELECT id, cents FROM effects ORDER BY id, cents")


class Replay(Requests):
    @on_every_store
    def test_the_first_answer_is_replayed(self, database):
        program, port = self.service(database)
        first, again = self.order(port, "k", {"cents": 5}), self.order(port, "k", {"cents": 5})
        self.assertEqual((first[0], first[2]), (201, '{"ordered":5}'))
        self.assertEqual((again[0], again[2]), (first[0], first[2]), "the status and the bytes")
        for name in ["Location", "ETag", "Content-Type"]:
            self.assertEqual(again[1].get(name), first[1][name])
        self.assertEqual([answer[1].get("Idempotent-Replayed") for answer in (first, again)], [None, "true"])
        self.assertEqual(self.effects(database), [("k", "5")])
        self.ended(program)

    @on_every_store
    def test_a_cookie_is_given_once_and_kept_nowhere(self, database):
        config, port = self.config(database)
        program = self.serve(config)
        first, again = self.order(port, "k", {"cents": 5}), self.order(port, "k", {"cents": 5})
        self.assertEqual(first[1]["Set-Cookie"], "session=s3; expires=Mon, 21 Oct 2030 07:28:00 GMT")
        self.assertEqual([again[1].get(name) for name in ("Set-Cookie", "X-Trace")], [None, None])
        self.ended(program)
        code, output, errors = run("records", config, "--handler", "order", "--key", "k", "--json")
        self.assertEqual(code, 0, errors)
        self.assertNotIn("session=s3", output)

    @on_every_store
    def test_members_in_another_order_are_the_same_request(self, database):
        program, port = self.service(database)
        self.order(port, "k", '{"cents":5,"to":{"a":1,"b":2}}')
        again = self.order(port, "k", '{ "to": {"b": 2, "a": 1.0}, "cents": 5 }')
        self.assertEqual((again[0], again[1].get("Idempotent-Replayed")), (201, "true"))
        swapped = self.order(port, "k", '{"cents":5,"to":[1,2]}')
        self.assertEqual(swapped[0], 422)
        self.ended(program)

    @on_every_store
    def test_an_answer_too_long_to_keep_is_said_to_be_gone_and_nothing_runs_again(self, database):
        handler = """
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    answer: { status: 201, body: [ ":/note", ":/note" ] }
"""
        program, port = self.service(database, handler)
        body = {"cents": 5, "note": "x" * (600 << 10)}
        first, again = self.order(port, "k", body), self.order(port, "k", body)
        self.assertEqual((first[0], len(json.loads(first[2]))), (201, 2))
        self.assertEqual((again[0], again[1].get("Idempotent-Replayed")), (410, "true"))
        self.assertIn("answer-no-longer-kept", again[2])
        self.assertEqual(self.effects(database), [("k", "5")])
        self.ended(program)


class Conflict(Requests):
    @on_every_store
    def test_everything_that_was_asked_counts(self, database):
        program, port = self.service(database)
        asked = {"cents": 10, "route": ["a", "b"], "note": None}
        self.assertEqual(self.order(port, "k", asked)[0], 201)
        for other in [{**asked, "cents": 1000}, {**asked, "route": ["b", "a"]}, {"cents": 10, "route": ["a", "b"]}]:
            status, headers, body = self.order(port, "k", other)
            self.assertEqual((status, headers.get("Idempotent-Replayed")), (422, None), other)
            self.assertIn("idempotency-key-reused", body)
            self.assertNotIn("ordered", body, "nothing of the first answer")
        self.assertEqual(self.effects(database), [("k", "10")])
        self.ended(program)

    @on_every_store
    def test_what_changes_from_attempt_to_attempt_can_be_left_out(self, database):
        handler = "    fingerprint: { only: [ /payment, /cents ] }" + ORDER
        program, port = self.service(database, handler)
        asked = {"payment": "p1", "cents": 10, "sdk": {"createdAt": "10:00"}}
        self.assertEqual(self.order(port, "k", asked)[0], 201)
        retried = self.order(port, "k", {**asked, "sdk": {"createdAt": "10:07"}})
        self.assertEqual((retried[0], retried[1].get("Idempotent-Replayed")), (201, "true"))
        self.assertEqual(self.order(port, "k", {**asked, "cents": 11})[0], 422)
        self.assertEqual(self.effects(database), [("k", "10")])
        self.ended(program)

    @on_every_store
    def test_of_two_amounts_at_work_at_once_one_is_done_and_the_other_refused(self, database):
        other, port = self.service(database, lock_timeout="100ms")
        for step in ["claimed", "recorded"]:
            held = self.serve((config := self.config(database))[0], steps=True)
            first = Asked(self.order, config[1], step, {"cents": 10})
            self.assertTrue(held.run_until(step))
            status, headers, body = self.order(port, step, {"cents": 1000})
            self.assertIn(status, [409, 201])  # SQLite's writer holds the file; PostgreSQL's first may be overtaken
            if status == 409:
                self.assertIn("in-flight", body)
                self.assertGreaterEqual(int(headers["Retry-After"]), 1)
            held.run_freely()
            self.assertEqual(first.answer()[0], 201 if status == 409 else 422)
            self.assertEqual(self.order(port, step, {"cents": 1000})[0], 422 if status == 409 else 201)
            done = "10" if status == 409 else "1000"
            self.assertEqual([row for row in self.effects(database) if row[0] == step], [(step, done)])
            self.ended(held)
        self.ended(other)

    @on_every_store
    def test_another_amount_is_refused_after_a_crash_too(self, database):
        config, port = self.config(database)
        held = self.serve(config, steps=True)
        first = Asked(self.order, port, "k", {"cents": 10})
        self.assertTrue(held.run_until("committed"))
        held.kill()
        self.assertRaises((OSError, http.client.HTTPException), first.answer)
        program = self.serve(config)
        self.assertEqual(self.order(port, "k", {"cents": 1000})[0], 422)
        retried = self.order(port, "k", {"cents": 10})
        self.assertEqual((retried[0], retried[1].get("Idempotent-Replayed")), (201, "true"))
        self.assertEqual(self.effects(database), [("k", "10")])
        self.ended(program)


class Callers(Requests):
    @on_every_store
    def test_a_key_of_one_caller_is_not_anothers(self, database):
        for principal, header in [("{ header: X-Customer }", "X-Customer"), ("credential", "Authorization")]:
            program, port = self.service(database, principal=principal)
            key = f"k-{header}"
            for caller, cents in [("ann", 1), ("bob", 2), ("ann", 1)]:
                status, _, body = self.order(port, key, {"cents": cents}, {header: caller})
                self.assertEqual((status, body), (201, f'{{"ordered":{cents}}}'))
            self.assertEqual(self.order(port, key, {"cents": 1})[0], 401, "nobody's key")
            self.assertIn((key, "1"), self.effects(database))
            self.assertIn((key, "2"), self.effects(database))
            self.ended(program)
        self.assertEqual(len(self.effects(database)), 4)

    @on_every_store
    def test_the_effects_own_unique_key_keeps_callers_apart_too(self, database):
        database.execute("CREATE TABLE orders (customer text, id text, cents bigint, UNIQUE (customer, id))")
        handler = """
    guard: unique
    execute:
      - >
        INSERT INTO orders (customer, id, cents) VALUES (:principal, :key, :/cents) ON CONFLICT DO NOTHING
"""
        for principal, header in [("{ header: X-Customer }", "X-Customer"), ("credential", "Authorization")]:
            config, port = self.config(database, handler, principal=principal)
            program = self.serve(config)
            for caller, cents in [("ann", 1), ("bob", 2), ("ann", 1)]:
                self.assertEqual(self.order(port, header, {"cents": cents}, {header: caller})[0], 200)
            found = database.execute(f"SELECT cents FROM orders WHERE id = '{header}' ORDER BY cents")
            self.assertEqual(found, [("1",), ("2",)])
            self.ended(program)
            self.assertNotIn("one caller's key would count as another's", "".join(run("check", config)[1:]))
            shared = config.read_text().replace("(customer, id, cents) VALUES (:principal, ", "(id, cents) VALUES (")
            said = run("check", self.write("shared.yaml", shared))
            self.assertIn("one caller's key would count as another's", "".join(said[1:]))

    @on_every_store
    def test_where_callers_are_not_told_apart_one_learns_nothing_of_anothers_request(self, database):
        program, port = self.service(database)
        self.assertEqual(self.order(port, "1", {"cents": 700})[0], 201)
        status, headers, body = self.order(port, "1", {"cents": 3})
        self.assertEqual(status, 422)
        self.assertNotIn("700", body + str(headers))
        self.assertNotIn("Location", headers)
        self.ended(program)

    @on_every_store
    def test_a_request_without_a_key_is_refused_and_never_shares_one(self, database):
        program, port = self.service(database)
        for key in [None, "", '""']:
            for _ in range(2):
                status, _, body = self.order(port, key, {"cents": 5})
                self.assertEqual(status, 400)
                self.assertNotIn("ordered", body)
        self.assertEqual(self.effects(database), [])
        self.ended(program)

    @on_every_store
    def test_a_key_of_several_parts_needs_all_of_them(self, database):
        program, port = self.service(database, "    key: [ header:Idempotency-Key, /user, /order ]" + ORDER)
        good = {"cents": 5, "user": "u", "order": "o"}
        for missing in [{"user": None}, {"order": None}, {"user": None, "order": None}, {"user": ""}, {"order": {}}]:
            for _ in range(2):
                status, _, body = self.order(port, "k", {**good, **missing})
                self.assertEqual(status, 400, missing)
                self.assertIn("no-key", body)
        self.assertEqual(self.order(port, "k", {"cents": 5})[0], 400)
        self.assertEqual(self.effects(database), [])
        self.assertEqual(self.order(port, "k", good)[0], 201)
        self.ended(program)

    @on_every_store
    def test_keys_that_only_look_alike_are_different_keys(self, database):
        program, port = self.service(database, "    key: [ header:Idempotency-Key, /name ]" + ORDER.replace(
            ":key", ":/name"))
        names = ["bot-a", "Bot-A", "bot-a ", " bot-a", "caf\u00e9", "cafe\u0301", "1", "01"]
        for name in names:
            self.assertEqual(self.order(port, "k", {"cents": 1, "name": name})[0], 201)
        found = database.execute("SELECT count(*) FROM effects")
        self.assertEqual(found, [(str(len(names)),)])
        self.ended(program)

    @on_every_store
    def test_no_credential_is_kept_anywhere(self, database):
        secret = "c0nfidential"
        config, port = self.config(database, principal="credential")
        program = self.serve(config)
        headers = {"Authorization": f"Bearer {secret}", "Cookie": f"session={secret}", "X-Api-Key": secret,
                   "X-Amz-Security-Token": secret}
        for body in [{"cents": 5}, {"cents": 6}, {"cents": None}, '{"cents":']:
            self.order(port, "k", body, headers)
        self.assertEqual(self.effects(database), [("k", "5")])
        self.ended(program)
        self.assertNotIn(secret, database.dump() + "".join(program.text()))


class Failure(Requests):
    priced = """
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)", "INSERT INTO checked (item) VALUES (:/item)" ]
    answer: { status: 201, body: { ordered: ":/cents" } }
"""

    def checked(self, database):
        database.execute("CREATE TABLE checked (item text NOT NULL)")
        return database

    @on_every_store
    def test_a_failed_request_is_neither_replayed_nor_in_progress(self, database):
        program, port = self.service(self.checked(database), self.priced)
        for _ in range(2):
            status, headers, _ = self.order(port, "k", {"cents": 5})
            self.assertEqual((status, headers.get("Idempotent-Replayed")), (500, None))
        self.assertEqual(self.effects(database), [], "what it wrote before it failed is undone")
        corrected = self.order(port, "k", {"cents": 5, "item": "book"})
        self.assertEqual((corrected[0], corrected[1].get("Idempotent-Replayed")), (201, None))
        self.assertEqual(self.effects(database), [("k", "5")])
        self.ended(program)

    @on_every_store
    def test_a_refused_request_can_be_corrected_under_its_key(self, database):
        program, port = self.service(database, "    key: [ header:Idempotency-Key, /user ]" + ORDER,
                                     principal="{ header: X-Customer }")
        ann = {"X-Customer": "ann"}
        refusals = [('{"cents":', ann, 400), ({"cents": 5}, ann, 400), ({"cents": 5, "user": "u"}, {}, 401)]
        for body, headers, status in refusals:
            self.assertEqual(self.order(port, "k", body, headers)[0], status)
        corrected = self.order(port, "k", {"cents": 5, "user": "u"}, ann)
        self.assertEqual((corrected[0], corrected[1].get("Idempotent-Replayed")), (201, None))
        self.ended(program)

    @on_every_store
    def test_a_crash_leaves_no_key_in_progress(self, database):
        config, port = self.config(database)
        for step in ["claimed", "handled", "recorded"]:
            held = self.serve(config, steps=True)
            asked = Asked(self.order, port, step, {"cents": 5})
            self.assertTrue(held.run_until(step))
            held.kill()
            self.assertRaises((OSError, http.client.HTTPException), asked.answer)
            program = self.serve(config)
            status, headers, _ = self.order(port, step, {"cents": 5})
            self.assertEqual((status, headers.get("Idempotent-Replayed")), (201, None), step)
            self.ended(program)
        self.assertEqual(self.effects(database), [("claimed", "5"), ("handled", "5"), ("recorded", "5")])

    @on_every_store
    def test_a_caller_that_goes_away_changes_nothing(self, database):
        config, port = self.config(database)
        program = self.serve(config, steps=True)
        impatient = http.client.HTTPConnection("127.0.0.1", port)
        impatient.request("POST", "/orders", '{"cents":5}', {"Idempotency-Key": "k"})
        self.assertTrue(program.run_until("handled"))
        impatient.close()
        program.release()
        self.assertTrue(program.run_until("settled"))
        program.run_freely()
        retried = self.order(port, "k", {"cents": 5})
        self.assertEqual((retried[0], retried[1].get("Idempotent-Replayed")), (201, "true"))
        self.assertEqual(self.effects(database), [("k", "5")])
        self.ended(program)

    @on_every_store
    def test_a_retry_by_the_transport_meets_the_first_on_another_node(self, database):
        programs = [self.service(database) for _ in range(2)]
        calls = [lambda k=f"k{n}", p=port: self.order(p, k, {"cents": 5}) for n in range(10) for _, port in programs]
        answers = all_at_once(calls)
        while again := [n for n, answer in enumerate(answers) if answer[0] in (409, 503)]:  # as its Retry-After asks
            for n in again:
                answers[n] = calls[n]()
        self.assertEqual({(status, body) for status, _, body in answers}, {(201, '{"ordered":5}')})
        self.assertEqual([a[1].get("Idempotent-Replayed") for a in answers].count("true"), 10)
        self.assertEqual(self.effects(database), sorted((f"k{n}", "5") for n in range(10)))
        self.ended(*[program for program, _ in programs])

    @on_every_store
    def test_what_one_process_did_not_find_another_may_have_done_since(self, database):
        here, here_port = self.service(self.checked(database), self.priced)
        there, there_port = self.service(database, self.priced)
        self.assertEqual(self.order(here_port, "k", {"cents": 5})[0], 500, "looked for here, and not found")
        done = self.order(there_port, "k", {"cents": 5, "item": "book"})
        self.assertEqual(done[0], 201)
        for port in (here_port, there_port):
            again = self.order(port, "k", {"cents": 5, "item": "book"})
            self.assertEqual((again[0], again[2], again[1].get("Idempotent-Replayed")), (201, done[2], "true"))
            self.assertEqual(self.order(port, "k", {"cents": 6, "item": "book"})[0], 422)
        self.assertEqual(self.effects(database), [("k", "5")])
        self.ended(here, there)


if __name__ == "__main__":
    unittest.main()
