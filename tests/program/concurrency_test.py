"""Two processes with the same message at the same time, and a commit whose answer is lost: one effect, one answer."""

import collections
import json
import threading
import unittest
import urllib.parse

from gate import Gate
from harness import DATABASES, Case, PostgresDatabase, Program, free_port, post

CONFIG = """
store: {store}
sources:
  payments: {{ http: {{ listen: "127.0.0.1:{port}", path: /pay, requests: {{ principal: none }} }} }}
handlers:
  pay:
    from: payments
    key: header:Idempotency-Key
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    answer: {{ status: 201, body: {{ paid: ":/cents" }} }}
"""


class Daemons(Case):
    def start(self, store, port, name="semel.yaml"):
        config = self.write(name, CONFIG.format(store=store, port=port))
        self.migrated(config)
        program = Program("run", config)
        self.addCleanup(lambda: program.process.poll() is None and program.kill())
        program.wait_until_it_says("listening")
        return program

    def effects(self, database):
        return {row[0]: int(row[1]) for row in database.execute("SELECT id, count(*) FROM effects GROUP BY id")}


class TwoProcesses(Daemons):
    def test_fifty_at_once_over_two_processes(self):
        for kind in DATABASES:
            with self.subTest(store=kind.name):
                database = self.database(kind)
                ports = [free_port(), free_port()]
                programs = [self.start(database.uri, port, f"{port}.yaml") for port in ports]
                together = threading.Barrier(50)
                answers = []

                def ask(number):
                    together.wait()
                    answers.append(post(ports[number % 2], "/pay", {"cents": 5}, {"Idempotency-Key": "one"}))

                threads = [threading.Thread(target=ask, args=(n,)) for n in range(50)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(self.effects(database), {"one": 1})
                self.assertEqual(collections.Counter((s, json.loads(b)["paid"]) for s, _, b in answers), {(201, 5): 50})
                replayed = [h.get("Idempotent-Replayed") for _, h, _ in answers]
                self.assertEqual(collections.Counter(replayed), {"true": 49, None: 1})
                for program in programs:
                    self.assertEqual(program.stop(), 0, program.text())


class LostCommitReply(Daemons):
    def test_the_next_claim_tells_and_the_caller_gets_the_first_answer(self):
        database = self.database(PostgresDatabase)
        uri = urllib.parse.urlsplit(database.uri)
        gate = Gate((uri.hostname, uri.port))
        self.addCleanup(gate.close)
        user = uri.netloc.rpartition("@")[0]
        through_gate = uri._replace(netloc=(user + "@" if user else "") + f"127.0.0.1:{gate.port}").geturl()
        port = free_port()
        program = self.start(through_gate, port)
        gate.swallow = 1
        status, _, body = post(port, "/pay", {"cents": 5}, {"Idempotency-Key": "one"})
        self.assertEqual((status, json.loads(body)), (201, {"paid": 5}))
        self.assertEqual(gate.swallowed, 1)
        self.assertEqual(self.effects(database), {"one": 1})
        self.assertEqual(program.stop(), 0, program.text())


if __name__ == "__main__":
    unittest.main()
