#!/usr/bin/env python3
"""Runs the payments example twice on its input, and counts the rows in its database.

    payments_example.py PROGRAM

The input has four payments, one of them twice, and a line without a key.
"""

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path


def run(program, folder):
    return subprocess.run([program], cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def rows(folder):
    with sqlite3.connect(folder / "payments.db") as database:
        return database.execute("SELECT id, cents FROM payments ORDER BY id").fetchall()


PAYMENTS = Path(__file__).resolve().parents[2] / "examples/payments/payments.jsonl"


def main(program):
    expected = [("pay_1001", 2500), ("pay_1002", 990), ("pay_1003", 12000), ("pay_1004", 4150)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(PAYMENTS, folder / "payments.jsonl")
        for said in ("4 recorded, 1 seen before, 1 set aside\n", "0 recorded, 5 seen before, 1 set aside\n"):
            answer = run(program, folder)
            assert answer == said, f"said {answer!r}, not {said!r}"
            assert rows(folder) == expected, f"wrote {rows(folder)}"


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
