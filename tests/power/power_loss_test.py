"""Power is lost under the shipped program and its database: what was acknowledged is there afterwards, once.

The journal of everything that is written to the database's disk is cut where an answer had just arrived, and the disk
is built anew as the loss leaves it: without anything that was not synced, or with a part of it that a seed chooses.
"""

import http.client
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

from disk import Disk, records

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "program"))
from harness import Case, PostgresDatabase, Program, free_port, run  # noqa: E402

JOURNAL_LIBRARY = os.environ["SEMEL_POWER_LIBRARY"]
REQUESTS = 24
PADDING = "x" * 200_000  # of each, so that SQLite's log is carried over into the database on the way
SEEDS = [None, 1, 2]  # None: nothing is left of what was not synced

TABLES = ["CREATE TABLE effects (id text NOT NULL, cents bigint NOT NULL)", "CREATE TABLE padding (text text)"]
CONFIG = """
store: {store}
admin: none
sources: {{ orders: {{ http: {{ listen: "127.0.0.1:{port}", path: /orders, requests: {{ principal: none }} }} }} }}
handlers:
  order:
    from: orders
    key: "header:Idempotency-Key"
    execute: [ "INSERT INTO effects VALUES (:key, 1)", "INSERT INTO padding VALUES (:/padding)" ]
    answer: {{ status: 201, body: {{ done: ":key" }} }}
"""
# What was sent is a line of a file on the same disk.
PUBLISHING = """    publish: {{ to: audit, body: {{ order: ":key" }} }}
targets: {{ audit: {{ file: "{root}/audit.jsonl" }} }}
"""


class Watched(Case):
    """A database on a disk whose journal is kept. Beside it, on another disk, the program's configuration."""

    def setUp(self):
        super().setUp()
        self.folder = self.folder.resolve()
        self.folder.chmod(0o755)
        self.journal = self.folder / "journal"
        self.library = self.folder / "journal.so"  # where the server's user may read it
        shutil.copy(JOURNAL_LIBRARY, self.library)
        self.port = free_port()

    def environment(self, root):
        return {"LD_PRELOAD": str(self.library), "SEMEL_POWER_ROOT": str(root),
                "SEMEL_POWER_JOURNAL": str(self.journal), "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def config(self, store, more=""):
        return self.write("semel.yaml", CONFIG.format(store=store, port=self.port) + more)

    def order(self, key):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", "/orders", json.dumps({"padding": PADDING}), {"Idempotency-Key": key})
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.read().strip()), (201, f'{{"done":"{key}"}}'.encode()))
        connection.close()
        return answer.getheader("Idempotent-Replayed") == "true"

    def acknowledged(self, halfway=lambda: None):
        """Sends all orders; for each the length of the journal when its answer was there."""
        ends = []
        for number in range(REQUESTS):
            if number == REQUESTS // 2:
                halfway()
            self.assertFalse(self.order(f"o{number}"))
            ends.append(self.journal.stat().st_size)
        return ends

    def losses(self, root, before, ends):
        """The disks that losses of power leave: how many orders were acknowledged, and a function that builds one."""
        disk = Disk(root, before)
        journal = records(self.journal.read_bytes())
        record = next(journal, None)
        for count, end in enumerate(ends, 1):
            while record and record.end <= end:
                disk.apply(record)
                record = next(journal, None)
            for seed in SEEDS:
                yield count, lambda seed=seed: disk.after_crash(tempfile.mkdtemp(dir=self.folder), seed)

    def check_that_it_goes_on(self, count):
        """All orders again: those that were acknowledged are replays, and in the end each was done once."""
        replays = [self.order(f"o{number}") for number in range(REQUESTS)]
        self.assertEqual(replays[:count], [True] * count)


def expected(count):
    return sorted(f"o{number}" for number in range(count))


def torn(line):
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


class Sqlite(Watched):
    def run_it(self, more="", **store):
        self.root = self.folder / "disk"
        self.root.mkdir()
        path = self.root / "shop.db"
        with sqlite3.connect(path) as shop:
            for table in TABLES:
                shop.execute(table)
        shop.close()
        settings = "".join(f", {name}: {value}" for name, value in store.items())
        config = self.migrated(self.config(f'{{ uri: "sqlite:{path}"{settings} }}', more.format(root=self.root)))
        before = self.folder / "before"
        shutil.copytree(self.root, before)
        program = Program("run", config, env=self.environment(self.root))
        program.wait_until_it_says("listening")
        ends = self.acknowledged()
        program.kill()
        return before, ends

    @staticmethod
    def effects(folder):
        with sqlite3.connect(folder / "shop.db") as shop:
            assert shop.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            found = sorted(one for one, in shop.execute("SELECT id FROM effects"))
        shop.close()
        return found

    def test_what_was_acknowledged_is_there_once(self):
        before, ends = self.run_it()
        self.assertIn("/shop.db", {record.path.removeprefix(str(self.root)) for record in
                                   records(self.journal.read_bytes()) if record.what == "F"}, "no checkpoint")
        for count, build in self.losses(self.root, before, ends):
            found = self.effects(folder := build())
            # The next one may have been written, for nobody was told yet.
            self.assertIn(found, (expected(count), expected(count + 1)))
            if count in (1, REQUESTS // 2, REQUESTS):
                config = self.config(f"sqlite:{folder}/shop.db")
                program = self.serve(config)
                self.check_that_it_goes_on(count)
                self.ended(program)
                self.assertEqual(self.effects(folder), expected(REQUESTS))
            shutil.rmtree(folder)

    @staticmethod
    def lines(folder):
        """The orders in the file. A torn line is no line: what it was of is still in the outbox."""
        file = folder / "audit.jsonl"
        lines = file.read_text(errors="replace").split("\n")[:-1] if file.exists() else []
        return {json.loads(json.loads(line)["body"])["order"] for line in lines if not torn(line)}

    @staticmethod
    def waiting(folder):
        with sqlite3.connect(folder / "shop.db", timeout=60) as shop:
            found = {json.loads(body)["order"] for body, in shop.execute("SELECT body FROM semel_outbox")}
        shop.close()
        return found

    @staticmethod
    def let_the_leases_run_out(folder):
        with sqlite3.connect(folder / "shop.db") as shop:
            shop.execute("UPDATE semel_outbox SET due_at = 0")
        shop.close()

    def test_a_publication_is_in_the_outbox_or_in_the_file(self):
        before, ends = self.run_it(PUBLISHING)
        sent = set()
        for count, build in self.losses(self.root, before, ends):
            folder = build()
            in_file, waiting = self.lines(folder), self.waiting(folder)
            self.assertLessEqual(set(expected(count)), in_file | waiting)
            sent |= in_file - waiting
            if count in (1, REQUESTS // 2, REQUESTS):
                self.let_the_leases_run_out(folder)
                program = self.serve(self.config(f"sqlite:{folder}/shop.db", PUBLISHING.format(root=folder)))
                while self.waiting(folder):
                    pass  # each question is a connection, which takes its time
                self.ended(program)
                self.assertLessEqual(set(expected(count)), self.lines(folder))
            shutil.rmtree(folder)
        self.assertTrue(sent, "nothing was sent before the last loss")

    def test_without_syncs_the_loss_is_found(self):
        before, ends = self.run_it(synchronous="off", allow_unsafe_durability="true")
        lost = [count for count, build in self.losses(self.root, before, ends)
                if self.effects_if_any(build()) != expected(count)]
        self.assertIn(REQUESTS, lost)

    def effects_if_any(self, folder):
        try:
            return self.effects(folder)
        except (sqlite3.DatabaseError, AssertionError):
            return None


class Server:
    """A PostgreSQL server on a folder."""
    BIN = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    USER = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"] if os.geteuid() == 0 else []

    def __init__(self, data, port, environment=(), settings=()):
        self.log = data.parent / f"{data.name}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.USER, self.BIN / "postgres", "-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1",
                 "-c", f"unix_socket_directories={data}", *[word for one in settings for word in ("-c", one)]],
                stdout=log, stderr=log, cwd=data, env={**os.environ, **dict(environment)})
        self.uri = f"postgresql://semel@127.0.0.1:{port}/postgres?sslmode=disable"
        while subprocess.run([self.BIN / "pg_isready", "-q", "-h", str(data), "-p", str(port)]).returncode != 0:
            if self.process.poll() is not None:
                raise AssertionError(self.log.read_text())

    def stop(self, how):
        self.process.send_signal(how)
        self.process.wait()

    def execute(self, sql):
        return PostgresDatabase._psql(self.uri, sql)

    @classmethod
    def create(cls, data):
        cls.give(data.parent)
        subprocess.run([*cls.USER, cls.BIN / "initdb", "-D", data, "--username=semel", "--auth=trust",
                        "--encoding=UTF8", "--locale=C", "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd="/")

    @staticmethod
    def give(path):
        """To the server's user, with everything below."""
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "postgres", path], check=True)


class Postgres(Watched):
    def started(self, data, environment=(), settings=()):
        data.chmod(0o700)
        Server.give(data)
        server = Server(data, self.database_port, environment, settings)
        self.addCleanup(lambda: server.process.poll() is None and server.stop(signal.SIGQUIT))
        return server

    def run_it(self, settings=(), store="{uri}"):
        self.database_port = free_port()
        self.root = self.folder / "server" / "data"
        self.root.parent.mkdir()
        Server.create(self.root)
        server = self.started(self.root)
        for table in TABLES:
            server.execute(table)
        config = self.migrated(self.config(store.format(uri=server.uri)))
        server.stop(signal.SIGINT)
        before = self.folder / "before"
        shutil.copytree(self.root, before)
        self.journal.touch()
        Server.give(self.journal)
        server = self.started(self.root, self.environment(self.root), settings)
        program = self.serve(config)
        ends = self.acknowledged(halfway=lambda: server.execute("CHECKPOINT"))
        server.stop(signal.SIGQUIT)
        program.kill()
        return config, before, ends

    def effects(self, server):
        return sorted(one for one, in server.execute("SELECT id FROM effects"))

    def test_what_was_acknowledged_is_there_once(self):
        config, before, ends = self.run_it()
        for count, build in self.losses(self.root, before, ends):
            if count not in (1, REQUESTS // 2, REQUESTS):
                continue  # each is a server's recovery, which takes its time
            folder = build()
            server = self.started(folder)
            self.assertIn(self.effects(server), (expected(count), expected(count + 1)))
            program = self.serve(config)
            self.check_that_it_goes_on(count)
            self.ended(program)
            self.assertEqual(self.effects(server), expected(REQUESTS))
            server.stop(signal.SIGQUIT)
            shutil.rmtree(folder)

    def test_without_syncs_the_loss_is_found(self):
        _, before, ends = self.run_it(["fsync=off"], '{{ uri: "{uri}", allow_unsafe_durability: true }}')
        disk = [build for count, build in self.losses(self.root, before, ends) if count == REQUESTS][0]()
        self.assertNotEqual(self.effects_if_any(disk), expected(REQUESTS))

    def effects_if_any(self, folder):
        try:
            return self.effects(self.started(folder))
        except AssertionError:
            return None  # not even a database


if __name__ == "__main__":
    unittest.main()
