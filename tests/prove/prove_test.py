"""`semel prove` on services that are broken in the six classic ways, each found by the right attack, and on right
ones."""

import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "program"))
from harness import PROGRAM, Case, PostgresDatabase, Program, free_port, run  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent
ATTACKS = ["repeat", "at-once", "cut", "reply-lost", "kill", "late", "changed", "reordered", "hang-up"]

# The right attack goes on until it shows, which moments decide; the others are tried a few times.
UNTIL_IT_SHOWS = 200
SOME = 3

FILE = """
target: {{ start: '{start}' }}
request:
  url: http://127.0.0.1:{port}/orders
  headers: {{ Content-Type: application/json, Idempotency-Key: "{{{{key}}}}" }}
  body: '{{"id": "{{{{key}}}}", "cents": 100}}'
  changed: '{{"id": "{{{{key}}}}", "cents": 200}}'
effects: {effects}
late: 20ms
quiet: 30ms
settle: {settle}
patience: {patience}
trials: {trials}
"""


class Proving(Case):
    def attack_file(self, start, port, effects, trials=SOME, settle="1s", patience="2s"):
        return self.write("prove.yaml", FILE.format(start=start, port=port, effects=effects, trials=trials,
                                                    settle=settle, patience=patience))

    def python_service(self, kind, trials=SOME):
        """In its own database, whose effects it counts itself."""
        port = free_port()
        start = f"exec {sys.executable} {FOLDER / 'service.py'} {kind} {port} {self.folder / 'orders.db'}"
        return self.attack_file(start, port, f'{{ http: "http://127.0.0.1:{port}/count?id={{{{key}}}}" }}', trials)

    def node_service(self, kind, trials=SOME):
        port, file = free_port(), self.folder / "orders.txt"
        start = f"exec node {FOLDER / 'service.js'} {kind} {port} {file}"
        return self.attack_file(start, port, f'{{ command: "grep -c {{{{key}}}} {file} || true" }}', trials)

    @staticmethod
    def wait_until_it_listens(port):
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                continue

    def prove(self, file, *arguments):
        code, output, errors = run("prove", file, "--json", *arguments)
        self.assertIn(code, (0, 1), errors)
        self.assertTrue(output, errors)
        verdicts = {one["attack"]: one for one in json.loads(output)["attacks"]}
        broken = {name: one["why"] for name, one in verdicts.items() if one["verdict"] == "broken"}
        self.assertEqual(code, 1 if broken else 0)
        return verdicts, broken


class Services(Proving):
    def test_no_guard(self):
        verdicts, broken = self.prove(self.node_service("no_guard"))
        self.assertEqual(broken, {name: "the effect was repeated" for name in ATTACKS})
        self.assertEqual((verdicts["repeat"]["effects"], len(verdicts["repeat"]["sequence"])), (2, 3))
        self.assertEqual(verdicts["kill"]["same_as"], "repeat")

    def test_look_up_then_insert(self):
        verdicts, broken = self.prove(self.python_service("look_then_insert", UNTIL_IT_SHOWS), "--attack", "at-once")
        self.assertEqual(broken["at-once"], "the effect was repeated")
        self.assertTrue(verdicts["at-once"]["sequence"][0].startswith("2 clients at once"), verdicts["at-once"])
        self.assertIn("unique index", verdicts["at-once"]["advice"])
        # Who hangs up and comes again at once is two at once; the others come one after the other.
        _, broken = self.prove(self.python_service("look_then_insert"))
        self.assertLessEqual(set(broken), {"at-once", "hang-up", "changed"})

    def test_guard_in_its_own_transaction(self):
        verdicts, broken = self.prove(self.python_service("guard_apart", UNTIL_IT_SHOWS), "--attack", "kill")
        self.assertEqual(broken["kill"], "the effect is lost")
        self.assertEqual(verdicts["kill"]["effects"], 0)
        self.assertIn("the target is killed", verdicts["kill"]["sequence"][0])
        self.assertIn("in one transaction", verdicts["kill"]["advice"])
        _, broken = self.prove(self.python_service("guard_apart"))
        self.assertLessEqual(set(broken), {"kill", "changed"})

    def test_key_made_for_each_attempt(self):
        verdicts, broken = self.prove(self.python_service("key_per_attempt"))
        self.assertEqual(broken["repeat"], "the effect was repeated")
        self.assertIn("not one made for each attempt", verdicts["repeat"]["advice"])

    def test_remembered_in_the_process(self):
        verdicts, broken = self.prove(self.node_service("memory", UNTIL_IT_SHOWS), "--attack", "kill")
        self.assertEqual(broken["kill"], "the effect was repeated")
        self.assertIn("remembered in the process", verdicts["kill"]["advice"])
        _, broken = self.prove(self.node_service("memory"))
        self.assertLessEqual(set(broken), {"kill", "changed"})

    def test_answer_not_stored(self):
        verdicts, broken = self.prove(self.node_service("answer_not_stored"))
        self.assertEqual(broken["repeat"], "the answers differ")
        self.assertEqual(verdicts["repeat"]["effects"], 1)
        self.assertIn("Store the answer", verdicts["repeat"]["advice"])
        self.assertNotIn("the effect was repeated", broken.values())
        self.assertNotIn("the effect is lost", broken.values())

    def test_other_content_accepted_under_a_used_key(self):
        _, broken = self.prove(self.python_service("guard_apart"), "--attack", "changed")
        self.assertEqual(broken, {"changed": "other content was accepted under a used key"})

    def test_a_right_service_passes(self):
        file = self.python_service("right", trials=10)
        verdicts, broken = self.prove(file, "--seed", "7")
        self.assertEqual(broken, {})
        self.assertEqual([one["verdict"] for one in verdicts.values()], ["held"] * len(ATTACKS))
        self.assertEqual(verdicts["kill"]["trials"], 10)

    def test_the_gateway_passes_before_a_service_that_knows_nothing_of_repeats(self):
        service, gateway = free_port(), free_port()
        behind = subprocess.Popen([sys.executable, FOLDER / "service.py", "unguarded", str(service),
                                   self.folder / "orders.db"])
        self.addCleanup(behind.wait)
        self.addCleanup(behind.kill)
        self.wait_until_it_listens(service)
        config = self.migrated(self.write("semel.yaml", f"""
store: sqlite:{self.folder / "gateway.db"}
admin: none
log: {{ level: error }}
providers:
  orders: {{ lookup: {{ url: "/find?id={{key}}", visibility_delay: 500ms }} }}
sources:
  api:
    gateway:
      listen: 127.0.0.1:{gateway}
      upstream: http://127.0.0.1:{service}
      timeout: 1s
      provider: orders
    routes: [ {{ match: POST /orders, principal: none }} ]
"""))
        file = self.attack_file(f"exec {PROGRAM} run {config}", gateway,
                                f'{{ http: "http://127.0.0.1:{service}/count?id={{{{key}}}}" }}', trials=2,
                                settle="30s", patience="60s")
        verdicts, broken = self.prove(file)
        self.assertEqual(broken, {}, json.dumps(verdicts, indent=1))
        self.assertEqual([one["verdict"] for one in verdicts.values()], ["held"] * len(ATTACKS))


class Command(Proving):
    def test_table_and_junit(self):
        junit = self.folder / "prove.xml"
        code, output, errors = run("prove", self.python_service("key_per_attempt"), "--attack", "repeat", "--attack",
                                   "reordered", "--junit", junit)
        self.assertEqual(code, 1, errors)
        self.assertRegex(output, r"repeat +1 +1 +2 +same +BROKEN: the effect was repeated")
        suite = xml.etree.ElementTree.parse(junit).getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("2", "2"))
        self.assertIn("effects of key", suite.find("testcase/failure").text)

    def test_what_cannot_be_tried_is_said(self):
        """A message that a command sends has no reply, and what nobody can start is not killed."""
        database = self.database(PostgresDatabase)
        known = "SELECT FROM effects WHERE id = '{{key}}'"
        insert = f"INSERT INTO effects SELECT '{{{{key}}}}', 1 WHERE NOT EXISTS ({known})"
        file = self.write("prove.yaml", f"""
message:
  command: psql -qX "{database.uri}" -c "{insert}"
effects: {{ database: "{database.uri}", sql: "SELECT count(*) FROM effects WHERE id = '{{{{key}}}}'" }}
keys: number
late: 20ms
quiet: 20ms
""")
        verdicts, broken = self.prove(file, "--attack", "repeat", "--attack", "cut", "--attack", "kill", "--attack",
                                      "reordered", "--attack", "changed")
        self.assertEqual(broken, {})
        self.assertEqual({name: one["verdict"] for name, one in verdicts.items()},
                         {"repeat": "held", "cut": "not tried", "kill": "not tried", "changed": "not tried",
                          "reordered": "held"})
        self.assertEqual(verdicts["cut"]["why"], "a message has no reply")

    def test_nobody_is_attacked_by_accident(self):
        file = self.write("prove.yaml", """
request: { url: "https://shop.example/orders", body: "{{key}}" }
effects: { command: "echo 0 {{key}}" }
""")
        code, output, errors = run("prove", file)
        self.assertEqual((code, output), (3, ""))
        self.assertIn("--i-may-attack shop.example", errors)

    def test_a_file_is_refused_with_every_mistake_in_it(self):
        file = self.write("prove.yaml", """
request: { url: "127.0.0.1/orders", body: "{}" }
effects: { database: "sqlite:a.db" }
trails: 5
""")
        code, _, errors = run("prove", file)
        self.assertEqual(code, 3)
        for part in ["must begin with http", "has no {{key}}", "\"sql\" is missing", "\"trials\""]:
            self.assertIn(part, errors)

    def test_a_target_that_cannot_be_attacked_is_no_verdict(self):
        port = free_port()
        service = f"exec {sys.executable} {FOLDER / 'service.py'} right {port} {self.folder / 'orders.db'}"
        for start, why in [("exit 3", "ended while"), ("exec sleep 1000", "does not answer in time"),
                           (service, "must have one effect, not 0")]:
            text = self.attack_file(start, port, '{ command: "echo 0; : {{key}}" }').read_text()
            file = self.write("used.yaml", text.replace("target: {", "target: { within: 1s,"))
            code, output, errors = run("prove", file)
            self.assertEqual((code, output), (1, ""), why)
            self.assertIn(why, errors)

    def test_interrupted_it_takes_its_target_with_it(self):
        file = self.python_service("right", trials=1000)
        proving = Program("prove", file)
        proving.wait_until_it_says("at-once:")
        proving.process.send_signal(signal.SIGINT)
        self.assertEqual(proving.wait(), 1)
        self.assertIn("interrupted", proving.text()[1])
        self.assertEqual(subprocess.run([shutil.which("pgrep"), "-f", str(self.folder)]).returncode, 1)

    def test_attacks_are_listed_and_names_are_checked(self):
        code, output, _ = run("prove", "--list")
        self.assertEqual((code, [line.split()[0] for line in output.splitlines()]), (0, ATTACKS))
        code, _, errors = run("prove", self.write("prove.yaml", ""), "--attack", "repeet")
        self.assertEqual(code, 3)
        self.assertIn("did you mean \"repeat\"?", errors)


if __name__ == "__main__":
    unittest.main()
