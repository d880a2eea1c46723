"""Processes that are taken for dead and are not, and stores that have forgotten: who charges then?

A process is frozen with SIGSTOP while its call is under way, until its lease has run out by the store's clock. Another
one takes the payment over as the provider's policy says; then the first is woken."""

import json
import pathlib
import shutil
import signal
import tempfile
import unittest
import urllib.parse

from gate import Gate
from harness import Case, PostgresDatabase, Program, SqliteDatabase, on_every_store, run
from outside import TABLES, ProviderProcess, config_text, fates, make_due, payment, set_up


class Staged(Case):
    def stage(self, database, policy, rules, visible="0s", lease="15s"):
        for sql in TABLES:
            database.execute(sql)
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        bank = ProviderProcess(folder).start()
        self.addCleanup(bank.stop)
        set_up(bank, policy, rules)
        file = self.write(f"{folder.name}.jsonl", payment("pay_1", 7))
        config = self.write(f"{folder.name}.yaml", config_text(policy, bank, database, file, visible, lease))
        return bank, self.migrated(config)

    def freeze_in_a_call(self, config, bank, database):
        """The call hangs at the provider, its process is frozen, and its lease has run out."""
        frozen = Program("run", config)
        self.addCleanup(lambda: frozen.process.poll() is None and frozen.kill())
        bank.wait_until_waiting(1)
        frozen.process.send_signal(signal.SIGSTOP)
        make_due(database)
        return frozen

    def take_over(self, config):
        code, output, errors = run("run", config)
        self.assertEqual(code, 0, errors + output)

    def wake(self, frozen):
        frozen.process.send_signal(signal.SIGCONT)
        self.assertEqual(frozen.wait(), 0, frozen.text())

    def one_intent(self, config, waiting=False):
        """As `semel intents show` tells it. Where somebody is to look at it, the list says so with its exit code."""
        _, output, errors = run("intents", config, "list", "--json")
        self.assertNotEqual(output, "", errors)
        intents = json.loads(output)
        self.assertEqual(len(intents), 1, output)
        self.assertEqual(intents[0]["waits_for_operator"], waiting, output)
        _, output, errors = run("intents", config, "show", intents[0]["id"], "--json")
        return json.loads(output)

    def fate(self, database, bank):
        return fates(database, bank, ["pay_1"])["pay_1"]


class Zombie(Staged):
    @on_every_store
    def test_with_a_key_the_repeat_is_told_the_same_and_the_zombies_answer_is_evidence(self, database):
        bank, config = self.stage(database, "idempotent", [{"fault": "hang_before", "next": 1}])
        frozen = self.freeze_in_a_call(config, bank, database)
        other = Program("run", config)
        self.addCleanup(lambda: other.process.poll() is None and other.kill())
        bank.wait_until_received(2)  # the repeat, under the key that is in flight
        bank.release()
        self.assertEqual(other.wait(), 0, other.text())
        self.wake(frozen)
        fate = self.fate(database, bank)
        self.assertEqual(fate.charges, 1, fate)
        self.assertEqual(fate.outcomes, ["succeeded"])
        intent = self.one_intent(config)
        self.assertIn(("late", 1), [(event["kind"], event["attempt"]) for event in intent["history"]])
        self.assertEqual({one["keys"][0] for one in bank.received()}, {intent["idempotency_key"]})

    @on_every_store
    def test_what_a_lookup_finds_is_settled_once_and_the_zombies_answer_is_evidence(self, database):
        bank, config = self.stage(database, "lookup", [{"fault": "late", "next": 1}])
        frozen = self.freeze_in_a_call(config, bank, database)
        self.take_over(config)
        self.assertTrue(self.fate(database, bank).settled)
        bank.release()
        self.wake(frozen)
        fate = self.fate(database, bank)
        self.assertEqual(fate.charges, 1, fate)
        self.assertEqual(fate.outcomes, ["succeeded"])
        intent = self.one_intent(config)
        self.assertIn("late", [event["kind"] for event in intent["history"]])

    @on_every_store
    def test_without_either_it_is_ambiguous_until_the_zombie_tells(self, database):
        bank, config = self.stage(database, "neither", [{"fault": "late", "next": 1}])
        frozen = self.freeze_in_a_call(config, bank, database)
        self.take_over(config)
        self.assertTrue(self.fate(database, bank).ambiguous)
        self.one_intent(config, waiting=True)
        bank.release()
        self.wake(frozen)
        fate = self.fate(database, bank)
        self.assertEqual(fate.charges, 1, fate)
        self.assertEqual(fate.outcomes, ["succeeded"], "its outcome is news")
        self.one_intent(config)

    @on_every_store
    def test_who_stood_still_before_its_call_makes_none(self, database):
        # The other one does not believe that there is no charge before a second has passed: the lease is shorter.
        bank, config = self.stage(database, "lookup", [], visible="1s", lease="500ms")
        frozen = Program("run", config, steps=True)
        self.addCleanup(lambda: frozen.process.poll() is None and frozen.kill())
        self.assertTrue(frozen.run_until("committed"))
        make_due(database)
        self.take_over(config)
        self.assertTrue(self.fate(database, bank).settled)
        frozen.run_freely()
        self.assertEqual(frozen.wait(), 0, frozen.text())
        fate = self.fate(database, bank)
        self.assertEqual(fate.charges, 1, fate)
        self.assertEqual(fate.outcomes, ["succeeded"])

    @on_every_store
    def test_a_provider_slower_than_its_visibility_delay_charges_twice_and_that_is_flagged(self, database):
        # What a lookup cannot see yet and `visibility_delay` does not wait for is made again. Nobody can prevent it;
        # it is not hidden.
        bank, config = self.stage(database, "lookup", [{"fault": "hang_before", "next": 1}])
        frozen = self.freeze_in_a_call(config, bank, database)
        self.take_over(config)
        bank.release()
        self.wake(frozen)
        fate = self.fate(database, bank)
        self.assertEqual(fate.charges, 2, fate)
        self.assertEqual(fate.outcomes, ["succeeded"])
        intent = self.one_intent(config, waiting=True)
        self.assertTrue(intent["flagged"])
        told = [event for event in intent["history"] if event["kind"] == "contradicts"]
        self.assertEqual([event["evidence"]["reference"] for event in told], ["ch_000002"])
        self.assertEqual(intent["outcome"]["reference"], "ch_000001")


class Forgotten(Staged):
    """The store has lost commits that it confirmed: a fail-over to a replica that lagged, a backup restored."""

    def lost_after_the_charge(self, database, policy):
        """The payment was settled; then everything that the store knows of it is gone, and the message comes again."""
        bank, config = self.stage(database, policy, [])
        older = self.keep(database)
        self.take_over(config)
        first = self.one_intent(config)
        database = self.go_back(database, older)
        self.assertEqual(database.execute("SELECT count(*) FROM effects"), [("0",)])
        self.take_over(config)
        return bank, config, first

    def keep(self, database):
        if isinstance(database, SqliteDatabase):
            older = self.folder / "older.db"
            database.execute(f"VACUUM INTO '{older}'")
            return older
        older = f"{database.database}_older"
        PostgresDatabase._psql(database.server, f"CREATE DATABASE {older} TEMPLATE {database.database}")
        return older

    @staticmethod
    def go_back(database, older):
        if isinstance(database, SqliteDatabase):
            for left in database.path.parent.glob(database.path.name + "-*"):
                left.unlink()
            shutil.copy(older, database.path)
            return database
        PostgresDatabase._psql(database.server, f"DROP DATABASE {database.database}")
        PostgresDatabase._psql(database.server, f"ALTER DATABASE {older} RENAME TO {database.database}")
        return database

    @on_every_store
    def test_the_same_message_has_the_same_key_and_the_provider_knows_it(self, database):
        bank, config, first = self.lost_after_the_charge(database, "idempotent")
        again = self.one_intent(config)
        self.assertEqual((again["id"], again["idempotency_key"]), (first["id"], first["idempotency_key"]))
        fate = self.fate(database, bank)
        self.assertTrue(fate.settled, fate)
        self.assertEqual(fate.charges, 1, fate)
        self.assertEqual(again["outcome"]["reference"], first["outcome"]["reference"])

    @on_every_store
    def test_an_intent_that_was_under_way_in_the_older_state_is_looked_up(self, database):
        bank, config = self.stage(database, "lookup", [])
        program = Program("run", config, steps=True)
        self.assertTrue(program.run_until("committed"))
        program.kill()
        older = self.keep(database)
        make_due(database)
        self.take_over(config)
        database = self.go_back(database, older)
        make_due(database)
        self.take_over(config)
        fate = self.fate(database, bank)
        self.assertTrue(fate.settled, fate)
        self.assertEqual(fate.charges, 1, fate)


class LostReplies(Staged):
    """The first commits arrive, and their replies do not: nobody knows whether a start, or an outcome, is written."""

    def lose(self, policy, count):
        database = self.database(PostgresDatabase)
        uri = urllib.parse.urlsplit(database.uri)
        gate = Gate((uri.hostname, uri.port))
        self.addCleanup(gate.close)
        user = uri.netloc.rpartition("@")[0]
        direct = database.uri
        database.uri = uri._replace(netloc=(user + "@" if user else "") + f"127.0.0.1:{gate.port}").geturl()
        bank, config = self.stage(database, policy, [])
        database.uri = direct
        gate.swallow = count
        self.take_over(config)
        self.assertGreater(gate.swallowed, 0)
        make_due(database)
        self.take_over(config)
        return self.fate(database, bank)

    def test_with_a_key_each_is_charged_once_and_settled_once(self):
        for count in range(1, 5):
            with self.subTest(count=count):
                fate = self.lose("idempotent", count)
                self.assertTrue(fate.settled, fate)
                self.assertEqual(fate.charges, 1, fate)

    def test_without_anything_none_is_charged_twice_or_forgotten(self):
        for count in range(1, 5):
            with self.subTest(count=count):
                fate = self.lose("neither", count)
                self.assertFalse(fate.lost, fate)
                self.assertLessEqual(fate.charges, 1, fate)


if __name__ == "__main__":
    unittest.main()
