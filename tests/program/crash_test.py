"""SIGKILL of the shipped program at every step that it knows, on both stores, from both sources, for each kind of
effect: rows of its own, a publication, an outside call. Then it starts again and comes to rest. Every message must have
its effect once, and nothing may be lost.

    crash_test.py --write     rewrites the table in docs/proof.md
"""

import http.client
import json
import pathlib
import sys
import threading
import unittest

from harness import DATABASES, INTENT_STEPS, MESSAGE_STEPS, PUBLICATION_STEPS, Program, free_port, post, run
from kinds import SOURCES, OutsideCall, OwnRows, Publication, service_text
from outside import Cells, make_due

PROOF = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "proof.md"
BEGIN, END = "<!-- every step -->\n", "<!-- end of every step -->\n"

GOOD = [{"id": f"pay_{i}", "cents": i} for i in range(1, 7)]
TWICE = GOOD[0]
NO_KEY = {"cents": 7}
FAILING = {"id": "pay_failing", "cents": None}  # the effect's column takes no null
MESSAGES = [*GOOD, TWICE, NO_KEY, FAILING]

SENT_AGAIN = {202, 409, 503}  # not done yet, of a call that is under way


class FailedFirst(OutsideCall):
    """A start is a commit of its own only for a second attempt."""

    def __init__(self, cells):
        super().__init__(cells)
        self.bank.faults({"fault": "unavailable", "next": 1, "reference": "pay_1", "retry_after": 0})


KINDS = [OwnRows, Publication, FailedFirst]
STEPS = {OwnRows: MESSAGE_STEPS,
         Publication: [*MESSAGE_STEPS, "intended", *PUBLICATION_STEPS],
         FailedFirst: [*MESSAGE_STEPS, *INTENT_STEPS]}


class Sender:
    """Sends each message until somebody answers it for good, as webhook senders do."""

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
                answer = post(self.port, "/pay", json.dumps(message))
            except (OSError, http.client.HTTPException):
                continue
            if message is NO_KEY or answer[0] not in SENT_AGAIN:
                self.answers[number] = answer
                return

    def join(self):
        for thread in self.threads:
            thread.join()

    def stop_once_all_is_done(self, program, kind):
        """So that a program which never comes to a step ends instead of serving for ever."""
        def stop():
            self.join()
            kind.wait_for(len(GOOD))
            program.process.terminate()
        threading.Thread(target=stop, daemon=True).start()


class Crash(Cells):
    table = {}

    def cell(self, name, kind, store, source, step):
        database = self.templates[store].copy(name)
        kind = kind(self)
        place = {"file": self.write(f"{name}.jsonl", "".join(json.dumps(m) + "\n" for m in MESSAGES)),
                 "port": free_port()}
        config = self.config(name, kind, database, source, place)
        seen, left = getattr(self, "killed_reading_" + source)(config, step, kind, database, place)
        self.assertTrue(seen, f"{kind.name}, {store.name}, {source}: never reached {step}\n{left}")
        counted = self.count(database, kind)
        database.drop()
        kind.end()
        return counted

    def config(self, name, kind, database, source, place):
        return self.write(f"{name}.{source}.yaml", service_text(kind, source, place, database.uri))

    def killed_reading_file(self, config, step, _kind, database, _place):
        first = Program("run", config, steps=True)
        seen = first.run_until(step)
        first.kill()
        make_due(database)
        self.come_to_rest(config)
        self.assertEqual(self.dead_letters(config), ["exhausted", "no_key"])
        return seen, first.text()

    def killed_reading_http(self, config, step, kind, database, place):
        first = Program("run", config, steps=True)
        first.wait_until_it_says("listening")
        sender = Sender(place["port"])
        sender.stop_once_all_is_done(first, kind)
        sender.up.set()
        seen = first.run_until(step)
        sender.up.clear()
        first.kill()
        make_due(database)
        second = Program("run", config)
        second.wait_until_it_says("listening")
        sender.up.set()
        sender.join()
        self.assertEqual(second.stop(), 0, second.text())
        make_due(database)
        nothing = {"file": self.write(f"{config.stem}.empty", "")}
        self.come_to_rest(self.config(f"{config.stem}.rest", kind, database, "file", nothing))
        self.check_answers(sender.answers, kind)
        return seen, first.text()

    def check_answers(self, answers, kind):
        for number, message in enumerate(MESSAGES):
            status, _, body = answers[number]
            if message in GOOD:
                self.assertEqual(status, kind.answered, body)
                if kind.answered == 201:
                    self.assertEqual(json.loads(body), {"paid": message["cents"]})
            else:
                self.assertEqual(status, 202 if message is NO_KEY else 500)

    @staticmethod
    def count(database, kind):
        """Effects of that which has most, what happened outside of that which has most, and how many have none of
        either."""
        rows = database.execute("SELECT id, count(*) FROM effects GROUP BY id ORDER BY id")
        effects = {row[0]: int(row[1]) for row in rows}
        outside = kind.once(database, [one["id"] for one in GOOD])
        lost = len([m for m in GOOD if effects.get(m["id"], 0) == 0 or outside.get(m["id"], 1) == 0])
        strange = set(effects) - {m["id"] for m in GOOD}
        assert not strange, strange
        return max(effects.values(), default=0), max(outside.values()) if outside else "-", lost

    def test_kill_at_every_step(self):
        cells = [(kind, store, source, step) for kind in KINDS for store in DATABASES for source in SOURCES
                 for step in STEPS[kind]]
        found = self.all_cells([lambda name, c=c: self.cell(name, *c) for c in cells])
        Crash.table = {(kind.name, step, store.name, source): numbers
                       for (kind, store, source, step), numbers in zip(cells, found)}
        self.show()
        for cell, (effects, outside, lost) in Crash.table.items():
            self.assertEqual((effects, lost), (1, 0), cell)
            self.assertEqual(outside, "-" if cell[0] == OwnRows.name else 1, cell)
        self.check_written()

    def show(self):
        print(f"{'kind':<14}{'step':<13}{'store':<10}{'source':<8}{'effects':>8}{'outside':>9}{'lost':>6}")
        for (kind, step, store, source), (effects, outside, lost) in Crash.table.items():
            print(f"{kind:<14}{step:<13}{store:<10}{source:<8}{effects:>8}{outside:>9}{lost:>6}")

    def text(self):
        columns = [(store.name, source) for store in DATABASES for source in SOURCES]
        lines = ["| kind | killed at | " + " | ".join(f"{store}, {source}" for store, source in columns) + " |",
                 "|---|---|" + "---|" * len(columns)]
        for kind in KINDS:
            for step in STEPS[kind]:
                cells = [", ".join(map(str, Crash.table[kind.name, step, *column])) for column in columns]
                lines.append(f"| {kind.name} | `{step}` | " + " | ".join(cells) + " |")
        return "".join(line + "\n" for line in lines)

    def check_written(self):
        before, _, rest = PROOF.read_text().partition(BEGIN)
        kept, _, after = rest.partition(END)
        if WRITE:
            PROOF.write_text(before + BEGIN + "\n" + self.text() + "\n" + END + after)
            return
        self.assertEqual(kept.strip(), self.text().strip(),
                         "docs/proof.md says otherwise; look why, then: tests/program/crash_test.py --write")

    def test_no_step_is_forgotten(self):
        code, output, errors = run("steps")
        self.assertEqual(code, 0, errors)
        tried = {step for kind in KINDS for step in STEPS[kind]}
        self.assertEqual(sorted(output.split()), sorted(tried))


WRITE = "--write" in sys.argv

if __name__ == "__main__":
    if WRITE:
        sys.argv.remove("--write")
    unittest.main()
