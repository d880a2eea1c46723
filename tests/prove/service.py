"""Small order services: some broken in a classic way, one right, and one that a gateway guards.

    python3 service.py KIND PORT DATABASE

POST /orders {"id": …, "cents": …} makes an order; GET /count?id=… says how many of that id there are, and
GET /find?id=… shows one of them."""

import hashlib
import http.server
import json
import sqlite3
import sys
import urllib.parse
import uuid

TABLES = """
CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, id TEXT NOT NULL, cents INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS guards (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS charges (provider_key TEXT PRIMARY KEY, id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, answer TEXT NOT NULL);
"""


def work():
    """What an order takes besides the database: some milliseconds."""
    hashlib.pbkdf2_hmac("sha256", b"order", b"salt", 40_000)


def insert(database, order):
    """The effect; its number."""
    return database.execute("INSERT INTO orders (id, cents) VALUES (?, ?)", [order["id"], order["cents"]]).lastrowid


def look_then_insert(database, order):
    """The gap between looking and writing."""
    row = database.execute("SELECT number FROM orders WHERE id = ?", [order["id"]]).fetchone()
    if not row:
        work()
        row = [insert(database, order)]
    return 201, {"order": row[0]}


def guard_apart(database, order):
    """The guard commits by itself, and a crash before the effect loses it."""
    try:
        database.execute("INSERT INTO guards VALUES (?)", [order["id"]])
    except sqlite3.IntegrityError:
        return 201, {"ordered": order["id"]}
    work()
    insert(database, order)
    return 201, {"ordered": order["id"]}


def key_per_attempt(database, order):
    """The provider would recognise a repeated charge, but each attempt has a new key."""
    work()
    database.execute("INSERT OR IGNORE INTO charges VALUES (?, ?)", [str(uuid.uuid4()), order["id"]])
    return 201, {"charged": order["id"]}


def right(database, order):
    """Record, effect and answer in one transaction, and a fingerprint."""
    fingerprint = hashlib.sha256(json.dumps(order, sort_keys=True).encode()).hexdigest()
    database.execute("BEGIN IMMEDIATE")
    try:
        row = database.execute("SELECT fingerprint, answer FROM records WHERE id = ?", [order["id"]]).fetchone()
        if row and row[0] != fingerprint:
            return 422, {"error": "another order has this id"}
        if row:
            return 201, json.loads(row[1])
        work()
        number = insert(database, order)
        answer = {"order": number}
        database.execute("INSERT INTO records VALUES (?, ?, ?)", [order["id"], fingerprint, json.dumps(answer)])
        return 201, answer
    finally:
        database.execute("COMMIT")


def unguarded(database, order):
    """Knows nothing of repeats; tells whether an order is there."""
    work()
    number = insert(database, order)
    return 201, {"order": number}


KINDS = {kind.__name__: kind for kind in (look_then_insert, guard_apart, key_per_attempt, right, unguarded)}


class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            order = json.loads(body)
        except ValueError:  # the client went away in the middle of it
            self.close_connection = True
            return
        with open_database() as database:
            status, answer = kind(database, order)
        database.close()
        self.answer(status, json.dumps(answer).encode())

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        wanted = urllib.parse.parse_qs(url.query)["id"][0]
        with open_database() as database:
            count = database.execute("SELECT (SELECT count(*) FROM orders WHERE id = :id) + "
                                     "(SELECT count(*) FROM charges WHERE id = :id)", {"id": wanted}).fetchone()[0]
        database.close()
        if url.path == "/count":
            self.answer(200, str(count).encode())
        else:
            self.answer(200 if count else 404, json.dumps({"id": wanted}).encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # clients that go away


def open_database():
    return sqlite3.connect(path, timeout=60, isolation_level=None)


if __name__ == "__main__":
    kind, port, path = KINDS[sys.argv[1]], int(sys.argv[2]), sys.argv[3]
    with open_database() as tables:
        tables.execute("PRAGMA journal_mode = WAL")
        tables.executescript(TABLES)
    tables.close()
    Server(("127.0.0.1", port), Service).serve_forever()
