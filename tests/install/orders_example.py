#!/usr/bin/env python3
"""Runs the orders example against PostgreSQL: an order sent twice is one row, and a rejected one is none.

    orders_example.py PROGRAM
"""

import http.client
import os
import signal
import subprocess
import sys
from pathlib import Path


def psql(uri, sql):
    command = ["psql", "-X", "-q", "-A", "-t", "-d", uri, "-c", sql]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def order(port, key, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/orders", body, {"Idempotency-Key": key})
    answer = connection.getresponse()
    text = answer.status, answer.getheader("Location"), answer.getheader("Idempotent-Replayed"), answer.read().decode()
    connection.close()
    return text


def expect(seen, wanted):
    assert seen == wanted, f"{seen!r}, not {wanted!r}"


def main(program):
    server = os.environ["SEMEL_TEST_POSTGRES"]
    name = f"semel_orders_{os.getpid()}"
    uri = server.rsplit("/", 1)[0] + "/" + name
    psql(server, f"CREATE DATABASE {name}")
    try:
        psql(uri, "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY, item text, quantity bigint)")
        process = subprocess.Popen([program, uri, "0"], stdout=subprocess.PIPE, text=True)
        port = int(process.stdout.readline().split()[-1])
        tea = '{"item":"tea","quantity":2}'
        expect(order(port, "order-1", tea), (201, "/orders/1", None, "order 1\n"))
        expect(order(port, "order-1", tea), (201, "/orders/1", "true", "order 1\n"))
        expect(order(port, "order-2", '{"item":"tea","quantity":0}'), (422, None, None, "order at least one\n"))
        expect(order(port, "order-1", '{"item":"tea","quantity":3}')[0], 422)
        process.send_signal(signal.SIGTERM)
        expect(process.stdout.read(), "1 orders recorded\n")
        expect(process.wait(), 0)
        expect(psql(uri, "SELECT item, quantity FROM orders"), "tea|2")
    finally:
        psql(server, f"DROP DATABASE {name} WITH (FORCE)")


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
