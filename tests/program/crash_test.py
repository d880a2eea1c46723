"""SIGKILL of the shipped program at every step of a message, on both stores, from both sources; then it starts again
and comes to rest. Every message must have its effect once, and nothing may be lost."""

import http.client
import json
import threading
import unittest

from harness import (DATABASES, INTENT_STEPS, MESSAGE_STEPS, PUBLICATION_STEPS, Case, Program, free_port, post, run)

GOOD = [{"id": f"pay_{i}", "cents": i} for i in range(1, 7)]
TWICE = GOOD[0]
NO_KEY = {"cents": 7}
FAILING = {"id": "pay_failing", "cents": None}  # the effect's column takes no null
MESSAGES = [*GOOD, TWICE, NO_KEY, FAILING]

FILE_CONFIG = """
store: {store}
sources:
  payments: {{ file: {file} }}
handlers:
  pay:
    from: payments
    key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    retry: {{ attempts: 2, delay: 10ms }}
"""

HTTP_CONFIG = """
store: {store}
sources:
  payments: {{ http: {{ listen: "127.0.0.1:{port}", path: /pay, verify: none }} }}
handlers:
  pay:
    from: payments
    key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    answer: {{ status: 201, body: {{ paid: ":/cents" }} }}
"""


class Sender:
    """Sends each message until somebody answers it, as webhook senders do."""

    def __init__(self, port):
        self.port = port
        self.up = threading.Event()
        self.answers = {}
        self.threads = [threading.Thread(target=self._send, args=(n, m)) for n, m in enumerate(MESSAGES)]
        for thread in self.threads:
            thread.start()

    def _send(self, number, message):
        while True:
            self.up.wait()
            try:
                self.answers[number] = post(self.port, "/pay", json.dumps(message))
                return
            except (OSError, http.client.HTTPException):
                continue

    def join(self):
        for thread in self.threads:
            thread.join()

    def stop_once_all_are_answered(self, program):
        """So that a program which never comes to a step ends instead of serving for ever."""
        def stop():
            self.join()
            program.process.terminate()
        threading.Thread(target=stop, daemon=True).start()


class Crash(Case):
    table = []

    def check(self, database, step, source, seen):
        effects = database.execute("SELECT id, count(*) FROM effects GROUP BY id ORDER BY id")
        counts = {row[0]: int(row[1]) for row in effects}
        lost = len([m for m in GOOD if m["id"] not in counts])
        Crash.table.append((step, database.name, source, max(counts.values(), default=0), lost))
        self.assertEqual(counts, {m["id"]: 1 for m in GOOD})
        self.assertTrue(seen, f"the scenario never reached step {step}")

    def test_kill_at_every_step_reading_a_file(self):
        for kind in DATABASES:
            for step in MESSAGE_STEPS:
                with self.subTest(store=kind.name, step=step):
                    database = self.database(kind)
                    file = self.write("messages.jsonl", "".join(json.dumps(m) + "\n" for m in MESSAGES))
                    config = self.migrated(self.write("semel.yaml", FILE_CONFIG.format(store=database.uri, file=file)))
                    first = Program("run", config, steps=True)
                    seen = first.run_until(step)
                    first.kill()
                    code, _, errors = run("run", config)
                    self.assertEqual(code, 0, errors)
                    self.check(database, step, "file", seen)
                    self.assertEqual(self.dead_letters(config), ["exhausted", "no_key"])

    def test_kill_at_every_step_serving_http(self):
        for kind in DATABASES:
            for step in MESSAGE_STEPS:
                with self.subTest(store=kind.name, step=step):
                    database = self.database(kind)
                    port = free_port()
                    config = self.migrated(self.write("semel.yaml", HTTP_CONFIG.format(store=database.uri, port=port)))
                    first = Program("run", config, steps=True)
                    first.wait_until_it_says("listening")
                    sender = Sender(port)
                    sender.stop_once_all_are_answered(first)
                    sender.up.set()
                    seen = first.run_until(step)
                    sender.up.clear()
                    first.kill()
                    second = Program("run", config)
                    second.wait_until_it_says("listening")
                    sender.up.set()
                    sender.join()
                    self.assertEqual(second.stop(), 0, second.text())
                    self.check(database, step, "http", seen)
                    for number, message in enumerate(MESSAGES):
                        status, _, body = sender.answers[number]
                        if message in GOOD:
                            self.assertEqual((status, json.loads(body)), (201, {"paid": message["cents"]}))
                        else:
                            self.assertEqual(status, 202 if message is NO_KEY else 500)

    def test_no_step_is_forgotten(self):
        code, output, errors = run("steps")
        self.assertEqual(code, 0, errors)
        self.assertEqual(sorted(output.split()), sorted(MESSAGE_STEPS + INTENT_STEPS + PUBLICATION_STEPS))

    @classmethod
    def tearDownClass(cls):
        print(f"{'step':<12}{'store':<10}{'source':<8}{'effects each':>13}{'lost':>6}")
        for step, store, source, most, lost in cls.table:
            print(f"{step:<12}{store:<10}{source:<8}{most:>13}{lost:>6}")


if __name__ == "__main__":
    unittest.main()
