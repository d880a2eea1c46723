"""What the provider must not forget: its charges, the keys it saw, its clock and its settings, in one SQLite file.

A charge and what is answered under its key are one commit, so a provider that is killed at any moment has done both
or neither. The clock stands still until it is advanced: no test waits for a key to grow old.
"""

import json
import sqlite3
import threading

START_OF_TIME = 1_700_000_000
SCHEMA = """
CREATE TABLE IF NOT EXISTS operations (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, kind TEXT NOT NULL, charge TEXT, amount INTEGER NOT NULL,
    currency TEXT NOT NULL, reference TEXT NOT NULL, status TEXT NOT NULL, idempotency_key TEXT, created REAL NOT NULL,
    visible_from REAL NOT NULL, lookups_hidden INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS keys (
    idempotency_key TEXT PRIMARY KEY, request TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL,
    operation TEXT, created REAL NOT NULL);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
PREFIXES = {"charge": "ch", "capture": "cap", "refund": "re"}
SHOWN = ("id", "kind", "charge", "amount", "currency", "reference", "status", "created")


class Ledger:
    """Any thread may call it; calls come one after the other. What returned is on disk."""

    def __init__(self, path):
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.executescript(SCHEMA)

    def transaction(self):
        """Holds everybody else off, and commits at the end of the `with`; undone where it raises."""
        return Transaction(self._connection, self._lock)

    def reset(self):
        with self.transaction() as t:
            for table in ("operations", "keys", "state", "sqlite_sequence"):
                t.execute(f"DELETE FROM {table}")

    def state(self, name, otherwise):
        with self._lock:
            row = self._connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return json.loads(row["value"]) if row else otherwise

    def set_state(self, name, value):
        with self.transaction() as t:
            t.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", name, json.dumps(value))

    @property
    def now(self):
        return self.state("clock", START_OF_TIME)

    def advance(self, seconds):
        with self.transaction():
            now = self.now + seconds
            self._connection.execute("INSERT OR REPLACE INTO state VALUES ('clock', ?)", (json.dumps(now),))
        return now

    def operations(self):
        """All of them in the order in which they were made, with their keys."""
        with self._lock:
            return [dict(row) for row in self._connection.execute("SELECT * FROM operations ORDER BY number")]

    def find(self, operation_id):
        with self._lock:
            row = self._connection.execute("SELECT * FROM operations WHERE id = ?", (operation_id,)).fetchone()
        return dict(row) if row else None

    def look_up(self, kind, reference):
        """What a search shows now. One that is hidden for a number of lookups has used up one of them."""
        with self.transaction() as t:
            rows = t.execute("SELECT * FROM operations WHERE kind = ? AND reference = ? ORDER BY number",
                             kind, reference).fetchall()
            t.execute("UPDATE operations SET lookups_hidden = lookups_hidden - 1 "
                      "WHERE kind = ? AND reference = ? AND lookups_hidden > 0", kind, reference)
            return [dict(row) for row in rows if row["visible_from"] <= self.now and row["lookups_hidden"] == 0]

    def set_status(self, operation_id, status):
        with self.transaction() as t:
            return t.execute("UPDATE operations SET status = ? WHERE id = ?", status, operation_id).rowcount == 1


class Transaction:
    def __init__(self, connection, lock):
        self._connection = connection
        self._lock = lock

    def __enter__(self):
        self._lock.acquire()
        self._connection.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(self, kind, value, trace):
        try:
            self._connection.execute("ROLLBACK" if kind else "COMMIT")
        finally:
            self._lock.release()

    def execute(self, sql, *values):
        return self._connection.execute(sql, values)

    def add(self, operation):
        """Returns the id that it got."""
        names = ", ".join(operation)
        marks = ", ".join("?" * len(operation))
        number = self.execute(f"INSERT INTO operations ({names}) VALUES ({marks})", *operation.values()).lastrowid
        operation_id = f"{PREFIXES[operation['kind']]}_{number:06}"
        self.execute("UPDATE operations SET id = ? WHERE number = ?", operation_id, number)
        return operation_id

    def key(self, key, now, lifetime):
        """What is remembered of a key that is still young enough; one that is not is forgotten here."""
        self.execute("DELETE FROM keys WHERE idempotency_key = ? AND created <= ?", key, now - lifetime)
        return self.execute("SELECT * FROM keys WHERE idempotency_key = ?", key).fetchone()

    def remember(self, key, request, status, body, operation_id, now):
        self.execute("INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, ?)",
                     key, request, status, body, operation_id, now)


def shown(operation):
    """An operation as the API shows it."""
    return {name: operation[name] for name in SHOWN if operation[name] is not None}
