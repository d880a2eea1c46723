"""A disk that is full, and then has room again: nothing is lost, nothing is blamed on a message."""

import json
import os
import subprocess
import unittest

from harness import PROGRAM, Case

CONFIG = """
store: sqlite:{folder}/disk/shop.db
sources: {{ payments: {{ file: {folder}/messages.jsonl }} }}
handlers:
  pay:
    from: payments
    key: /id
    execute: [ "INSERT INTO effects VALUES (:key, :/padding)" ]
"""

# A disk of its own, which whoever runs this sees alone; it grows when a line comes in.
SCRIPT = """
set -e
mount -t tmpfs -o size=600k none "$0/disk"
sqlite3 "$0/disk/shop.db" 'CREATE TABLE effects (id text, padding text)'
"$1" migrate "$0/semel.yaml" > /dev/null
"$1" run "$0/semel.yaml" --json &
read -r line
mount -o remount,size=64m "$0/disk"
wait $!
sqlite3 "$0/disk/shop.db" 'SELECT count(*), count(DISTINCT id) FROM effects'
sqlite3 "$0/disk/shop.db" 'SELECT count(*) FROM semel_dead_letters'
"""


class FullDisk(Case):
    def test_is_said_and_waited_for_and_nothing_is_lost(self):
        (self.folder / "disk").mkdir()
        self.write("messages.jsonl", "".join(
            json.dumps({"id": f"p{i}", "padding": "x" * 2000}) + "\n" for i in range(500)))
        self.write("semel.yaml", CONFIG.format(folder=self.folder))
        alone = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
        process = subprocess.Popen([*alone, "sh", "-c", SCRIPT, str(self.folder), PROGRAM], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = ""
        for line in process.stderr:
            said += line
            if "SEMEL-0209" in line:
                break
        self.assertIn("disk is full", said)
        output, _ = process.communicate("there is room again\n")
        summary, rows, letters = output.splitlines()
        self.assertEqual(process.returncode, 0)
        self.assertEqual({k: v for k, v in json.loads(summary).items() if v}, {"received": 500, "fresh": 500})
        self.assertEqual((rows, letters), ("500|500", "0"))


if __name__ == "__main__":
    unittest.main()
