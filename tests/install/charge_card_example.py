#!/usr/bin/env python3
"""Runs the charge_card example at the test provider, which loses one answer and declines one card; then again.

    charge_card_example.py PROGRAM
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/provider"))

from provider_process import ProviderProcess  # noqa: E402  (its folder is known only now)


def run(program, folder, url):
    return subprocess.run([program, url], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          check=True, env={**os.environ, "BANK_KEY": "sk_practice"}).stdout


def expect(seen, wanted):
    assert seen == wanted, f"{seen!r}, not {wanted!r}"


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ROOT / "examples/charge_card/orders.jsonl", folder)
        with sqlite3.connect(folder / "shop.db") as database:
            database.executescript((ROOT / "examples/charge_card/shop.sql").read_text())
        bank = ProviderProcess(folder).start()
        try:
            bank.faults({"fault": "reset_after", "next": 1}, {"fault": "decline", "next": 1})
            expect(run(program, folder, bank.url), "3 orders, 1 seen before\n")
            expect(run(program, folder, bank.url), "0 orders, 4 seen before\n")
            operations = bank.ledger()
            charged = bank.charges()
            keys = {request["keys"][0] for request in bank.received()}
        finally:
            bank.stop()
        with sqlite3.connect(folder / "shop.db") as database:
            rows = database.execute("SELECT id, state, charge FROM orders ORDER BY id").fetchall()
        expect((len(operations), len(keys)), (3, 3))
        expect(sorted(state for _, state, _ in rows), ["failed", "paid", "paid"])
        expect(sorted(charge for _, state, charge in rows if state == "paid"), sorted(one["id"] for one in charged))


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
