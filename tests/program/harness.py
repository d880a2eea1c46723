"""The shipped program under test: started, stepped, killed; and the databases whose rows are counted."""

import functools
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import unittest

PROGRAM = os.environ["SEMEL_PROGRAM"]
RELEASE = b"\n"


def free_port():
    """Below the ports that outgoing connections get, of which any may be taken the next moment."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


# What `semel steps` lists, by whose life it belongs to. A test of each kind kills the program at its steps.
MESSAGE_STEPS = ["received", "begun", "claimed", "handled", "recorded", "set_aside", "committed", "settled",
                 "rolled_back"]
INTENT_STEPS = ["intended", "started", "called", "reported", "settling", "closed"]
PUBLICATION_STEPS = ["relaying", "relayed", "sent"]


class Program:
    """One run of the program. With `steps` it waits at every step until it is released. `told` is called with each line
    of its standard error, and with "" at the end."""

    def __init__(self, *arguments, steps=False, env=None, told=lambda line: None):
        command = [PROGRAM, *map(str, arguments)]
        self.step_read = self.release_write = None
        fds = ()
        if steps:
            self.step_read, step_write = os.pipe()
            release_read, self.release_write = os.pipe()
            fds = (step_write, release_read)
            command += ["--probe-fd", f"{step_write},{release_read}"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=fds,
            env={**os.environ, **(env or {})})
        for fd in fds:
            os.close(fd)
        self.steps = os.fdopen(self.step_read, "r") if steps else None
        self.errors = []
        self._told = told
        self._said = threading.Condition()
        self._readers = [threading.Thread(target=self._read_errors), threading.Thread(target=self._read_output)]
        self.output = []
        self._pump = None
        for reader in self._readers:
            reader.start()

    def _read_errors(self):
        for line in self.process.stderr:
            self._hear(line.decode(errors="replace"))
        self._hear("")

    def _hear(self, line):
        with self._said:
            self.errors.append(line)
            self._said.notify_all()
        self._told(line)

    def has_ended(self):
        """It says nothing any more."""
        with self._said:
            return self.errors[-1:] == [""]

    def _read_output(self):
        for line in self.process.stdout:
            self.output.append(line.decode(errors="replace"))

    def wait_until_it_says(self, text):
        """Waits for a line on standard error; fails where the program ends without it."""
        with self._said:
            while not any(text in line for line in self.errors):
                if self.errors and self.errors[-1] == "":
                    raise AssertionError(f"ended without saying {text!r}:\n" + "".join(self.errors))
                self._said.wait()

    def next_step(self):
        line = self.steps.readline()
        return line.strip() if line else None

    def release(self):
        try:
            os.write(self.release_write, RELEASE)
        except BrokenPipeError:
            pass  # it is gone; the next step shows that

    def run_until(self, name):
        """Releases every step until the named one, where the program then waits. False where it ended before."""
        while (step := self.next_step()) is not None:
            if step == name:
                return True
            self.release()
        return False

    def run_freely(self):
        """From now on every step is released at once."""
        def pump():
            while self.next_step() is not None:
                self.release()
        self.release()
        self._pump = threading.Thread(target=pump, daemon=True)
        self._pump.start()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        return self.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        code = self.process.wait()
        for reader in [*self._readers, *([self._pump] if self._pump else [])]:
            reader.join()
        for stream in (self.process.stdout, self.process.stderr, self.steps):
            if stream:
                stream.close()
        if self.release_write is not None:
            os.close(self.release_write)
            self.release_write = None
        return code

    def text(self):
        return "".join(self.output), "".join(self.errors)


def run(*arguments, env=None):
    """Runs to the end; returns (exit code, standard output, standard error)."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          env={**os.environ, **(env or {})})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class SqliteDatabase:
    name = "sqlite"

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "shop.db"
        self.uri = f"sqlite:{self.path}"

    def execute(self, sql):
        connection = sqlite3.connect(self.path, timeout=60)
        try:
            rows = connection.execute(sql).fetchall()
            connection.commit()
            return [tuple(str(v) for v in row) for row in rows]
        finally:
            connection.close()

    def dump(self):
        """Every byte of it, as text."""
        files = sorted(self.path.parent.glob(self.path.name + "*"))
        return "".join(file.read_bytes().decode("latin-1") for file in files)

    def drop(self):
        pass


class PostgresServer:
    """A server of a test's own, for what is counted over all of it."""

    def __init__(self):
        script = pathlib.Path(__file__).resolve().parents[2] / "script" / "with-postgres"
        self._process = subprocess.Popen([script, "sh", "-c", 'echo "$SEMEL_TEST_POSTGRES"; cat'],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.uri = self._process.stdout.readline().strip()
        if not self.uri:
            raise AssertionError("script/with-postgres did not start a server")

    def stop(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class PostgresDatabase:
    """A database of its own on `server`, a URI, or on that which SEMEL_TEST_POSTGRES names."""
    name = "postgres"
    count = 0

    def __init__(self, folder, server=None):
        server = server or os.environ.get("SEMEL_TEST_POSTGRES")
        if not server:
            raise AssertionError("SEMEL_TEST_POSTGRES is not set: run this under script/with-postgres")
        PostgresDatabase.count += 1
        self.database = f"semel_program_{os.getpid()}_{PostgresDatabase.count}"
        self.server = server
        self._psql(server, f"CREATE DATABASE {self.database}")
        head, _, tail = server.partition("?")
        self.uri = head.rsplit("/", 1)[0] + "/" + self.database + ("?" + tail if tail else "")

    @staticmethod
    def _psql(uri, sql):
        command = ["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", uri, "-c", sql]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{sql}: {done.stderr}")
        return [tuple(line.split("\t")) for line in done.stdout.splitlines()]

    def execute(self, sql):
        return self._psql(self.uri, sql)

    def dump(self):
        """Every row of every table, as text; what is kept as bytes too."""
        tables = self.execute("SELECT format('%I.%I', schemaname, tablename) FROM pg_tables "
                              "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')")
        rows = [str(self.execute(f"SELECT t::text FROM {table} t")) for table, in tables]
        binary = [bytes.fromhex(found) for row in rows for found in re.findall(r"\\x([0-9a-f]+)", row)]
        return "".join(rows) + "".join(text.decode("latin-1") for text in binary)

    def drop(self):
        self._psql(self.server, f"DROP DATABASE {self.database} WITH (FORCE)")


DATABASES = [SqliteDatabase, PostgresDatabase]


class Case(unittest.TestCase):
    """A folder and, where asked for, a database with an `effects` table; both are gone afterwards."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="semel-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def database(self, kind):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        database = kind(folder)
        self.addCleanup(database.drop)
        database.execute("CREATE TABLE effects (id text NOT NULL, cents bigint NOT NULL)")
        return database

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def migrated(self, config):
        code, _, errors = run("migrate", config)
        self.assertEqual(code, 0, errors)
        return config

    def serve(self, config, steps=False):
        """A program that answers HTTP, on a database that was migrated."""
        program = Program("run", config, steps=steps)
        self.addCleanup(lambda: program.process.poll() is None and program.kill())
        program.wait_until_it_says("listening")
        return program

    def ended(self, *programs):
        for program in programs:
            self.assertEqual(program.stop(), 0, program.text())

    def dead_letters(self, config):
        """Their reasons, sorted."""
        code, output, errors = run("dead-letters", config, "list", "--json")
        self.assertEqual(code, 0, errors)
        return sorted(letter["reason"] for letter in json.loads(output))


def on_every_store(test):
    """Makes `test(self, database)` a test that runs once for each kind of database."""

    @functools.wraps(test)
    def on_each(self):
        for kind in DATABASES:
            with self.subTest(store=kind.name):
                test(self, self.database(kind))

    return on_each


class Asked(threading.Thread):
    """A call that runs by itself; `answer` waits for what it returns."""

    def __init__(self, function, *arguments):
        super().__init__()
        self.call = lambda: function(*arguments)
        self.result = None
        self.failure = None
        self.start()

    def run(self):
        try:
            self.result = self.call()
        except Exception as failure:  # told where it is asked for
            self.failure = failure

    def answer(self):
        self.join()
        if self.failure:
            raise self.failure
        return self.result


def all_at_once(calls):
    """Calls each in a thread of its own, all released at one moment; returns what they return, in order."""
    together = threading.Barrier(len(calls))

    def one(call):
        together.wait()
        return call()

    return [asked.answer() for asked in [Asked(one, call) for call in calls]]


def post(port, path, body, headers=None, timeout=60):
    """One request; returns (status, headers, body). Raises OSError or HTTPException where the connection breaks."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", path, body if isinstance(body, (bytes, str)) else json.dumps(body),
                           {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()
