"""A database that goes away and comes back: callers are told, nothing is lost, and the program goes on by itself."""

import http.client
import json
import unittest
import urllib.parse

from gate import Gate
from harness import Case, PostgresDatabase, Program, free_port, post

CONFIG = """
store: {store}
admin: {{ listen: "127.0.0.1:{admin}" }}
sources:
  payments: {{ http: {{ listen: "127.0.0.1:{port}", path: /pay, requests: {{ principal: none }} }} }}
handlers:
  pay:
    from: payments
    key: header:Idempotency-Key
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    answer: {{ status: 201 }}
"""


def status_of(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


class Outage(Case):
    def start(self):
        self.postgres = self.database(PostgresDatabase)
        uri = urllib.parse.urlsplit(self.postgres.uri)
        self.gate = Gate((uri.hostname, uri.port))
        self.addCleanup(self.gate.close)
        through_gate = uri._replace(netloc=f"{uri.username}@127.0.0.1:{self.gate.port}").geturl()
        self.port, self.admin = free_port(), free_port()
        config = self.write("semel.yaml", CONFIG.format(store=through_gate, port=self.port, admin=self.admin))
        self.migrated(config)
        self.program = Program("run", config)
        self.addCleanup(lambda: self.program.process.poll() is None and self.program.kill())
        self.program.wait_until_it_says("listening")

    def pay(self, key):
        return post(self.port, "/pay", {"cents": 1}, {"Idempotency-Key": key})

    def pay_until_served(self, key):
        """Each call waits for the lane's next try, so this does not spin."""
        for _ in range(1000):
            status, headers, _ = self.pay(key)
            if status == 201:
                return headers
            self.assertEqual(status, 503)
        self.fail("never served again")

    def wait_for_readiness(self, status):
        for _ in range(100_000):
            if status_of(self.admin, "/readyz") == status:
                return
        self.fail(f"/readyz never answered {status}")

    def test_callers_are_told_while_it_is_away_and_served_when_it_is_back(self):
        self.start()
        self.assertEqual(self.pay("before")[0], 201)
        self.wait_for_readiness(200)
        self.gate.shut()
        status, headers, body = self.pay("during")
        self.assertEqual(status, 503)
        self.assertGreaterEqual(int(headers["Retry-After"]), 1)
        self.assertEqual(json.loads(body)["type"], "urn:semel:problem:try-again")
        self.wait_for_readiness(503)
        self.assertEqual(status_of(self.admin, "/healthz"), 200)
        self.gate.open()
        self.pay_until_served("during")
        self.wait_for_readiness(200)
        self.assertEqual(self.pay_until_served("before").get("Idempotent-Replayed"), "true")
        self.assertEqual(self.program.stop(), 0, self.program.text())
        rows = self.postgres.execute("SELECT id, count(*) FROM effects GROUP BY id ORDER BY id")
        self.assertEqual(rows, [("before", "1"), ("during", "1")])

    def test_a_database_that_never_answers_is_seen(self):
        self.start()
        self.wait_for_readiness(200)
        self.gate.flowing.clear()
        self.wait_for_readiness(503)
        self.assertEqual(status_of(self.admin, "/healthz"), 200)
        self.gate.flowing.set()
        self.wait_for_readiness(200)
        self.assertEqual(self.program.stop(), 0, self.program.text())

    def test_a_killed_connection_is_replaced(self):
        self.start()
        for number in range(5):
            self.pay_until_served(f"key-{number}")
            self.postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                  "WHERE datname = current_database() AND pid <> pg_backend_pid()")
        for number in range(5):
            self.assertEqual(self.pay_until_served(f"key-{number}").get("Idempotent-Replayed"), "true")
        self.assertEqual(self.program.stop(), 0, self.program.text())
        self.assertEqual(self.postgres.execute("SELECT count(*), count(DISTINCT id) FROM effects"), [("5", "5")])


if __name__ == "__main__":
    unittest.main()
