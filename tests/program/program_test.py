"""The shipped program from outside: exit codes, messages, what it prints, and what it does with bad input."""

import gzip
import json
import re
import signal
import socket
import sqlite3
import time
import unittest
import urllib.error
import urllib.request

from harness import Case, PostgresDatabase, Program, SqliteDatabase, free_port, on_every_store, post, run
from signed import stripe

SECRET = "whsec_never_shown_4711"
FILE_CONFIG = """store: {store}
sources:
  events: {{ file: {file} }}
handlers:
  pay:
    from: events
    key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    retry: {{ attempts: 2, delay: 1ms }}
"""
HTTP_CONFIG = """store: {store}
sources:
  hooks:
    http:
      listen: "127.0.0.1:{port}"
      path: /hooks
      limits: {{ body_bytes: 1KiB }}
      verify: {{ stripe: {{ secrets: [ "${{HOOK_SECRET}}" ] }} }}
  orders:
    http:
      listen: "127.0.0.1:{port}"
      path: /orders
      requests: {{ principal: {{ header: X-Customer }} }}
handlers:
  pay:
    from: hooks
    key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    answer: {{ status: 201, body: {{ id: ":key", cents: ":/cents" }} }}
  order:
    from: orders
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    answer: {{ status: 201, body: {{ ordered: ":/cents" }} }}
admin: {{ listen: "127.0.0.1:{admin}" }}
"""


class ProgramCase(Case):
    def setUp(self):
        super().setUp()
        self.store = self.database(SqliteDatabase)

    def rows(self):
        return self.store.execute("SELECT id, cents FROM effects ORDER BY id")

    def file_config(self, lines, extra=""):
        file = self.folder / "events.jsonl"
        file.write_bytes(lines)
        return self.write("semel.yaml", FILE_CONFIG.format(store=self.store.uri, file=file) + extra)

    def letters(self, config):
        code, output, errors = run("dead-letters", config, "list", "--json")
        self.assertEqual(code, 0, errors)
        return json.loads(output)


class Usage(ProgramCase):
    def test_exit_codes(self):
        config = self.file_config(b"")
        bad = self.write("bad.yaml", "store: sqlite:x\nhandler: 1\n")
        nowhere = self.write("nowhere.yaml", config.read_text().replace(self.store.uri, "sqlite:/nowhere/x.db"))
        for expected, arguments in [
                (0, ["--version"]), (0, ["--help"]), (0, ["run", "--help"]), (0, ["steps"]), (0, ["explain", "203"]),
                (2, []), (2, ["fly"]), (2, ["run"]), (2, ["run", config, "--fast"]), (2, ["explain", "SEMEL-9999"]),
                (2, ["completion", "powershell"]), (2, ["dead-letters", config]),
                (2, ["dead-letters", config, "retry"]), (2, ["dead-letters", config, "list", "--reason", "bored"]),
                (3, ["run", bad]), (3, ["check", bad]), (3, ["migrate", bad]), (3, ["run", self.folder / "none.yaml"]),
                (1, ["run", nowhere]), (1, ["check", nowhere]), (1, ["migrate", nowhere]),
                (1, ["run", config]),  # not migrated
                (0, ["migrate", config]), (0, ["migrate", config]), (0, ["migrate", self.store.uri]),
                (0, ["check", config]), (0, ["run", config]),
                (1, ["records", config, "--handler", "pay", "--key", "none"]),
                (2, ["records", config, "--handler", "pya", "--key", "none"]),
                (2, ["dead-letters", config, "list", "--handler", "pya"]),
                (2, ["dead-letters", config, "drop", "--all", "--handler", "pya"]),
                (0, ["dead-letters", config, "list", "--handler", "pay"]),
                (2, ["dead-letters", config, "drop", "--all", "--reason", "bored"]),
                (2, ["dead-letters", config, "list", "--before", "7"]),
                (2, ["outbox", config, "list", "--to", "bank"]), (2, ["outbox", config, "list", "--after", "7"]),
                (2, ["intents", config, "list", "--provider", "bank"]),
                (2, ["intents", config, "list", "--effect", "charge"]),
                (2, ["intents", config, "list", "--after", "7"]),
                (1, ["dead-letters", config, "show", "none"]), (0, ["dead-letters", config, "list"])]:
            code, output, errors = run(*arguments)
            self.assertEqual(code, expected, f"{arguments}\n{output}\n{errors}")
            if expected and arguments[:2] != ["check", nowhere]:  # whose findings are its output
                self.assertRegex(errors, r"^semel: ", arguments)
            else:
                self.assertNotRegex(errors, r"^semel: SEMEL", arguments)

    def test_an_unknown_word_is_named_with_the_nearest(self):
        for arguments, expected in [
                (["chek", "x.yaml"], 'there is no command "chek"; did you mean "check"?; see semel --help'),
                (["--verison"], 'there is no option "--verison"; did you mean "--version"?; see semel --help'),
                (["run", "--jsn"], 'there is no option "--jsn"; did you mean "--json"?; see semel run --help'),
                (["dead-letters", "x.yaml", "lst"],
                 'there is no command "lst"; did you mean "list"?; see semel dead-letters --help'),
                (["dead-letters", "x.yaml", "list", "--resason=x"],
                 'there is no option "--resason"; did you mean "--reason"?; see semel dead-letters list --help'),
                (["run", "x.yaml", "y.yaml"], 'one argument too many: "y.yaml"; see semel run --help')]:
            self.assertEqual(run(*arguments)[::2], (2, f"semel: {expected}\n"))

    def test_help_has_examples_for_every_command(self):
        code, output, _ = run("--help")
        commands = ["run", "check", "migrate", "records", "dead-letters", "explain", "steps", "demo", "completion"]
        for command in commands:
            self.assertIn(f"  {command} ", output)
            self.assertRegex(run(command, "--help")[1], rf"Examples?:\n +.*(semel {command})")
        for action in ["list", "show", "retry", "drop"]:
            self.assertIn(f"Example:\n  semel dead-letters semel.yaml {action} ",
                          run("dead-letters", "x.yaml", action, "--help")[1])
        self.assertNotIn("probe-fd", run("run", "--help")[1])
        self.assertIn("Exit codes: 0 done, 1 failure, 2 usage, 3 configuration, 4 a call waits", output)

    def test_completion_knows_every_command(self):
        for shell in ["bash", "zsh", "fish"]:
            code, output, _ = run("completion", shell)
            for command in ["run", "check", "dead-letters"]:
                self.assertIn(command, output)
            self.assertNotIn("probe-fd", output)
            self.assertNotIn("demo-ledger", output)

    def test_every_mistake_is_printed_with_its_place(self):
        bad = self.write("bad.yaml", """stroe: sqlite:x
sources: { a: { file: x } }
handlers:
  h:
    from: b
    key: id
    execute: SELECT 1
""")
        code, output, errors = run("check", bad)
        self.assertEqual(errors.splitlines(), [
            f'semel: SEMEL-0403: {bad}:1:1: "store" is missing: sqlite:path, or postgresql://user@host/database',
            f'semel: SEMEL-0402: {bad}:1:1: stroe: unknown field; did you mean "store"?',
            f'semel: SEMEL-0407: {bad}:5:11: handlers.h.from: there is no source "b"; did you mean "a"?',
            f'semel: SEMEL-0406: {bad}:6:10: handlers.h.key: "id" is no key expression: it is none of the known forms. '
            'Write a JSON Pointer such as "/id", "header:Name" or "transport-id".'])
        code, output, _ = run("check", bad, "--json")
        self.assertEqual([m["line"] for m in json.loads(output)["mistakes"]], [1, 1, 5, 6])


class Check(ProgramCase):
    def test_explains_every_handler(self):
        config = self.file_config(b"")
        run("migrate", config)
        code, output, errors = run("check", config)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(output, f"""store: {self.store.uri}

handler pay
  takes messages from events
  key: the body's /id
  guard record: a record of the key commits together with the effect; a replay gets the first answer
  fingerprint: the body; another one under the same key is a conflict
  a record is kept for 30d

ready to run
""")

    def test_looking_makes_no_database(self):
        config = self.file_config(b"")
        missing = self.folder / "missing.db"
        config.write_text(config.read_text().replace(self.store.uri, f"sqlite:{missing}"))
        for arguments in [["check"], ["run"], ["records", "--handler", "pay", "--key", "x"], ["dead-letters", "list"]]:
            code, output, errors = run(arguments[0], config, *arguments[1:])
            self.assertEqual(code, 1, arguments)
            self.assertIn(f"SEMEL-0211: there is no database at {missing}; `semel migrate` creates it", output + errors)
            self.assertFalse(missing.exists(), arguments)

    def test_finds_a_file_that_cannot_be_read(self):
        config = self.migrated(self.file_config(b""))
        (self.folder / "events.jsonl").unlink()
        code, output, _ = run("check", config)
        self.assertEqual(code, 1)
        self.assertIn(f"error: SEMEL-0307: sources.events: cannot read {self.folder}/events.jsonl: No such", output)

    def webhook(self, verify, handler):
        config = self.write("hook.yaml", f"""store: {self.store.uri}
sources: {{ hooks: {{ http: {{ listen: "127.0.0.1:0", path: /, {verify} }} }} }}
handlers: {{ h: {{ from: hooks, {handler}, execute: "INSERT INTO effects VALUES (:key, 1)" }} }}
""")
        run("migrate", config, env={"S": SECRET})
        return run("check", config, env={"S": SECRET})

    def test_refuses_a_transport_id_where_there_is_none(self):
        signed = 'verify: {{ {}: {{ secrets: [ "${{S}}" ] }} }}'
        for verify, expected in [(signed.format("stripe"), 3), (signed.format("slack"), 3), ("verify: none", 3),
                                 ("requests: { principal: none }", 3), (signed.format("github"), 0),
                                 (signed.format("shopify"), 0)]:
            code, output, errors = self.webhook(verify, "key: transport-id")
            self.assertEqual(code, expected, errors)
            said = 'handlers.h.key: messages from "hooks" have no transport id' in errors
            self.assertEqual(said, expected == 3, errors)

    def test_says_what_is_compared_for_the_handlers_own_sources(self):
        stripe_only = 'verify: { stripe: { secrets: [ "${S}" ] } }'
        for verify, handler, expected in [
                (stripe_only, "key: /id, key_is: event-id", "fingerprint: none, for the sender is verified"),
                ("verify: none", "key: /id, key_is: event-id", "fingerprint: the body; another"),
                ("requests: { principal: none }", "key: /id", "fingerprint: the body; another"),
                ("requests: { principal: none }", "key: header:Idempotency-Key",
                 "fingerprint: method, path and body; another")]:
            self.assertIn("\n  " + expected, self.webhook(verify, handler)[1])

    def test_warns_of_a_header_that_a_replay_will_not_carry(self):
        answer = "answer: { headers: { Location: /x, X-Mine: y } }"
        output = self.webhook("verify: none", f"key: /id, {answer}")[1]
        self.assertIn("warning: handlers.h: answer.headers: X-Mine goes with the first answer only", output)
        self.assertNotIn("Location goes", output)

    def findings(self, handler):
        file = self.folder / "events.jsonl"
        file.write_bytes(b"")
        config = self.write("semel.yaml", f"""store: {self.store.uri}
sources: {{ events: {{ file: {file} }} }}
handlers:
  h: {{ from: events, {handler} }}
""")
        run("migrate", config)
        code, output, errors = run("check", config, "--json")
        review = json.loads(output)
        self.assertEqual(review["ready"], code == 0, errors)
        return code, " | ".join(f'{f["severity"]} {f.get("code", "")} {f["message"]}' for f in review["findings"])

    def test_finds_what_does_not_fit(self):
        self.store.execute("CREATE TABLE keyed (id text PRIMARY KEY, n int)")
        self.store.execute("CREATE TABLE indexed (id text, n int)")
        self.store.execute("CREATE UNIQUE INDEX i ON indexed (id)")
        unique = 'key: /id, guard: unique, execute: "INSERT INTO {} (id) VALUES (:key) ON CONFLICT DO NOTHING"'
        for expected_code, expected, handler in [
                (0, "", unique.format("keyed")),
                (0, "", unique.format("indexed")),
                (1, "error SEMEL-0404 handlers.h: guard unique, but the table effects has no primary key and no unique",
                 unique.format("effects")),
                (0, "warning  handlers.h: guard unique needs INSERT",
                 'key: /id, guard: unique, execute: "INSERT INTO keyed (id) VALUES (:key)"'),
                (0, "warning  handlers.h: guard natural with a value that counts on itself",
                 'key: /id, guard: natural, execute: "UPDATE keyed SET n = n + 1 WHERE id = :key"'),
                (0, "warning  handlers.h: guard natural with a plain INSERT",
                 'key: /id, guard: natural, execute: "INSERT INTO keyed (id) VALUES (:key)"'),
                (0, "", 'key: /id, guard: natural, execute: "UPDATE keyed SET n = :/n WHERE id = :key"'),
                (0, "warning  handlers.h: guard version needs a condition",
                 'key: /id, guard: version, execute: "UPDATE keyed SET n = :/n"'),
                (0, "warning  handlers.h: the key is the transport's id, which covers a redelivery only",
                 'key: transport-id, execute: "INSERT INTO keyed (id) VALUES (:key)"'),
                (1, "error SEMEL-0208 handlers.h.execute[0]", 'key: /id, execute: "INSERT INTO nowhere VALUES (:key)"'),
                (1, "error SEMEL-0208 handlers.h.execute[1]",
                 'key: /id, execute: [ "INSERT INTO keyed (id) VALUES (:key)", "UPDATE keyed SET m = 1" ]')]:
            code, findings = self.findings(handler)
            self.assertEqual(code, expected_code, f"{handler}: {findings}")
            self.assertTrue(findings.startswith(expected) if expected else findings == "", f"{handler}: {findings}")


class Refusal(Case):
    """What check refuses of the statements, run refuses in the same words."""
    CONFIG = """
store: {store}
sources: {{ in: {{ file: "{file}" }} }}
providers: {{ bank: {{ key: {{ header: Idempotency-Key, lifetime: 24h }} }} }}
handlers:
  pay:
    from: in
    key: /id
    guard: {guard}
    execute: {execute}
{call}
"""
    CALL = """
    call:
      provider: bank
      url: http://127.0.0.1:1/
      settle: { execute: %s, on_failure: { execute: %s } }
"""
    GOOD = "INSERT INTO effects (id) VALUES (:key) ON CONFLICT DO NOTHING"
    BAD = "INSERT INTO effects (id) VALUES (:key) ON CONFLICT (nothing) DO NOTHING"

    @on_every_store
    def test_run_refuses_the_statements_that_check_refuses(self, database):
        file = self.write("in.jsonl", '{"id":"a"}\n')
        for place, guard, execute, call in [
                ("handlers.pay.execute[0]", "record", self.BAD, ""),
                ("effect pay: settle.execute[0]", "record", self.GOOD, self.CALL % (self.BAD, self.GOOD)),
                ("effect pay: settle.on_failure.execute[0]", "record", self.GOOD, self.CALL % (self.GOOD, self.BAD)),
                ("guard unique, but the table effects has no primary key", "unique", self.GOOD, "")]:
            config = self.migrated(self.write("refused.yaml", self.CONFIG.format(
                store=database.uri, file=file, guard=guard, execute=execute, call=call)))
            code, said, _ = run("check", config)
            self.assertEqual(code, 1, said)
            refusal, = [line for line in said.splitlines() if line.startswith("error: ")]
            self.assertIn(place, refusal)
            code, _, errors = run("run", config)
            self.assertEqual((code, errors.strip()), (1, refusal.replace("error: ", "semel: ", 1)))
            self.assertEqual(database.execute("SELECT count(*) FROM effects"), [("0",)])

    def test_a_statement_that_no_database_can_plan_is_left_to_the_run(self):
        database = self.database(PostgresDatabase)
        database.execute("CREATE PROCEDURE note(key text) LANGUAGE sql AS "
                         "'INSERT INTO effects (id, cents) VALUES (key, 1)'")
        file = self.write("in.jsonl", '{"id":"a"}\n')
        config = self.migrated(self.write("called.yaml", self.CONFIG.format(
            store=database.uri, file=file, guard="record", execute='"CALL note(:key)"', call="")))
        self.assertEqual(run("check", config)[0], 0)
        self.assertEqual(run("run", config)[0], 0)
        self.assertEqual(database.execute("SELECT id FROM effects"), [("a",)])


class CheckPostgres(Case):
    def test_asks_the_database_what_it_thinks_of_each_handler(self):
        store = self.database(PostgresDatabase)
        unique = "INSERT INTO {} VALUES (:key, :/n) ON CONFLICT DO NOTHING"
        store.execute("CREATE TABLE keyed (id text PRIMARY KEY, n bigint)")
        self.write("events.jsonl", "")
        config = self.write("semel.yaml", f"""store: {store.uri}
sources: {{ events: {{ file: {self.folder}/events.jsonl }} }}
handlers:
  good: {{ from: events, key: /id, guard: unique, execute: "{unique.format('keyed')}" }}
  batch:
    from: events
    key: /id
    execute_batch: INSERT INTO effects SELECT * FROM unnest(:key::text[], :/n::bigint[])
  unguarded: {{ from: events, key: /id, guard: unique, execute: "{unique.format('effects')}" }}
  broken: {{ from: events, key: /id, execute: "INSERT INTO keyed (idd) VALUES (:key)" }}
""")
        code, output, _ = run("check", config, "--json")
        codes = [f["code"] for f in json.loads(output)["findings"] if "code" in f]
        self.assertEqual((code, codes[:1]), (1, ["SEMEL-0211"]))
        self.assertEqual(run("migrate", config)[0], 0)
        code, output, _ = run("check", config, "--json")
        errors = [(f["code"], f["message"]) for f in json.loads(output)["findings"] if f["severity"] == "error"]
        self.assertEqual((code, [error[0] for error in errors]), (1, ["SEMEL-0404", "SEMEL-0208"]), errors)
        self.assertIn("handlers.unguarded: guard unique, but the table effects has no primary key", errors[0][1])
        self.assertIn("handlers.broken.execute[0]", errors[1][1])
        self.assertEqual(store.execute("SELECT count(*) FROM keyed"), [("0",)], "nothing was run")


class Migrate(Case):
    @on_every_store
    def test_what_it_prints_can_be_run_as_it_is(self, store):
        code, script, _ = run("migrate", store.uri, "--print")
        self.assertEqual(code, 0)
        if store.name == "sqlite":
            connection = sqlite3.connect(store.path, isolation_level=None)
            connection.executescript(script)
            connection.close()
        else:
            store.execute(script)
        self.assertIn("is on the newest schema already", run("migrate", store.uri)[1])


class Files(ProgramCase):
    def test_counts_each_message_once_and_keeps_what_is_wrong(self):
        lines = [b'{"id": "a", "cents": 1}', b'{"id": "a", "cents": 1}', b'{"id": "b", "cents": 2}',
                 b'{"cents": 3}', b'{"id": "c", "cents"', b'{"id": "\xff", "cents": 4}', b'{"id": "a", "cents": 99}',
                 b'{"id": "d", "cents": null}', b"", b'{"id": null, "cents": 5}', b'{"id": 1.5, "cents": 5}']
        config = self.migrated(self.file_config(b"\n".join(lines) + b"\n"))
        code, output, errors = run("run", config, "--json")
        self.assertEqual(code, 0, errors)
        self.assertEqual(json.loads(output), {"received": 10, "fresh": 2, "replays": 1, "set_aside": 7,
                                              "handed_back": 0, "unmatched": 0, "refused": 0})
        self.assertEqual(self.rows(), [("a", "1"), ("b", "2")])
        self.assertEqual(sorted((l["reason"], l["code"]) for l in self.letters(config)), [
            ("conflict", "SEMEL-0105"), ("exhausted", "SEMEL-0207"), ("malformed", "SEMEL-0103"),
            ("malformed", "SEMEL-0103"), ("no_key", "SEMEL-0101"), ("no_key", "SEMEL-0101"), ("no_key", "SEMEL-0101")])
        for decision in ["fresh", "replay", "conflict", "no_key", "malformed", "exhausted"]:
            self.assertRegex(
                errors, rf"decision={decision} handler=pay key=\S+ source=events transport_id=events.jsonl:\d+")

        code, output, errors = run("run", config, "--json")
        self.assertEqual(json.loads(output)["fresh"], 0)
        self.assertEqual(self.rows(), [("a", "1"), ("b", "2")])
        self.assertEqual(len(self.letters(config)), 7, "a letter that comes again is the same letter")

        code, output, errors = run("records", config, "--handler", "pay", "--key", "a", "--json")
        record = json.loads(output)
        self.assertEqual((record["state"], record["key"], record["source"], record["transport_id"]),
                         ("completed", "a", "events", "events.jsonl:1"))

    def test_dead_letters_can_be_shown_sent_again_and_dropped(self):
        config = self.migrated(self.file_config(b'{"id": "a", "cents": null}\n{"cents": 1}\n'))
        run("run", config)
        letters = {letter["reason"]: letter["id"] for letter in self.letters(config)}
        code, output, errors = run("dead-letters", config, "show", letters["exhausted"], "--json")
        self.assertEqual(json.loads(output)["body"], '{"id": "a", "cents": null}')
        self.assertIn("{\"id\": \"a\"", run("dead-letters", config, "show", letters["exhausted"])[1])
        self.assertIn("exhausted", run("dead-letters", config, "list")[1])
        code, _, errors = run("dead-letters", config, "retry", letters["exhausted"])
        self.assertEqual(code, 1, "it fails again and waits on")
        self.assertRegex(errors, r"^semel: failed: handler pay, key a: SEMEL-0207: .*NOT NULL")
        self.store.execute("DROP TABLE effects")
        self.store.execute("CREATE TABLE effects (id text NOT NULL, cents bigint)")
        code, output, errors = run("dead-letters", config, "retry", letters["exhausted"])
        self.assertEqual((code, output), (0, "1 of 1 got through (1 fresh, 0 replays); 0 still wait\n"), errors)
        self.assertEqual(self.rows(), [("a", "None")])
        self.assertEqual(run("dead-letters", config, "drop", "--all")[:2], (0, "1 of 1 dropped\n"))
        self.assertEqual(self.letters(config), [])
        code, output, _ = run("dead-letters", config, "list", "--resolved", "--json")
        self.assertEqual(sorted(l["state"] for l in json.loads(output)), ["dropped", "retried"])

    def test_an_id_may_be_given_by_its_first_digits_and_a_slip_in_it_changes_nothing(self):
        config = self.migrated(self.file_config(b'{"id": "a", "cents": null}\n{"cents": 1}\n'))
        run("run", config)
        first, second = [letter["id"] for letter in self.letters(config)]
        nowhere = "f" * 32
        for action in ("show", "retry", "drop"):
            for slip, why in [(nowhere, "there is none"), ("ffffffffff", "there is none"),
                              ("none", "hexadecimal digits"), (first[:5], "at least the first 6"),
                              (first + "0", "hexadecimal digits")]:
                ids = [slip] if action == "show" else [first, slip]
                code, output, errors = run("dead-letters", config, action, *ids)
                self.assertEqual((code, output), (1, ""), (action, slip))
                self.assertRegex(errors, rf"^semel: SEMEL-0407: dead letter {slip}: .*{why}")
        self.assertEqual([letter["id"] for letter in self.letters(config)], [first, second])
        code, output, errors = run("dead-letters", config, "show", first[:6].upper(), "--json")
        self.assertEqual((code, json.loads(output)["id"]), (0, first), errors)
        self.assertEqual(run("dead-letters", config, "drop", first.upper())[:2], (0, "1 of 1 dropped\n"))
        code, output, errors = run("dead-letters", config, "drop", first[:8])
        self.assertEqual((code, output), (1, "0 of 1 dropped\n"))
        self.assertIn(f"dead letter {first} does not wait any more", errors)

    def test_ids_that_begin_alike_are_named(self):
        config = self.migrated(self.file_config(b'{"cents": 1}\n{"cents": 2}\n'))
        run("run", config)
        self.store.execute("UPDATE semel_dead_letters SET id = 'abcdef' || substr(id, 7)")
        ids = [letter["id"] for letter in self.letters(config)]
        code, _, errors = run("dead-letters", config, "show", "ABCDEF")
        self.assertEqual(code, 1)
        self.assertEqual(errors, "semel: SEMEL-0407: dead letter ABCDEF: several begin like this: "
                                 f"{', '.join(ids)}\n")

    def test_a_conflict_shows_both_fingerprints(self):
        config = self.migrated(self.file_config(b'{"id": "a", "cents": 1}\n{"id": "a", "cents": 2}\n'))
        run("run", config)
        letter, = self.letters(config)
        output = run("dead-letters", config, "show", letter["id"])[1]
        both = re.findall(r"^(?:fingerprint|recorded) +([0-9a-f]{16,})", output, re.M)
        self.assertEqual(len(set(both)), 2, output)

    def test_says_where_a_guard_keeps_no_record(self):
        config = self.file_config(b"")
        config.write_text(config.read_text().replace("    key: /id\n", "    key: /id\n    guard: natural\n"))
        code, _, errors = run("records", self.migrated(config), "--handler", "pay", "--key", "a")
        self.assertEqual((code, errors),
                         (1, "semel: the handler's guard keeps no records: look at the table that it writes\n"))

    def test_reads_gzip_and_says_where_it_is_torn(self):
        packed = gzip.compress(b"".join(b'{"id": "%d", "cents": %d}\n' % (i, i) for i in range(100)))
        config = self.migrated(self.file_config(packed))
        self.assertEqual(run("run", config)[0], 0)
        self.assertEqual(len(self.rows()), 100)
        (self.folder / "events.jsonl").write_bytes(packed[:-20])
        code, _, errors = run("run", config)
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"semel: SEMEL-0307: ")

    def test_batches_write_with_one_statement(self):
        lines = b"".join(b'{"id": "%d", "cents": %d}\n' % (i % 50, i % 50) for i in range(100))
        file = self.folder / "events.jsonl"
        file.write_bytes(lines)
        config = self.migrated(self.write("semel.yaml", f"""store: {self.store.uri}
sources: {{ events: {{ file: {file} }} }}
handlers:
  pay:
    from: events
    key: /id
    execute_batch: INSERT INTO effects VALUES (:key, :/cents)
"""))
        code, output, errors = run("run", config, "--json")
        self.assertEqual((code, json.loads(output)["fresh"]), (0, 50), errors)
        self.assertEqual(len(self.rows()), 50)

    def test_a_missing_file_is_an_error(self):
        config = self.migrated(self.file_config(b""))
        (self.folder / "events.jsonl").unlink()
        code, _, errors = run("run", config)
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"semel: SEMEL-0307: .*events\.jsonl")

    def test_json_logs_are_json(self):
        config = self.migrated(self.file_config(b'{"id": "a\\"\\n=b", "cents": 1}\n', "log: { format: json }\n"))
        _, _, errors = run("run", config)
        lines = [json.loads(line) for line in errors.splitlines()]
        fresh = next(line for line in lines if line.get("decision") == "fresh")
        self.assertEqual((fresh["handler"], fresh["level"]), ("pay", "info"))


class Http(ProgramCase):
    def start(self):
        self.port, self.admin = free_port(), free_port()
        config = self.write("http.yaml", HTTP_CONFIG.format(store=self.store.uri, port=self.port, admin=self.admin))
        self.env = {"HOOK_SECRET": SECRET}
        code, _, errors = run("migrate", config, env=self.env)
        self.assertEqual(code, 0, errors)
        program = Program("run", config, env=self.env)
        program.wait_until_it_says("running")
        self.config = config
        return program

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def hook(self, body, headers=None):
        return post(self.port, "/hooks", body, stripe(body, SECRET) if headers is None else headers)

    def test_a_webhook_sent_twice_leaves_one_row_and_gets_its_first_answer(self):
        program = self.start()
        body = b'{"id": "in_1", "cents": 4200}'
        first, second = self.hook(body), self.hook(body)
        self.assertEqual((first[0], first[2]), (201, '{"id":"in_1","cents":4200}'))
        self.assertEqual((second[0], second[2]), (first[0], first[2]))
        self.assertEqual(second[1].get("Idempotent-Replayed"), "true")
        self.assertEqual(self.rows(), [("in_1", "4200")])
        self.assertEqual(program.stop(), 0, program.text())
        self.assertIn("decision=replay handler=pay key=in_1", program.text()[1])

    def test_requests_are_kept_apart_by_principal(self):
        program = self.start()
        def order(customer, key, cents):
            headers = {"Idempotency-Key": key, "X-Customer": customer}
            return post(self.port, "/orders", json.dumps({"cents": cents}), {k: v for k, v in headers.items() if v})
        self.assertEqual(order("ann", "k1", 1)[::2], (201, '{"ordered":1}'))
        self.assertEqual(order("ann", "k1", 1)[::2], (201, '{"ordered":1}'))
        self.assertEqual(order("bob", "k1", 2)[::2], (201, '{"ordered":2}'))
        self.assertEqual(order("ann", "k1", 9)[0], 422)
        self.assertEqual(order("ann", "", 9)[0], 400)
        status, _, problem = order("", "k1", 9)
        self.assertEqual(status, 401)
        self.assertIn("there is no X-Customer header", problem)
        self.assertEqual(self.rows(), [("k1", "1"), ("k1", "2")])
        code, output, errors = run("records", self.config, "--handler", "order", "--key", "k1", "--principal", "bob",
                                   "--json", env=self.env)
        self.assertEqual(code, 0, errors)
        self.assertEqual(json.loads(output)["answer"]["body"], '{"ordered":2}')
        self.assertEqual(program.stop(), 0)
        self.assertRegex(program.text()[0], r"set aside +refused .*\n.* 0 +1 ", "a conflict that its caller was told")

    def test_bad_input_gets_a_clear_answer_and_loses_nothing(self):
        program = self.start()
        good = b'{"id": "in_1", "cents": 1}'
        cases = [
            ("wrong signature", good, stripe(good, "whsec_other"), 401),
            ("no signature", good, {}, 401),
            ("old timestamp", good, stripe(good, SECRET, at=time.time() - 3600), 401),
            ("over the limit", b'{"id": "' + b"x" * 2000 + b'"}', None, 413),
            ("malformed", b'{"id": ', None, 202),
            ("invalid UTF-8", b'{"id": "\xff"}', None, 202),
            ("no key", b'{"cents": 1}', None, 202),
        ]
        for name, body, headers, status in cases:
            self.assertEqual(self.hook(body, headers)[0], status, name)
        self.assertEqual(self.rows(), [])
        metrics = self.get("/metrics")[1]
        self.assertIn('semel_http_refused_total{code="SEMEL-0302",source="hooks"} 2', metrics)
        self.assertIn('semel_http_refused_total{code="SEMEL-0303",source="hooks"} 1', metrics)
        self.assertEqual(program.stop(), 0)
        said = [line for line in program.text()[1].splitlines() if "event=refused source=hooks code=SEMEL-0302" in line]
        self.assertEqual(len(said), 1, "the first is said, the others are counted")
        code, output, _ = run("dead-letters", self.config, "list", "--json", env=self.env)
        reasons = sorted(letter["reason"] for letter in json.loads(output))
        self.assertEqual(reasons, ["malformed", "malformed", "no_key"])

    def test_what_is_answered_for_no_source_is_counted_and_said(self):
        program = self.start()
        for path, body, status in [("/nowhere", b"", 404), ("/elsewhere", b"", 404), ("/hooks", b"x" * 2000, 413)]:
            self.assertEqual(post(self.port, path, body, {})[0], status)
        metrics = self.get("/metrics")[1]
        counted = 'semel_http_problems_total{listener="127.0.0.1:%d",problem="%s",status="%d"} %d'
        self.assertIn(counted % (self.port, "not-found", 404, 2), metrics)
        self.assertIn(counted % (self.port, "body-too-large", 413, 1), metrics)
        self.assertEqual(program.stop(), 0)
        said = [line for line in program.text()[1].splitlines() if "event=problem" in line]
        where = f"event=problem listener=127.0.0.1:{self.port}"
        self.assertEqual([line[line.index("event="):] for line in said],
                         [f"{where} status=404 problem=not-found count=1",
                          f"{where} status=413 problem=body-too-large count=1"],
                         "the first of a kind is said, the others are counted")

    def test_health_readiness_and_metrics(self):
        program = self.start()
        self.hook(b'{"id": "in_1", "cents": 1}')
        self.hook(b'{"id": "in_1", "cents": 1}')
        self.assertEqual(self.get("/healthz"), (200, "alive\n"))
        self.assertEqual(self.get("/readyz"), (200, "ready\n"))
        status, text = self.get("/metrics")
        self.assertIn('semel_messages_total{decision="fresh",handler="pay"} 1', text)
        self.assertIn('semel_messages_total{decision="replay",handler="pay"} 1', text)
        self.assertIn('semel_messages_total{decision="conflict",handler="pay"} 0', text)
        self.assertIn("semel_commit_seconds_count", text)
        self.assertEqual(self.get("/other")[0], 404)
        self.assertEqual(program.stop(), 0)

    def test_a_port_in_use_is_an_error(self):
        program = self.start()
        code, _, errors = run("run", self.config, env=self.env)
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"semel: SEMEL-0301: ")
        self.assertEqual(program.stop(), 0)

    def test_secrets_never_leak(self):
        program = self.start()
        for body in [b'{"id": "in_1", "cents": 1}', b'{"cents": 1}', b"{"]:
            self.hook(body)
        self.hook(b"{}", {"Stripe-Signature": "t=1,v1=00"})
        said = [*self.get("/metrics"), *self.get("/readyz")]
        program.stop()
        said += program.text()
        for arguments in [["check", self.config], ["check", self.config, "--json"],
                          ["dead-letters", self.config, "list"],
                          ["dead-letters", self.config, "list", "--json"],
                          ["records", self.config, "--handler", "pay", "--key", "in_1", "--json"]]:
            said += run(*arguments, env=self.env)
        away = self.write("away.yaml", (self.config.read_text()).replace(
            self.store.uri, f"postgresql://shop:{SECRET}@127.0.0.1:1/shop?connect_timeout=1"))
        for command in ["check", "migrate", "run"]:
            code, *texts = run(command, away, env=self.env)
            self.assertEqual(code, 1, texts)
            said += texts
        said += run("migrate", f"postgresql://shop:{SECRET}@127.0.0.1:1/shop")
        bad = self.write("bad.yaml", self.config.read_text().replace("sqlite:", f"mysql://{SECRET}@"))
        said += run("check", bad, env=self.env)
        for text in said:
            self.assertNotIn(SECRET, str(text))


class World(ProgramCase):
    def test_a_run_that_is_refused_never_says_that_it_listens(self):
        config = self.write("semel.yaml", f"""store: {self.store.uri}
sources: {{ hooks: {{ http: {{ listen: "127.0.0.1:0", path: /, verify: none }} }} }}
handlers: {{ h: {{ from: hooks, key: /id, execute: "INSERT INTO effects VALUES (:key, 1)" }} }}
admin: none
""")
        code, _, errors = run("run", config)
        self.assertEqual(code, 1)
        self.assertNotIn("listening", errors)

    def test_a_store_in_a_read_only_folder_is_an_error_with_its_path(self):
        folder = self.folder / "locked"
        folder.mkdir()
        target = folder / "no" / "shop.db"
        code, _, errors = run("migrate", f"sqlite:{target}")
        self.assertEqual(code, 1)
        self.assertRegex(errors, rf"semel: SEMEL-02\d\d: .*{target}")

    def test_a_locked_database_is_waited_for_and_nothing_is_lost(self):
        config = self.migrated(self.file_config(b'{"id": "a", "cents": 1}\n'))
        impatient = f"store: {{ uri: {self.store.uri}, lock_timeout: 50ms }}"
        config.write_text(config.read_text().replace(f"store: {self.store.uri}", impatient))
        holder = sqlite3.connect(self.store.path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        program = Program("run", config)
        program.wait_until_it_says("SEMEL-0205")
        holder.execute("ROLLBACK")
        holder.close()
        self.assertEqual(program.wait(), 0, program.text())
        self.assertEqual(self.rows(), [("a", "1")])

    def test_a_second_signal_ends_at_once(self):
        config = self.migrated(self.file_config(b'{"id": "a", "cents": 1}\n'))
        program = Program("run", config, steps=True)
        self.assertTrue(program.run_until("handled"))  # it hangs here for ever
        program.process.terminate()
        program.wait_until_it_says("stopping")
        program.process.terminate()
        self.assertEqual(program.wait(), 1)
        self.assertEqual(self.rows(), [])
        self.assertEqual(run("run", config)[0], 0)
        self.assertEqual(self.rows(), [("a", "1")])

    def test_signals_that_come_together_are_one(self):
        """Who ends a whole group of processes, as timeout(1) and shells do, tells each of them twice."""
        config = self.migrated(self.file_config(b'{"id": "a", "cents": 1}\n'))
        program = Program("run", config, steps=True)
        self.assertTrue(program.run_until("handled"))
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
            program.process.send_signal(number)
        program.wait_until_it_says("stopping")
        program.run_freely()
        self.assertEqual(program.wait(), 0, program.text())
        self.assertEqual(self.rows(), [("a", "1")])

    def test_an_unsafe_setting_is_refused_unless_named(self):
        config = self.migrated(self.file_config(b""))
        text = config.read_text()
        unsafe = "store: {{ uri: {}, synchronous: normal{} }}"
        config.write_text(text.replace(f"store: {self.store.uri}", unsafe.format(self.store.uri, "")))
        code, _, errors = run("run", config)
        self.assertEqual(code, 1)
        self.assertRegex(errors, "semel: SEMEL-0210: ")
        named = unsafe.format(self.store.uri, ", allow_unsafe_durability: true")
        config.write_text(text.replace(f"store: {self.store.uri}", named))
        self.assertEqual(run("run", config)[0], 0)


if __name__ == "__main__":
    unittest.main()
