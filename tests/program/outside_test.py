"""The fault matrix: what providers do to a call, and SIGKILL at every step of an intent's life, for each thing that a
provider may offer to make a repeat safe, on both stores. By the provider's own ledger no payment is charged twice, and
each ends settled or, where nobody can know, in an operator's list. None is forgotten.

    outside_test.py --write     rewrites the table in docs/fault-model.md
    SEMEL_FULL_MATRIX=1         every policy, fault and step with each other; takes minutes
"""

import json
import os
import pathlib
import sys
import unittest

from harness import DATABASES, INTENT_STEPS, PUBLICATION_STEPS, Asked, Program
from outside import A_DAY_LATER, OUTBOX, POLICIES, Cells, Receiver, config_text, fates, make_due, payment, set_up

# What the provider does to the first attempt, by what is said of it.
FAULTS = {
    "none": None,
    "500 before charging": "error_before",
    "500 after charging": "error_after",
    "503 with Retry-After": "unavailable",
    "429": "too_many",
    "409": "conflict",
    "hangs before charging": "hang_before",
    "hangs after charging": "hang_after",
    "reset before charging": "reset_before",
    "reset after charging": "reset_after",
    "late answer": "late",
    "declined": "decline",
    "garbage": "garbage",
}
HANGING = {"hang_before", "hang_after", "late"}
STEPS = ["received", "recorded", "intended", "committed", *INTENT_STEPS[1:]]
MORE_STEPS = ["begun", "claimed", "handled"]  # all before the commit, as `recorded` is
FULL = bool(os.environ.get("SEMEL_FULL_MATRIX"))
FAULT_MODEL = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "fault-model.md"
BEGIN, END = "<!-- the fault matrix -->\n", "<!-- end of the fault matrix -->\n"


def rule_of(fault, reference):
    return {"fault": FAULTS[fault], "next": 1, "reference": reference, **(
        {"retry_after": 0} if FAULTS[fault] in ("unavailable", "too_many") else {})}


def release_once_repeated(bank, references, go_on):
    """What hangs goes on, or loses its connection, once somebody has come again for each of it."""
    count = 0
    while True:
        requests = bank.wait_until_received(count + 1)
        count = len(requests)
        asked = [(one["body"] or {}).get("reference") or one["path"].partition("reference=")[2] for one in requests]
        if all(asked.count(one) > 1 for one in references):
            return bank.release(drop=not go_on)


class Matrix(Cells):
    def stage(self, name, kind, policy, payments, visible="0s"):
        """The provider, a database and the configuration of one cell."""
        bank, database = self.bank(), self.templates[kind].copy(name)
        if policy.startswith("key forgotten"):
            for sql in A_DAY_LATER[kind.name]:
                database.execute(sql)
        file = self.write(f"{name}.jsonl", "".join(payments))
        return bank, database, self.write(f"{name}.yaml", config_text(policy, bank, database, file, visible))

    def check(self, what, fate, policy):
        self.assertLessEqual(fate.charges, 1, f"{what}: {fate}")
        self.assertFalse(fate.lost, f"{what}: {fate}")
        if policy != "neither":
            self.assertTrue(fate.settled, f"{what}: {fate}")
        if fate.settled:
            self.assertEqual(fate.outcomes, ["succeeded" if fate.charges else "failed"], what)


def row(policy, fault, fate):
    return policy, fault, fate.charges, int(fate.settled), int(fate.ambiguous), int(fate.lost)


class Provider(Matrix):
    def faults_cell(self, name, kind, policy):
        """A payment for each fault, all at once: the rows of the table."""
        references = {fault: f"pay_{number}" for number, fault in enumerate(FAULTS)}
        hanging = [references[fault] for fault in FAULTS if FAULTS[fault] in HANGING]
        bank, database, config = self.stage(
            name, kind, policy, visible="1s",
            payments=[payment(reference, number + 1, "short" if reference in hanging else "long")
                      for number, reference in enumerate(references.values())])
        set_up(bank, policy, [rule_of(fault, references[fault]) for fault in FAULTS if FAULTS[fault]])
        # A lookup that finds nothing is believed: then the one that hangs must not come to life again.
        releaser = None if policy == "neither" else Asked(
            release_once_repeated, bank, hanging, policy == "idempotent")
        self.come_to_rest(config)
        if releaser:
            releaser.answer()
        else:
            bank.release()  # what hung goes on after all; nobody has repeated it
            bank.ledger(at_least=len([f for f in FAULTS.values() if f in (None, "hang_before")]))
        found = fates(database, bank, references.values())
        database.drop()
        for fault, reference in references.items():
            self.check(f"{policy}, {fault}, {kind.name}", found[reference], policy)
        return [row(policy, fault, found[reference]) for fault, reference in references.items()]

    def test_whatever_it_does_nobody_is_charged_twice_and_no_payment_is_forgotten(self):
        cells = [(kind, policy) for policy in POLICIES for kind in DATABASES]
        found = self.all_cells([lambda name, c=c: self.faults_cell(name, *c) for c in cells])
        Table.keep("fault", cells, found)


class Killed(Matrix):
    def kill_cell(self, name, kind, policy, step, fault="none"):
        bank, database, config = self.stage(name, kind, policy, [payment("pay_1", 7)])
        # A start is a commit of its own only for a second attempt, unless nothing makes a repeat safe.
        if step == "started" and policy != "neither" and fault == "none":
            fault = "503 with Retry-After"
        set_up(bank, policy, [rule_of(fault, "pay_1")] if FAULTS[fault] else [])
        program = Program("run", config, steps=True)
        seen = program.run_until(step)
        if step == "called" and fault == "none":
            bank.ledger(at_least=1)
        program.kill()
        make_due(database)
        self.come_to_rest(config)
        fate = fates(database, bank, ["pay_1"])["pay_1"]
        effects = database.execute("SELECT count(*) FROM effects")
        database.drop()
        what = f"{policy}, killed at {step}, {fault}, {kind.name}"
        if fault in ("none", "503 with Retry-After"):
            self.assertTrue(seen, f"{what}: was never there: {program.text()}")
        self.check(what, fate, policy)
        self.assertEqual(effects, [("1",)], what)
        return [row(policy, f"killed at `{step}`", fate)]

    def test_at_every_step_a_payment_is_charged_once_and_none_is_forgotten(self):
        cells = [(kind, policy, step) for policy in POLICIES for step in STEPS for kind in DATABASES]
        found = self.all_cells([lambda name, c=c: self.kill_cell(name, *c) for c in cells])
        Table.keep("kill", cells, found)

    if FULL:
        def test_at_every_step_under_every_fault(self):
            cells = [(kind, policy, step, fault) for policy in POLICIES for step in STEPS + MORE_STEPS
                     for fault in FAULTS if FAULTS[fault] not in HANGING for kind in DATABASES]
            self.all_cells([lambda name, c=c: self.kill_cell(name, *c) for c in cells])


PUBLISHING = """
store: {store}
sources:
  payments: {{ file: {file} }}
targets:
  events: {{ url: "{url}" }}
handlers:
  pay:
    from: payments
    key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    publish: {{ to: events, order_key: /customer, body: {{ id: ":/id", customer: ":/customer", turn: ":/cents" }} }}
shutdown_deadline: 120s
log: {{ level: warning }}
"""


class Publications(Matrix):
    STEPS = ["intended", "committed", *PUBLICATION_STEPS]
    MESSAGES = [{"id": f"pay_{n}", "customer": f"c{n % 2}", "cents": n} for n in range(1, 9)]

    def cell(self, name, kind, step):
        database = self.templates[kind].copy(name)
        receiver = Receiver()
        file = self.write(f"{name}.jsonl", "".join(json.dumps(one) + "\n" for one in self.MESSAGES))
        config = self.write(f"{name}.yaml", PUBLISHING.format(store=database.uri, file=file, url=receiver.url))
        program = Program("run", config, steps=True)
        seen = program.run_until(step)
        program.kill()
        make_due(database)
        self.come_to_rest(config)
        left = database.execute(f"SELECT count(*) FROM {OUTBOX[kind.name]}")
        database.drop()
        receiver.shutdown()
        receiver.server_close()
        self.check_received(f"killed at {step}, {kind.name}", receiver.received)
        self.assertTrue(seen, f"{step} was never there: {program.text()}")
        self.assertEqual(left, [("0",)])

    def check_received(self, what, received):
        """Each at least once, under one id; of one order key the first of each in the order published."""
        ids = {}
        for publication, body in received:
            ids.setdefault(body["id"], set()).add(publication)
        self.assertEqual(sorted(ids), sorted(one["id"] for one in self.MESSAGES), what)
        self.assertEqual({len(of_one) for of_one in ids.values()}, {1}, what)
        self.assertEqual(len({next(iter(of_one)) for of_one in ids.values()}), len(self.MESSAGES), what)
        for customer in ("c0", "c1"):
            turns = list(dict.fromkeys(body["turn"] for _, body in received if body["customer"] == customer))
            self.assertEqual(turns, sorted(turns), what)

    def test_at_every_step_each_is_received_under_one_id_and_in_order(self):
        cells = [(kind, step) for step in self.STEPS for kind in DATABASES]
        self.all_cells([lambda name, c=c: self.cell(name, *c) for c in cells])


class Table(unittest.TestCase):
    """Runs last, by its name in the module: what the others have found is what the fault model says."""
    found = {}

    @classmethod
    def keep(cls, part, cells, found):
        rows = {}
        for (kind, *_), cell in zip(cells, found):
            rows.setdefault(kind.name, []).extend(cell)
        cls.found[part] = rows

    @classmethod
    def text(cls):
        lines = ["| policy | fault | charges | settled | ambiguous | lost |", "|---|---|---|---|---|---|"]
        for part in ("fault", "kill"):
            for one in cls.found[part]["sqlite"]:
                lines.append("| " + " | ".join(map(str, one)) + " |")
        return "".join(line + "\n" for line in lines)

    @classmethod
    def show(cls):
        print(f"{'policy':<24}{'fault':<28}{'store':<10}{'charges':>8}{'settled':>8}{'ambiguous':>10}{'lost':>5}")
        for rows in cls.found.values():
            for store, all_of_store in rows.items():
                for policy, fault, *numbers in all_of_store:
                    charges, settled, ambiguous, lost = numbers
                    print(f"{policy:<24}{fault:<28}{store:<10}{charges:>8}{settled:>8}{ambiguous:>10}{lost:>5}")

    def test_is_the_one_in_the_fault_model(self):
        self.assertEqual(sorted(Table.found), ["fault", "kill"], "run the whole file: the table is what all found")
        Table.show()
        for rows in Table.found.values():
            self.assertEqual(rows["sqlite"], rows["postgres"], "the stores differ")
        before, _, rest = FAULT_MODEL.read_text().partition(BEGIN)
        kept, _, after = rest.partition(END)
        if WRITE:
            FAULT_MODEL.write_text(before + BEGIN + "\n" + Table.text() + "\n" + END + after)
            return
        self.assertEqual(kept.strip(), Table.text().strip(),
                         "docs/fault-model.md says otherwise; look why, then: tests/program/outside_test.py --write")


WRITE = "--write" in sys.argv


def load_tests(_loader, tests, _pattern):
    """In the order of this file: the table comes after what it tells of."""
    order = ["Provider", "Killed", "Publications", "Table"]
    suites = {type(next(iter(suite))).__name__: suite for suite in tests if suite.countTestCases()}
    return unittest.TestSuite(suites[name] for name in order if name in suites)


if __name__ == "__main__":
    if WRITE:
        sys.argv.remove("--write")
    unittest.main()
