"""The gateway end to end: the program before an Express service and before nginx, and clients that try again."""

import gzip
import hashlib
import http.client
import json
import pathlib
import re
import socket
import sys
import tempfile
import unittest

from harness import (Asked, Case, PostgresDatabase, PostgresServer, SqliteDatabase, all_at_once, free_port,
                     on_every_store, run)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "gateway"))
from services import Answered, Cutter, Nginx, Service, curl, retrying  # noqa: E402

# `plain` knows nothing of the service, `remembering` that it takes keys, and `web` has nginx between. The hasty ones do
# not try for long, and `away` has nobody behind it.
CONFIG = """
store: {{ uri: "{store}", lock_timeout: 10s }}
admin: none
providers:
  remembering: {{ key: {{ header: Idempotency-Key, lifetime: 24h, size_max: 255 }} }}
sources:
  plain:
    gateway: {{ listen: "127.0.0.1:{plain}", upstream: "{service}", waiting: {{ deadline: 5m, late: 409 }} }}
    routes:
      - {{ match: POST /payments, principal: none }}
      - {{ match: POST /zipped, principal: none }}
      - {{ match: POST /status/*, principal: none }}
      - {{ match: POST /accounts, principal: {{ header: X-User }} }}
  remembering:
    gateway:
      listen: "127.0.0.1:{remembering}"
      upstream: "{service}"
      provider: remembering
      waiting: {{ deadline: 5m, again: wait }}
    routes: [ {{ match: POST /remembering, principal: none }} ]
  web:
    gateway: {{ listen: "127.0.0.1:{web}", upstream: "{nginx}", waiting: {{ deadline: 5m }} }}
    routes: [ {{ match: POST /payments, key: optional, principal: none }} ]
  hasty:
    gateway: {{ listen: "127.0.0.1:{hasty}", upstream: "{service}", waiting: {{ deadline: 4s }} }}
    routes: [ {{ match: POST /busy/*, principal: none }} ]
  hasty-remembering:
    gateway:
      listen: "127.0.0.1:{hasty_remembering}"
      upstream: "{service}"
      provider: remembering
      waiting: {{ deadline: 4s }}
    routes: [ {{ match: POST /busy/*, principal: none }} ]
  away:
    gateway: {{ listen: "127.0.0.1:{away}", upstream: "http://127.0.0.1:{nobody}", waiting: {{ deadline: 4s }} }}
    routes: [ {{ match: POST /payments, principal: none }} ]
"""
GATEWAYS = ["plain", "remembering", "web", "hasty", "hasty_remembering", "away"]

PARALLEL = 50
COUNTED = 20
LARGE_MEBIBYTES = 50
GROWTH_MEBIBYTES_MAX = 30
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
REPLAYED = ["content-type", "location", "etag"]  # of those the service sends


class Behind(Case):
    """Each start has a service of its own, and nginx before it; both are gone afterwards."""

    def configured(self, database, **changes):
        self.ports = {name: free_port() for name in [*GATEWAYS, "nobody"]}
        ports = {**self.ports, **changes}
        return self.write(f"{self.ports['plain']}.yaml",
                          CONFIG.format(store=database.uri, service=self.service.url, nginx=self.nginx.url, **ports))

    def start(self, database):
        self.service = Service()
        self.addCleanup(self.service.stop)
        self.nginx = Nginx(tempfile.mkdtemp(dir=self.folder), self.service.url)
        self.addCleanup(self.nginx.stop)
        self.config = self.migrated(self.configured(database))
        return self.serve(self.config)

    def url(self, gateway, path):
        return f"http://127.0.0.1:{self.ports[gateway]}{path}"

    def send(self, key, body="{}", gateway="plain", path="/payments", headers=()):
        """One POST, which is never sent again."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[gateway])
        try:
            connection.putrequest("POST", path)
            for name, value in [("Idempotency-Key", key), ("Content-Length", str(len(body))), *headers]:
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body.encode())
            answer = connection.getresponse()
            return Answered(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def executions(self, key=None, at_least=0):
        return [one for one in self.service.executions(at_least) if key in (None, one.get("key"))]

    def waiting(self):
        """semel intents list --waiting: its exit code, and the ids."""
        code, output, errors = run("intents", self.config, "list", "--waiting", "--json")
        self.assertIn(code, (0, 4), errors)
        return code, [intent["id"] for intent in json.loads(output)]

    def resolve(self, intent, *what):
        code, _, errors = run("intents", self.config, "resolve", intent, *what, "--by", "ann", "--why", "looked")
        self.assertEqual(code, 0, errors)

    @staticmethod
    def let_the_lease_run_out(database):
        """Of calls that a process which is dead had begun; the next one need not wait for it."""
        if database.name == "sqlite":
            database.execute("UPDATE semel_intents SET due_at = 0 WHERE state = 2")
        else:
            database.execute("UPDATE semel.intents SET due_at = statement_timestamp() WHERE state = 2")

    def assert_replay(self, first, again):
        self.assertEqual((again.status, again.body), (first.status, first.body))
        self.assertTrue(again.replayed())
        self.assertFalse(first.replayed())
        for name in REPLAYED:
            self.assertEqual(again.all(name), first.all(name), name)
        self.assertEqual(again.all("Set-Cookie"), [])


class Answers(Behind):
    @on_every_store
    def test_the_first_answer_comes_through_whole_and_is_replayed_without_its_cookies(self, database):
        program = self.start(database)
        for done, gateway in enumerate(("plain", "web"), 1):
            first = self.send("k1", '{"amount": 5}', gateway)
            self.assertEqual(first.status, 201)
            self.assertEqual(first.body, f'{{ "id": {done},\n  "paid": 13 }}\n'.encode())
            self.assertEqual(first.header("Location"), f"/payments/{done}")
            self.assertEqual(first.header("X-Payment"), f"p-{done}")
            self.assertEqual(first.all("Set-Cookie"), [
                "session=s3ss10n; Expires=Mon, 21 Oct 2030 07:28:00 GMT; Path=/", "theme=dark"])
            # nginx takes the Connection header for itself and passes on what it named.
            named = ("X-Of-The-Connection",) if gateway == "plain" else ()
            for of_the_connection in (*named, "Keep-Alive", "Transfer-Encoding"):
                self.assertEqual(first.all(of_the_connection), [], of_the_connection)
            self.assertEqual(len(first.all("Content-Length")), 1)
            again = curl(self.folder, self.url(gateway, "/payments"), "-d", '{"amount": 5}',
                         "-H", "Idempotency-Key: k1")
            self.assert_replay(first, again)
            self.assertEqual(len(self.executions()), done)
        self.ended(program)
        self.assertNotIn("s3ss10n", database.dump())

    @on_every_store
    def test_a_body_that_was_encoded_is_replayed_with_its_encoding(self, database):
        program = self.start(database)
        first, again = [self.send("z", path="/zipped") for _ in range(2)]
        self.assert_replay(first, again)
        self.assertEqual(again.header("Content-Encoding"), "gzip")
        self.assertEqual(gzip.decompress(again.body), b"what was zipped")
        self.ended(program)

    @on_every_store
    def test_a_bad_request_is_answered_and_nothing_is_done(self, database):
        program = self.start(database)
        for key, headers, status, problem in [
                (None, [], 400, "idempotency-key-missing"),
                ("a", [("Idempotency-Key", "b")], 400, "idempotency-key-invalid")]:
            refused = self.send(key, headers=headers)
            self.assertEqual((refused.status, refused.problem()), (status, problem))
        nobody = self.send("k", path="/accounts")
        self.assertEqual((nobody.status, nobody.problem()), (401, "principal-missing"))
        large = curl(self.folder, self.url("plain", "/payments"), "-H", "Idempotency-Key: l", "-H", "Expect:",
                     "--data-binary", f"@{self.large_file(2)}")
        self.assertEqual((large.status, large.problem()), (413, "body-too-large"))
        self.assertEqual(self.executions(), [])
        self.assertEqual(self.send("k", "1").status, 201)
        reused = self.send("k", "2")
        self.assertEqual((reused.status, reused.problem()), (422, "idempotency-key-reused"))
        self.assertEqual(len(self.executions()), 1)
        self.ended(program)

    def large_file(self, mebibytes):
        path = self.folder / f"large-{mebibytes}"
        path.write_bytes(b"y" * (mebibytes << 20))
        return path

    @on_every_store
    def test_without_a_key_an_optional_route_passes_everything_through(self, database):
        program = self.start(database)
        bodies = [self.send(None, gateway="web").body for _ in range(2)]
        self.assertNotEqual(bodies[0], bodies[1])
        self.assertEqual(len(self.executions()), 2)
        self.ended(program)

    @on_every_store
    def test_what_the_service_says_below_500_is_an_answer(self, database):
        program = self.start(database)
        for status in (200, 302, 400, 402, 409, 422):
            first, again = [self.send(f"s{status}", path=f"/status/{status}") for _ in range(2)]
            self.assertEqual(first.status, status)
            self.assert_replay(first, again)
            self.assertEqual(len(self.executions(f"s{status}")), 1, status)
        self.ended(program)

    @on_every_store
    def test_a_request_that_was_turned_away_at_the_door_may_come_again(self, database):
        program = self.start(database)
        for status in (401, 403, 404):
            first, again = [self.send(f"s{status}", path=f"/status/{status}") for _ in range(2)]
            self.assertEqual((first.status, again.status, again.replayed()), (status, status, False))
            self.assertEqual(len(self.executions(f"s{status}")), 2, status)
        self.ended(program)


class AtOnce(Behind):
    @on_every_store
    def test_of_many_first_requests_one_is_done(self, database):
        program = self.start(database)
        answers = all_at_once([lambda: self.send("many")] * PARALLEL)
        self.check_one_was_done(answers)
        again = self.send("many")
        self.assertTrue(again.replayed())
        self.ended(program)

    def check_one_was_done(self, answers):
        self.assertEqual(len(self.executions("many")), 1)
        done = [answer for answer in answers if answer.status == 201]
        self.assertEqual(sum(not answer.replayed() for answer in done), 1)
        self.assertEqual(len({answer.body for answer in done}), 1)
        for other in answers:
            if other.status != 201:
                self.assertEqual((other.status, other.problem()), (409, "in-flight"))
                self.assertIsNotNone(other.header("Retry-After"))

    def test_of_requests_through_two_gateways_on_one_store_one_is_done(self):
        database = self.database(PostgresDatabase)
        programs = [self.start(database)]
        ports = [self.ports["plain"]]
        programs.append(self.serve(self.configured(database)))
        ports.append(self.ports["plain"])

        def through(port):
            return lambda: curl(self.folder, f"http://127.0.0.1:{port}/payments", "-d", "{}",
                                "-H", "Idempotency-Key: many")

        self.check_one_was_done(all_at_once([through(ports[i % 2]) for i in range(PARALLEL)]))
        self.ended(*programs)

    @on_every_store
    def test_while_it_is_under_way_another_is_told_so_unless_it_may_wait(self, database):
        program = self.start(database)
        self.service.fault("hold")
        first = Asked(self.send, "held")
        self.executions(at_least=1)
        another = self.send("held")
        self.assertEqual((another.status, another.problem()), (409, "in-flight"))
        self.service.release()
        self.assert_replay(first.answer(), self.send("held"))
        self.assertEqual(len(self.executions()), 1)
        self.ended(program)


class Retries(Behind):
    def lose_the_first_answer(self, database, client):
        """The client's first connection is cut while the service works, and it tries again by itself."""
        program = self.start(database)
        cutter = Cutter(self.ports["plain"])
        self.addCleanup(cutter.stop)
        self.service.fault("hold")
        asked = Asked(client, f"http://127.0.0.1:{cutter.port}/payments")
        self.executions(at_least=1)
        cutter.cut()
        self.service.release()
        answer = asked.answer()
        self.assertEqual((answer.status, answer.replayed()), (201, True))
        self.assertEqual(answer.body, b'{ "id": 1,\n  "paid": 2 }\n')
        self.assertEqual(answer.header("Location"), "/payments/1")
        self.assertEqual(len(self.executions()), 1)
        self.ended(program)

    @on_every_store
    def test_urllib3_that_lost_its_answer_gets_the_first_one(self, database):
        self.lose_the_first_answer(database, lambda url: retrying(url, "lost", b"{}"))

    @on_every_store
    def test_curl_that_lost_its_answer_gets_the_first_one(self, database):
        self.lose_the_first_answer(database, lambda url: curl(
            self.folder, url, "-d", "{}", "-H", "Idempotency-Key: lost", "--fail-with-body", "--retry", "20",
            "--retry-all-errors"))

    @on_every_store
    def test_a_client_that_hangs_up_does_not_end_the_call(self, database):
        program = self.start(database)
        self.service.fault("hold")
        with socket.create_connection(("127.0.0.1", self.ports["plain"])) as client:
            client.sendall(b"POST /payments HTTP/1.1\r\nHost: h\r\nIdempotency-Key: gone\r\n"
                           b"Content-Length: 2\r\n\r\n{}")
            self.executions(at_least=1)
        self.service.release()
        program.wait_until_it_says("called")
        again = self.send("gone")
        self.assertEqual((again.status, again.replayed(), again.body), (201, True, b'{ "id": 1,\n  "paid": 2 }\n'))
        self.assertEqual(len(self.executions()), 1)
        self.ended(program)

    @on_every_store
    def test_a_key_may_be_as_long_as_keys_are(self, database):
        program = self.start(database)
        longest = "k" * 1024
        first = self.send(longest)
        self.assertEqual(first.status, 201)
        self.assert_replay(first, self.send(longest))
        self.assertEqual(self.send(longest + "k").status, 400)
        self.assertEqual(len(self.executions()), 1)
        self.ended(program)


class NotDone(Behind):
    """What the service has certainly not done is tried again while the client waits, and then it is told so."""

    BUSY = [("hasty", 429, 60), ("hasty", 503, 60), ("hasty", 429, None), ("hasty_remembering", 503, 60),
            ("hasty_remembering", 429, 1)]

    @on_every_store
    def test_a_busy_services_own_answer_comes_through_and_its_key_may_come_again(self, database):
        program = self.start(database)
        def ask(number):
            gateway, status, after = self.BUSY[number]
            path = f"/busy/{status}" + (f"?retry_after={after}" if after else "")
            return self.send(f"b{number}", gateway=gateway, path=path)

        first = all_at_once([lambda number=number: ask(number) for number in range(len(self.BUSY))])
        for (gateway, status, after), answer in zip(self.BUSY, first):
            with self.subTest(gateway=gateway, status=status, after=after):
                self.assertEqual((answer.status, answer.body, answer.replayed()), (status, b"busy", False))
                self.assertEqual(answer.header("Retry-After"), str(after) if after else None)
        self.assertEqual(self.executions(), [])
        asked = [one["key"] for one in self.service.asked()]
        self.assertEqual([asked.count(f"b{number}") for number in (0, 1, 3)], [1, 1, 1], "told to wait for longer")
        self.assertGreater(asked.count("b2"), 1)
        self.assertGreater(asked.count("b4"), 1)
        self.service.fault("idle")
        for number, again in enumerate(all_at_once([lambda n=n: ask(n) for n in range(len(self.BUSY))])):
            self.assertEqual((again.status, again.replayed()), (201, False))
            self.assert_replay(again, ask(number))
            self.assertEqual(len(self.executions(f"b{number}")), 1)
        self.ended(program)

    @on_every_store
    def test_a_service_that_cannot_be_reached_has_not_done_it(self, database):
        program = self.start(database)
        for _ in range(2):
            answer = self.send("a", gateway="away")
            self.assertEqual((answer.status, answer.problem(), answer.replayed()), (502, "not-done", False))
        self.assertEqual(self.waiting(), (0, []))
        self.ended(program)


class Ambiguity(Behind):
    def left_unknown(self, database, gateway="plain"):
        """The service did it, and the connection broke before it said so."""
        program = self.start(database)
        self.service.fault("crash")
        first, again = [self.send("u", gateway=gateway) for _ in range(2)]
        for answer in (first, again):
            self.assertEqual((answer.status, answer.problem()), (409, "outcome-unknown"))
            self.assertIsNone(answer.header("Retry-After"))
        self.assertEqual(len(self.executions()), 1)
        code, intents = self.waiting()
        self.assertEqual((code, len(intents)), (4, 1))
        self.assertEqual(run("intents", self.config, "list")[0], 4)
        return program, intents[0]

    def through_each_gateway(self, kind):
        """Through nginx it is nginx that says 502."""
        for gateway in ("plain", "web"):
            yield gateway, *self.left_unknown(self.database(kind), gateway)

    @on_every_store
    def test_what_happened_is_answered_once_an_operator_has_said_so(self, database):
        for gateway, program, intent in self.through_each_gateway(type(database)):
            self.resolve(intent, "--happened", "pay_1")
            answer = retrying(self.url(gateway, "/payments"), "u", b"{}")
            self.assertEqual(answer.status, 200)
            self.assertEqual(json.loads(answer.body), {"state": "succeeded", "reference": "pay_1"})
            self.assertEqual((len(self.executions()), self.waiting()), (1, (0, [])))
            self.ended(program)

    @on_every_store
    def test_what_did_not_happen_runs_again(self, database):
        for gateway, program, intent in self.through_each_gateway(type(database)):
            self.resolve(intent, "--did-not-happen")
            answer = retrying(self.url(gateway, "/payments"), "u", b"{}")
            self.assertEqual((answer.status, answer.header("Location")), (201, "/payments/2"))
            self.assertEqual((len(self.executions()), self.waiting()), (2, (0, [])))
            self.ended(program)

    @on_every_store
    def test_what_an_operator_gives_up_is_answered_so(self, database):
        program, intent = self.left_unknown(database)
        self.resolve(intent, "--abandoned")
        answer = retrying(self.url("plain", "/payments"), "u", b"{}")
        self.assertEqual((answer.status, answer.problem()), (500, "failed"))
        self.assertEqual(len(self.executions()), 1)
        self.ended(program)

    @on_every_store
    def test_a_kill_while_the_service_works_leaves_it_unknown(self, database):
        program = self.start(database)
        self.service.fault("hold")
        asked = Asked(self.send, "u")
        self.executions(at_least=1)
        program.kill()
        self.assertRaises((OSError, http.client.HTTPException), asked.answer)
        self.let_the_lease_run_out(database)
        program = self.serve(self.config)
        while not self.waiting()[1]:
            pass  # nobody is told when it is found; each question is a process, which takes its time
        answer = self.send("u")
        self.assertEqual((answer.status, answer.problem()), (409, "outcome-unknown"))
        self.assertEqual((len(self.executions()), self.waiting()[0]), (1, 4))
        self.ended(program)


class Remembering(Behind):
    """The configuration says that the service takes keys: a repeat is safe, and is made by itself."""

    def repeated_once(self, answer):
        self.assertEqual((answer.status, answer.body), (201, b"payment 1"))
        self.assertEqual(answer.header("Location"), "/payments/1")
        self.assertEqual((len(self.executions()), self.waiting()), (1, (0, [])))
        self.assertEqual([one["key"] for one in self.service.asked()], ["r", "r"])

    def remembering(self):
        return self.send("r", gateway="remembering", path="/remembering")

    @on_every_store
    def test_a_call_whose_connection_broke_is_repeated_with_its_key(self, database):
        program = self.start(database)
        self.service.fault("crash")
        answer = self.remembering()
        self.repeated_once(answer)
        self.assertFalse(answer.replayed())
        self.ended(program)

    @on_every_store
    def test_a_call_is_repeated_with_its_key_after_a_kill(self, database):
        program = self.start(database)
        self.service.fault("hold")
        asked = Asked(self.remembering)
        self.executions(at_least=1)
        program.kill()
        self.assertRaises((OSError, http.client.HTTPException), asked.answer)
        self.let_the_lease_run_out(database)
        program = self.serve(self.config)
        answer = self.remembering()
        self.repeated_once(answer)
        self.assertTrue(answer.replayed())
        self.ended(program)


class LongKeys(Behind):
    @on_every_store
    def test_a_key_that_the_service_cannot_take_is_refused_and_not_kept(self, database):
        program = self.start(database)
        longest = "k" * 255
        for key in (longest + "k", longest + "k"):
            answer = self.send(key, gateway="remembering", path="/remembering")
            self.assertEqual((answer.status, answer.problem()), (400, "idempotency-key-invalid"))
            self.assertIn("longer than the 255 bytes", answer.body.decode())
        self.assertEqual(self.send(longest, gateway="remembering", path="/remembering").status, 201)
        self.assertEqual(len(self.executions()), 1)
        self.ended(program)


class Checking(Behind):
    def check(self, listen, provider="", waiting="{}"):
        config = self.write("check.yaml", f"""
store: sqlite:{self.folder}/check.db
providers:
  service: {{ {provider or "calls_max: 4"} }}
sources:
  api:
    gateway: {{ listen: "127.0.0.1:{listen}", upstream: http://127.0.0.1:1, waiting: {waiting}
               {", provider: service" if provider else ""} }}
    routes:
      - {{ match: POST /payments, principal: {{ header: X-User }} }}
      - {{ match: "PUT,PATCH /notes/*", key: optional, principal: none }}
""")
        run("migrate", config)
        code, output, errors = run("check", config)
        self.assertEqual(code, 0, errors + output)
        return output, config

    def test_check_says_of_each_guarded_route_what_becomes_of_a_request_without_an_outcome(self):
        neither = "the service has neither keys nor a lookup; a request without an outcome is never repeated"
        output, config = self.check(free_port())
        self.assertIn(f"POST /payments: needs a key; callers are told apart by the header X-User; {neither}", output)
        self.assertIn(f"PUT,PATCH /notes/*: is guarded where it has a key; callers are not told apart; {neither}",
                      output)
        self.assertIn("warning: sources.api: after a timeout or a crash an operator has to look at the service", output)
        code, output, _ = run("check", config, "--json")
        gateway, = json.loads(output)["gateways"]
        self.assertEqual((code, gateway["name"], len(gateway["explanation"])), (0, "api", 4))
        output, _ = self.check(free_port(), "key: { header: Idempotency-Key, lifetime: 24h }")
        self.assertIn("service remembers the key for 1d; a request without an outcome is repeated with it for 23h, "
                      "then an operator is asked", output)
        self.assertNotIn("warning", output)

    def test_check_warns_of_what_does_not_fit_behind_a_gateway(self):
        output, _ = self.check(free_port(), "key: { header: Idempotency-Key, lifetime: 70s, margin: 30s }")
        self.assertIn("warning: sources.api: service's key may be used for 40s only", output)
        output, _ = self.check(free_port(), waiting="{ deadline: 30s }")
        self.assertIn("warning: sources.api: a caller of api is answered 503 after its answer_deadline (25s)", output)

    def test_records_know_a_gateways_name(self):
        _, config = self.check(free_port())
        code, _, errors = run("records", config, "--handler", "api", "--key", "k")
        self.assertEqual(code, 1)
        self.assertIn("no record of this key", errors)
        self.assertIn("--principal", errors)
        code, _, errors = run("records", config, "--handler", "apo", "--key", "k")
        self.assertEqual(code, 2)
        self.assertIn('there is no handler "apo"; did you mean "api"?', errors)


class Passing(Behind):
    def seen(self, *headers):
        """The headers the service saw, of a request through the gateway that nothing guards."""
        answer = curl(self.folder, self.url("plain", "/seen"), *[part for one in headers for part in ("-H", one)])
        return json.loads(answer.body)

    def guarded(self, *headers):
        """The same of a guarded one."""
        key = f"k{len(self.executions())}"
        self.send(key, headers=headers)
        raw = self.executions(key)[0]["headers"]
        return {name.lower(): value for name, value in zip(raw[::2], raw[1::2])}

    def test_headers_of_one_connection_stay_behind_and_a_trace_is_begun_or_kept(self):
        program = self.start(self.database(SqliteDatabase))
        hop = ["Connection: X-Hop", "X-Hop: 1", "TE: trailers", "Proxy-Authorization: x", "X-Mine: 2"]
        for seen in (self.seen(*hop), self.guarded(*[tuple(one.split(": ")) for one in hop])):
            self.assertEqual(seen["x-mine"], "2")
            for name in ("x-hop", "te", "proxy-authorization"):
                self.assertNotIn(name, seen)
            self.assertRegex(seen["traceparent"], r"^00-[0-9a-f]{32}-[0-9a-f]{16}-01$")
            self.assertRegex(seen["via"], "1.1")
        self.assertEqual(self.seen(f"traceparent: {TRACEPARENT}")["traceparent"], TRACEPARENT)
        self.assertEqual(self.guarded(("traceparent", TRACEPARENT))["traceparent"], TRACEPARENT)
        self.ended(program)

    def test_credentials_reach_the_service_and_are_kept_nowhere(self):
        database = self.database(SqliteDatabase)
        program = self.start(database)
        sent = {"authorization": "Bearer s3same", "cookie": "id=s3same",
                "x-api-key": "s3same", "x-auth-token": "s3same"}
        seen = self.guarded(*sent.items())
        self.assertEqual({name: seen.get(name) for name in sent}, sent)
        self.ended(program)
        self.assertNotIn("s3same", database.dump() + "".join(program.text()))

    def test_a_service_that_is_away_is_said_in_the_log(self):
        program = self.start(self.database(SqliteDatabase))
        self.assertEqual(curl(self.folder, self.url("away", "/seen")).status, 502)
        self.ended(program)
        self.assertIn(f"event=problem listener=127.0.0.1:{self.ports['away']} status=502 "
                      "problem=upstream-unreachable count=1", program.text()[1])

    def test_nginx_behind_serves_its_files(self):
        program = self.start(self.database(SqliteDatabase))
        (self.nginx.folder / "static" / "page.txt").write_text("a page")
        answer = curl(self.folder, self.url("web", "/static/page.txt"))
        self.assertEqual((answer.status, answer.body), (200, b"a page"))
        part = curl(self.folder, self.url("web", "/static/page.txt"), "-r", "2-")
        self.assertEqual((part.status, part.body), (206, b"page"))
        self.ended(program)

    def test_large_bodies_stream_through_in_little_memory(self):
        program = self.start(self.database(SqliteDatabase))
        self.send("warm")
        before = peak_mebibytes(program)
        down = curl(self.folder, self.url("plain", f"/large?mebibytes={LARGE_MEBIBYTES}"))
        self.assertEqual(len(down.body), LARGE_MEBIBYTES << 20)
        file = self.folder / "large"
        file.write_bytes(down.body)
        up = curl(self.folder, self.url("plain", "/large"), "-T", str(file))
        self.assertEqual(json.loads(up.body), {"size": LARGE_MEBIBYTES << 20,
                                               "digest": hashlib.sha256(down.body).hexdigest()})
        self.assertLess(peak_mebibytes(program) - before, GROWTH_MEBIBYTES_MAX)
        self.ended(program)


class Cost(Behind):
    def test_a_guarded_request_costs_two_commits(self):
        server = PostgresServer()
        self.addCleanup(server.stop)
        database = PostgresDatabase(self.folder, server.uri)
        database.execute("ALTER SYSTEM SET autovacuum = off")  # it writes too
        database.execute("SELECT pg_reload_conf()")
        program = self.start(database)
        self.assertEqual(self.send("first").status, 201)
        before = writing_transactions(database)
        for i in range(COUNTED):
            self.assertEqual(self.send(f"k{i}").status, 201)
        self.assertLessEqual(writing_transactions(database) - before, 2 * COUNTED)
        before = writing_transactions(database)
        for i in range(COUNTED):
            self.assertTrue(self.send(f"k{i}").replayed())
        self.assertEqual(writing_transactions(database), before)
        self.ended(program)


def writing_transactions(database):
    """How many there were on the whole server: each that writes takes the next number, and no other does."""
    (count,), = database.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())")
    return int(count)


def peak_mebibytes(program):
    status = pathlib.Path(f"/proc/{program.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


if __name__ == "__main__":
    unittest.main()
