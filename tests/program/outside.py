"""Payments through a provider that misbehaves: the program's configuration, its store, and what became of each payment
by the provider's own ledger and by Semel's tables."""

import concurrent.futures
import copy
import json
import pathlib
import shutil
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import DATABASES, Case, PostgresDatabase, SqliteDatabase, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "provider"))

from provider_process import ProviderProcess  # noqa: E402  (its folder is known only now)

KEY = "key: {{ header: Idempotency-Key, lifetime: 24h }}"
LOOKUP = ("lookup: {{ url: \"{url}/charges?reference={{reference}}\", list: /data, reference: /reference, "
          "status: /status, succeeded: [ succeeded ], failed: [ failed ], visibility_delay: {visible} }}")

# What the provider offers, as the configuration says it, and how the test provider is set for it. One that has
# forgotten its keys would charge a repeat again.
POLICIES = {
    "idempotent": ([KEY], {}),
    "lookup": ([LOOKUP], {"key_header": None}),
    "key forgotten, lookup": ([KEY, LOOKUP], {"key_lifetime_seconds": 0}),
    "neither": ([], {"key_header": None}),
}

CONFIG = """
store: {store}
sources:
  payments: {{ file: {file} }}
providers:
  bank:
    {provider}
handlers:
  pay:
    from: payments
    when: {{ /patience: long }}
    {call}
      effect: charge
      timeout: 60s
      lease: {lease}
      {settle}
  pay-at-once:
    from: payments
    when: {{ /patience: short }}
    {call}
      effect: charge-at-once
      timeout: 1s
      {settle}
shutdown_deadline: 120s
log: {{ level: warning }}
"""
PROVIDER = ["answer: { status: /status, succeeded: [ succeeded ], failed: [ failed ] }", "breaker: { failures: 0 }"]
CALL = """key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    call:
      provider: bank
      url: "{url}/charges"
      body: {{ amount: ":/cents", currency: EUR, reference: ":/id" }}
      reference: /id"""
SETTLE = """settle:
        execute: [ "INSERT INTO outcomes (id, outcome) VALUES (:/id, :outcome)" ]"""

TABLES = ["CREATE TABLE outcomes (id text NOT NULL, outcome text NOT NULL)"]

# As if a day had passed between the first attempt and whatever comes after it.
A_DAY_LATER = {
    "sqlite": [
        "CREATE TRIGGER later AFTER INSERT ON semel_intents WHEN NEW.started_at IS NOT NULL BEGIN UPDATE semel_intents "
        "SET started_at = NEW.started_at - 86400000 WHERE number = NEW.number; END",
        "CREATE TRIGGER later_too AFTER UPDATE OF started_at ON semel_intents WHEN OLD.started_at IS NULL AND "
        "NEW.started_at IS NOT NULL BEGIN UPDATE semel_intents SET started_at = NEW.started_at - 86400000 "
        "WHERE number = NEW.number; END"],
    "postgres": [
        "CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.started_at IS NOT NULL AND (TG_OP = 'INSERT' OR OLD.started_at IS NULL) THEN "
        "NEW.started_at := NEW.started_at - interval '1 day'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER later BEFORE INSERT OR UPDATE ON semel.intents FOR EACH ROW EXECUTE FUNCTION later()"],
}
# Leases have run out and pauses are over, by the store's clock.
EVERYTHING_IS_DUE = {
    "sqlite": ["UPDATE semel_intents SET due_at = 0 WHERE due_at IS NOT NULL", "UPDATE semel_outbox SET due_at = 0"],
    "postgres": ["UPDATE semel.intents SET due_at = now() - interval '1 hour' WHERE due_at IS NOT NULL",
                 "UPDATE semel.outbox SET due_at = now() - interval '1 hour'"],
}
INTENTS = {
    "sqlite": "SELECT CAST(reference AS TEXT), state, attempt, settled, flagged FROM semel_intents ORDER BY number",
    "postgres": "SELECT convert_from(reference, 'UTF8'), state, attempt, settled::int, flagged::int "
                "FROM semel.intents ORDER BY number",
}
OUTBOX = {"sqlite": "semel_outbox", "postgres": "semel.outbox"}
AMBIGUOUS = 5
PARALLEL = 4


def provider_text(policy, bank, visible="0s"):
    """What the configuration says of the provider."""
    lines, _ = POLICIES[policy]
    return "\n    ".join([*(line.format(url=bank.url, visible=visible) for line in lines), *PROVIDER])


def config_text(policy, bank, database, file, visible="0s", lease="15s"):
    return CONFIG.format(store=database.uri, file=file, lease=lease, call=CALL.format(url=bank.url), settle=SETTLE,
                         provider=provider_text(policy, bank, visible))


def make_due(database):
    for sql in EVERYTHING_IS_DUE[database.name]:
        database.execute(sql)


class Template:
    """A migrated database that cells are copied from: quicker than migrating each."""

    def __init__(self, case, kind):
        self.kind = kind
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=case.folder))
        self.database = case.database(kind)
        for sql in TABLES:
            self.database.execute(sql)
        code, _, errors = run("migrate", self.database.uri)
        assert code == 0, errors

    def copy(self, name):
        """A database of its own; `drop` it."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        if self.kind is SqliteDatabase:
            made = SqliteDatabase(folder)
            shutil.copy(self.database.path, made.path)
            return made
        made = copy.copy(self.database)
        made.database = f"{self.database.database}_{name}"
        made.uri = self.database.uri.replace(self.database.database, made.database)
        PostgresDatabase._psql(made.server, f"CREATE DATABASE {made.database} TEMPLATE {self.database.database}")
        return made


class Cells(Case):
    """Cells run side by side, each with a database and a provider of its own."""

    def setUp(self):
        super().setUp()
        self.templates = {kind: Template(self, kind) for kind in DATABASES}
        self.banks = threading.local()
        self.threads = concurrent.futures.ThreadPoolExecutor(PARALLEL)
        self.addCleanup(self.threads.shutdown)

    def bank(self):
        """The provider of this thread."""
        if not hasattr(self.banks, "bank"):
            folder = self.folder / f"bank-{threading.get_ident()}"
            folder.mkdir()
            self.banks.bank = ProviderProcess(folder).start()
            self.addCleanup(self.banks.bank.stop)
        return self.banks.bank

    def all_cells(self, cells):
        """What they return, in order. All have ended, also where one fails."""
        asked = [self.threads.submit(cell, f"c{number}") for number, cell in enumerate(cells)]
        concurrent.futures.wait(asked)
        return [one.result() for one in asked]

    def come_to_rest(self, config):
        """The file is read to its end, and everything that can be done is."""
        code, output, errors = run("run", config)
        self.assertEqual(code, 0, errors + output)

class Receiver(ThreadingHTTPServer):
    """A webhook's receiver: confirms everything, and remembers in which order it came."""
    daemon_threads = True

    def __init__(self):
        self.received = []
        self.changed = threading.Condition()
        super().__init__(("127.0.0.1", 0), Confirms)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/events"

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a sender that was killed is nothing to report
            super().handle_error(request, client_address)

    def wait_for(self, count):
        """Until so many publications have come."""
        with self.changed:
            self.changed.wait_for(lambda: len({publication for publication, _ in self.received}) >= count)


class Confirms(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.changed:
            self.server.received.append((self.headers["webhook-id"], json.loads(body)))
            self.server.changed.notify_all()
        self.send_response(204)
        self.end_headers()


class Fate:
    """What became of one payment."""

    def __init__(self, charges, rows, outcomes):
        self.charges = charges
        self.rows = rows
        self.outcomes = outcomes
        self.settled = len(rows) == 1 and rows[0][3] == 1 and len(outcomes) == 1
        self.ambiguous = len(rows) == 1 and rows[0][1] == AMBIGUOUS and not outcomes
        self.lost = not self.settled and not self.ambiguous

    def __repr__(self):
        return f"charges {self.charges}, intents {self.rows}, outcomes {self.outcomes}"


def fates(database, bank, references):
    """By reference, of all that were sent."""
    rows, outcomes = {}, {}
    for reference, *numbers in database.execute(INTENTS[database.name]):
        rows.setdefault(reference, []).append([None, *map(int, numbers)])
    for reference, outcome in database.execute("SELECT id, outcome FROM outcomes"):
        outcomes.setdefault(reference, []).append(outcome)
    charged = [charge["reference"] for charge in bank.charges()]
    return {one: Fate(charged.count(one), rows.get(one, []), outcomes.get(one, [])) for one in references}


def set_up(bank, policy, rules=()):
    bank.reset()
    _, settings = POLICIES[policy]
    if settings:
        bank.settings(**settings)
    bank.faults(*rules)


def payment(reference, cents, patience="long"):
    return json.dumps({"id": reference, "cents": cents, "patience": patience}) + "\n"


__all__ = ["A_DAY_LATER", "INTENTS", "OUTBOX", "POLICIES", "TABLES", "Cells", "ProviderProcess", "Receiver", "Template",
           "config_text", "fates", "make_due", "payment", "provider_text", "set_up"]
