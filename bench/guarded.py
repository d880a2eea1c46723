"""What a guarded request costs, beside the two commits that it cannot do without. A part of bench/gateway.py.

Each pair is, by one client on a kept connection: the median of guarded POSTs through the gateway, less the median of
the same POSTs sent to the service itself; divided by twice the median of a single-row INSERT that commits by itself, on
the same PostgreSQL in the same seconds. The three take turns, request by request, so that what else the machine does
meets all of them.
"""

import ctypes
import http.client
import os
import pathlib
import statistics
import subprocess
import sys
import time

COMMAND_OK, TUPLES_OK = 1, 2  # of libpq-fe.h

CONFIG = """
store: {{ uri: "{store}" }}
admin: none
log: {{ level: warning }}
sources:
  bench:
    gateway: {{ listen: "127.0.0.1:{port}", upstream: "http://127.0.0.1:{service}" }}
    routes: [ {{ match: POST /payments, principal: none }} ]
"""


class Inserter:
    """One connection of libpq, with nothing of ours around it."""

    def __init__(self, uri):
        self.libpq = ctypes.CDLL("libpq.so.5")
        for name in ("PQconnectdb", "PQexec"):
            getattr(self.libpq, name).restype = ctypes.c_void_p
        self.libpq.PQgetvalue.restype = ctypes.c_char_p
        self.connection = ctypes.c_void_p(self.libpq.PQconnectdb(uri.encode()))
        self.run("CREATE TABLE single (id bigserial PRIMARY KEY, note text)")

    def run(self, sql):
        result = ctypes.c_void_p(self.libpq.PQexec(self.connection, sql.encode()))
        status = self.libpq.PQresultStatus(result)
        if status not in (COMMAND_OK, TUPLES_OK):
            sys.exit("PostgreSQL refused: " + sql)
        value = self.libpq.PQgetvalue(result, 0, 0) if status == TUPLES_OK else None
        self.libpq.PQclear(result)
        return value

    def insert(self):
        self.run("INSERT INTO single (note) VALUES ('a note of forty-eight characters, as a body has')")

    def writing_transactions(self):
        """How many there were on the server: each that writes takes the next number."""
        return int(self.run("SELECT pg_snapshot_xmax(pg_current_snapshot())"))

    def stop(self):
        self.libpq.PQfinish(self.connection)


class Gateway:
    def __init__(self, program, folder, store, port, service_port):
        config = pathlib.Path(folder) / "semel.yaml"
        config.write_text(CONFIG.format(store=store, port=port, service=service_port))
        subprocess.run([program, "migrate", str(config)], check=True, stdout=subprocess.DEVNULL)
        self.process = subprocess.Popen([program, "run", str(config)], stdout=subprocess.DEVNULL)

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Poster:
    """POSTs on one connection."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def post(self, key):
        self.connection.request("POST", "/payments", '{"amount": 1250}', {"Idempotency-Key": key})
        answer = self.connection.getresponse()
        answer.read()
        if answer.status != 200 or answer.getheader("Idempotent-Replayed"):
            sys.exit(f"{answer.status} for a new key")


def seconds_of(call, *arguments):
    begun = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - begun


def measure(number, count, gateway, service, inserter):
    """The three medians, in milliseconds."""
    times = ([], [], [])
    for i in range(count):
        times[0].append(seconds_of(gateway.post, f"{number}-{i}"))
        times[1].append(seconds_of(service.post, "none"))
        times[2].append(seconds_of(inserter.insert))
    return [statistics.median(one) * 1e3 for one in times]


def bench(program, folder, service_port, port, wait_for, quick):
    """`service_port` answers POSTs by itself; `wait_for` returns once a URL answers."""
    store = os.environ.get("SEMEL_TEST_POSTGRES")
    if not store:
        sys.exit("run this under script/with-postgres")
    pairs, count = (5, 200) if quick else (11, 500)
    inserter = Inserter(store)
    started = Gateway(program, folder, store, port, service_port)
    try:
        wait_for(f"http://127.0.0.1:{port}/")
        gateway, service = Poster(port), Poster(service_port)
        measure("warm", count // 4, gateway, service, inserter)
        before = inserter.writing_transactions()
        medians = [measure(number, count, gateway, service, inserter) for number in range(pairs)]
        commits = inserter.writing_transactions() - before - pairs * count
        report(medians, pairs, count, commits)
    finally:
        started.stop()
        inserter.stop()


def report(medians, pairs, count, commits):
    ratios = [(guarded - plain) / (2 * insert) for guarded, plain, insert in medians]
    guarded, plain, insert = (statistics.median(one) for one in zip(*medians))
    print(f"\nguarded POSTs, PostgreSQL, {pairs} pairs of {count}, one client; milliseconds, medians\n")
    print(f"commits that wrote, for each request: {commits / (pairs * count):.2f}")
    print(f"through the gateway {guarded:.2f}   to the service {plain:.2f}   one INSERT {insert:.2f}")
    print(f"(gateway - service) / (2 x INSERT): {statistics.median(ratios):.2f} "
          f"({min(ratios):.2f} to {max(ratios):.2f})", flush=True)
