"""What surrounds the process: signals, its standard descriptors, a terminal that shows what it prints."""

import json
import os
import signal
import subprocess
import unittest

from harness import PROGRAM, Case, Program, SqliteDatabase, free_port, run

FILE_CONFIG = """store: {store}
sources: {{ events: {{ file: {file} }} }}
handlers:
  pay:
    from: events
    key: /id
    execute: INSERT INTO effects (id, cents) VALUES (:key, :/cents)
    retry: {{ attempts: 1 }}
"""
HTTP_CONFIG = """store: {store}
sources: {{ hooks: {{ http: {{ listen: "127.0.0.1:{port}", path: /hooks, verify: none }} }} }}
handlers: {{ pay: {{ from: hooks, key: /id, execute: "INSERT INTO effects (id, cents) VALUES (:key, 1)" }} }}
admin: none
"""


class SurroundingsCase(Case):
    def setUp(self):
        super().setUp()
        self.store = self.database(SqliteDatabase)
        self.file = self.folder / "events.jsonl"

    def file_config(self):
        return self.migrated(self.write("semel.yaml", FILE_CONFIG.format(store=self.store.uri, file=self.file)))


class Signals(SurroundingsCase):
    def serving(self):
        config = self.write("http.yaml", HTTP_CONFIG.format(store=self.store.uri, port=free_port()))
        program = Program("run", self.migrated(config))
        self.addCleanup(lambda: program.process.poll() is None and program.kill())
        program.wait_until_it_says("running")
        return program

    def test_a_stray_one_leaves_it_stoppable(self):
        program = self.serving()
        program.process.send_signal(signal.SIGUSR1)
        self.assertEqual(program.stop(), 0)

    def test_hanging_up_stops_it_in_order(self):
        program = self.serving()
        program.process.send_signal(signal.SIGHUP)
        self.assertEqual(program.wait(), 0)


class Descriptors(SurroundingsCase):
    def test_output_that_cannot_be_written_is_a_failure(self):
        self.file.touch()
        command = [PROGRAM, "dead-letters", self.file_config(), "list", "--json"]
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (1, b"semel: standard output could not be written\n"))

    def test_nothing_that_it_opens_takes_the_place_of_a_closed_one(self):
        os.mkfifo(self.file)
        config = self.file_config()
        process = subprocess.Popen(["sh", "-c", 'exec "$0" run "$1" <&- >&- 2>&-', PROGRAM, config])
        with open(self.file, "wb"):  # which waits until the program reads
            seen = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
        self.assertEqual(process.wait(), 0)
        self.assertEqual(seen, ["/dev/null"] * 3)


class Terminal(SurroundingsCase):
    def test_no_message_and_no_name_commands_it(self):
        hostile = "\x1b[31m\x9b31m\u202e\x85\u2028"
        self.file.write_text(json.dumps({"id": hostile, "cents": None}, ensure_ascii=False) + "\n", encoding="utf-8")
        config = self.file_config()
        errors = run("run", config)[2]
        letter = json.loads(run("dead-letters", config, "list", "--json")[1])[0]["id"]
        for text in [errors, run("dead-letters", config, "list")[1], run("dead-letters", config, "show", letter)[1],
                     run("run", self.folder / hostile)[2]]:
            self.assertRegex(text, r"\\+xc2\\+x9b")
            self.assertEqual([c for c in "\x1b\x9b\u202e\x85\u2028" if c in text], [])


if __name__ == "__main__":
    unittest.main()
