"""Two processes on one database, killed, told to stop, frozen and cut off at random: on both stores, from both sources,
for each kind of effect. Then all comes to rest. Every message must have its effect once, nothing may be lost, and what
was acknowledged must be there: a good answer means a row of that content, 202 a dead letter of that content, 500
neither.

    SEMEL_STORM_SEED=N        the blows and messages of a round again, in their order
    SEMEL_STORM_SECONDS=N     round after round, each with the next seed, until so much time is over
    SEMEL_STORM_MESSAGES=N    messages of a cell

No verdict depends on time: each blow falls after a number of things was done, and a frozen process goes on after a
number of commands has looked at the database. How the two processes meet in between is not the seed's to say."""

import collections
import http.client
import itertools
import json
import os
import random
import signal
import threading
import time
import unittest

from harness import DATABASES, Program, free_port, run
from kinds import OutsideCall, OwnRows, Publication, service_text
from outside import INTENTS, OUTBOX, Cells, make_due

SEED = int(os.environ.get("SEMEL_STORM_SEED", random.SystemRandom().randrange(1_000_000)))
SECONDS = int(os.environ.get("SEMEL_STORM_SECONDS", 0))
MESSAGES = int(os.environ.get("SEMEL_STORM_MESSAGES", 600))
SENDERS = 8
BLOW_EVERY = 12  # messages, calls and publications done, at most
APPENDED = max(1, MESSAGES // 20)  # lines before each blow
COMMANDS_MAX = 12  # that a process is frozen for

FAULTS = ["error_before", "error_after", "unavailable", "reset_before", "reset_after"]
SENT_AGAIN = (409, 503)


class WithKey(OutsideCall):
    """A lease runs out while its process is killed, frozen or slow: a repeat is safe at any time."""
    name = "call, key"
    lease = "500ms"


class WithLookup(OutsideCall):
    """Not so here: "there is no charge" may be believed only once no call can be on its way any more. So leases are
    long, and run out when nobody is alive."""
    name = "call, lookup"
    policy = "lookup"
    lease = "10m"


KINDS = [OwnRows, Publication, WithKey, WithLookup]


def messages(chance):
    """A fifth comes twice or more; some reuse a key for something else; some cannot be written."""
    sent = []
    for number in range(1, MESSAGES + 1):
        kind = chance.random()
        if sent and kind < 0.20:
            sent.append(chance.choice(sent[-100:]))
        elif sent and kind < 0.25:
            key, cents = chance.choice(sent[-100:])
            sent.append((key, None if cents is None else number))
        elif kind < 0.30:
            sent.append((f"failing_{number}", None))
        else:
            sent.append((f"pay_{number}", number))
    return sent


def line(message):
    return json.dumps({"id": message[0], "cents": message[1]})


def faults(chance):
    """What every fifth payment's first call meets."""
    return [{"fault": chance.choice(FAULTS), "next": 1, "reference": f"pay_{number}"}
            for number in range(1, MESSAGES + 1, 5)]


def small_batches(kind, source, place, store):
    """So that more of them are struck."""
    return service_text(kind, source, place, f'{{ uri: "{store.uri}", lock_timeout: 500ms }}') + "batch_max: 5\n"


class Pulse:
    """Counts what both processes say that they have done, replays left out, for whoever waits for it."""

    def __init__(self):
        self.changed = threading.Condition()
        self.done = 0

    def hear(self, said=""):
        with self.changed:
            self.done += said != "" and "decision=replay" not in said
            self.changed.notify_all()

    def wait_for(self, count, or_else):
        with self.changed:
            until = self.done + count
            self.changed.wait_for(lambda: self.done >= until or or_else())


class Http:
    """Each message is sent, now to the one process and now to the other, until somebody answers it for good."""
    name = "http"
    ready = "listening"

    def __init__(self, case, name, kind, store, sent):
        self.ports = [free_port(), free_port()]
        self.configs = [case.write(f"{name}.{port}.yaml", small_batches(kind, "http", {"port": port}, store))
                        for port in self.ports]
        nothing = {"file": case.write(f"{name}.empty", "")}
        self.rest = case.write(f"{name}.rest.yaml", small_batches(kind, "file", nothing, store))
        self.left = collections.deque(sent)
        self.expected = len(sent)
        self.answers = []
        self.failures = []
        self.given_up = False

    def begin(self, pulse, seed):
        self.pulse = pulse
        self.threads = [threading.Thread(target=self._send, args=(random.Random(f"{seed} {n}"),))
                        for n in range(SENDERS)]
        for thread in self.threads:
            thread.start()

    def _send(self, chance):
        connections = {}
        try:
            while True:
                try:
                    message = self.left.popleft()
                except IndexError:
                    return
                self.answers.append((message, self._until_answered(message, connections, chance)))
        except BaseException as error:  # an answer that nobody expects, too
            self.failures.append(error)
            raise
        finally:
            self.pulse.hear()
            for connection in connections.values():
                connection.close()

    def _until_answered(self, message, connections, chance):
        while not self.given_up:
            port = chance.choice(self.ports)
            connection = connections.setdefault(port, http.client.HTTPConnection("127.0.0.1", port, timeout=30))
            try:
                connection.request("POST", "/pay", line(message))
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                continue
            if answer.status not in SENT_AGAIN:
                return answer.status
        return None

    def goes_on(self):
        return not self.is_done()

    def is_done(self):
        return len(self.answers) == self.expected or bool(self.failures)

    def grow(self):
        """Its senders do that."""

    def end(self, given_up):
        self.given_up = given_up
        for thread in self.threads:
            thread.join()


class File:
    """Both processes read one file. It grows while they read; who has come to its end starts again from its beginning,
    and may have read half of the last line."""
    name = "file"
    ready = "running"
    answers = ()
    failures = ()

    def __init__(self, case, name, kind, store, sent):
        self.path = case.write(f"{name}.jsonl", "")
        self.rest = case.write(f"{name}.yaml", small_batches(kind, "file", {"file": self.path}, store))
        self.configs = [self.rest, self.rest]
        self.left = collections.deque(sent)

    def begin(self, _pulse, _seed):
        pass

    def goes_on(self):
        return bool(self.left)

    def is_done(self):
        """That is seen by the ends of its readers."""
        return False

    def grow(self):
        with open(self.path, "a", encoding="utf-8") as file:
            for _ in range(min(APPENDED, len(self.left))):
                file.write(line(self.left.popleft()) + "\n")

    def end(self, given_up):
        pass


class Blows:
    """Strikes one of the two every now and then, as long as there is something to do."""

    def __init__(self, source, kind, database, chance):
        self.source, self.kind, self.database, self.chance = source, kind, database, chance
        self.pulse = Pulse()
        self.counts = collections.Counter()
        self.programs = [None, None]

    def strike(self, seed):
        given_up = True
        try:
            self.start(0, 1)
            self.source.begin(self.pulse, seed)
            self.strike_until_all_is_sent()
            given_up = False
        finally:
            self.source.end(given_up)
            codes = self.end_all("kill" if given_up else "stop")
        if not set(codes) <= {0, -signal.SIGKILL}:
            raise AssertionError(f"SIGTERM: exit codes {codes}")

    def strike_until_all_is_sent(self):
        kinds = [self.kill, self.kill, self.freeze, self.terminate]
        if self.database.name == "postgres":
            kinds.append(self.cut_off)
        while self.source.goes_on():
            self.source.grow()
            self.start(*(n for n, program in enumerate(self.programs) if program.has_ended()))
            self.pulse.wait_for(self.chance.randrange(1, BLOW_EVERY), self.nothing_goes_on)
            blow, one = self.chance.choice(kinds), self.chance.randrange(2)
            self.counts[blow.__name__] += blow(one)

    def nothing_goes_on(self):
        return self.source.is_done() or all(program.has_ended() for program in self.programs)

    def start(self, *which):
        for n in which:
            if self.programs[n] and self.programs[n].wait() not in (0, -signal.SIGKILL):
                raise AssertionError(self.programs[n].text())
            self.programs[n] = Program("run", self.source.configs[n], told=self.pulse.hear)
            self.programs[n].wait_until_it_says(self.source.ready)

    def end_all(self, how):
        return [getattr(program, how)() for program in self.programs if program]

    def kill(self, n):
        struck = self.programs[n].kill() == -signal.SIGKILL
        self.let_leases_run_out()
        return struck

    def terminate(self, n):
        struck = not self.programs[n].has_ended()
        code = self.programs[n].stop()
        if code != 0:
            raise AssertionError(f"SIGTERM: exit code {code}\n" + "".join(self.programs[n].errors[-20:]))
        return struck

    def freeze(self, n):
        """For as long as others look at the database. It may hold locks meanwhile, which writers wait for."""
        commands = self.chance.randrange(1, COMMANDS_MAX)
        self.programs[n].process.send_signal(signal.SIGSTOP)
        struck = not self.programs[n].has_ended()
        for _ in range(commands):
            run("dead-letters", self.source.rest, "list", "--json")
        self.programs[n].process.send_signal(signal.SIGCONT)
        return struck

    def cut_off(self, _):
        self.database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                              "WHERE datname = current_database() AND pid <> pg_backend_pid()")
        self.let_leases_run_out()
        return True

    def let_leases_run_out(self):
        """Where they are long: what a dead process had taken is due once the other has stopped too."""
        if isinstance(self.kind, WithLookup):
            self.end_all("stop")
            leases_are_over(self.kind, self.database)


def leases_are_over(kind, database):
    """Nobody is alive."""
    if isinstance(kind, OutsideCall):
        kind.bank.wait_until_nobody_calls()
    make_due(database)


class Found:
    """What is there after a storm, and what is wrong with it."""

    def __init__(self, kind, source, database, letters, sent):
        self.kind, self.source, self.database = kind, source, database
        self.letters = collections.Counter((letter["reason"], letter["key"]) for letter in letters)
        self.rows = [(key, int(cents)) for key, cents in database.execute("SELECT id, cents FROM effects")]
        self.happened = kind.happened()
        good = {key for key, cents in sent if cents is not None}
        self.effects = most(key for key, _ in self.rows)
        self.outside = "-" if type(kind) is OwnRows else most(key for key, _, _ in self.happened)
        whole = {key for key, _ in self.rows}
        if self.outside != "-":
            whole &= {key for key, _, _ in self.happened}
        self.lost = len(good - whole)
        self.again = kind.requests() - len(self.happened)
        self.wrong = [*self.of_effects(good), *self.of_rest(good), *self.of_messages(sent), *self.of_answers()]

    def of_effects(self, good):
        if self.effects > 1 or self.outside not in ("-", 1) or self.lost:
            yield f"effects {self.effects}, outside {self.outside}, lost {self.lost}"
        if strange := {key for key, _ in self.rows} - good:
            yield f"not to be applied: {strange}"
        if self.outside != "-" and (differs := {(key, cents) for key, cents, _ in self.happened} ^ set(self.rows)):
            yield f"outside and rows differ: {differs}"

    def of_rest(self, good):
        left = self.database.execute(f"SELECT count(*) FROM {OUTBOX[self.database.name]}")
        if left != [("0",)]:
            yield f"left in the outbox: {left}"
        if not isinstance(self.kind, OutsideCall):
            return
        if unsettled := {key: once for key, once in self.kind.once(self.database, good).items() if once != 1}:
            yield f"not charged once and settled once: {unsettled}"
        if len(self.database.execute(INTENTS[self.database.name])) != len(good):
            yield "intents that no payment has"

    def of_messages(self, sent):
        """Each was applied or, where it could not be, is there with its reason, if nobody was told."""
        for message in set(sent) - set(self.rows):
            reason = "conflict" if message[1] is not None else "exhausted" if self.source.name == "file" else None
            if reason and not self.letters[(reason, message[0])]:
                yield f"{message} was neither applied nor set aside"

    def of_answers(self):
        for message, status in self.source.answers:
            expected = 500 if message[1] is None else self.kind.answered if message in self.rows else 202
            if status != expected:
                yield f"{message} was answered {status}, not {expected}"


def most(keys):
    return max(collections.Counter(keys).values(), default=0)


class Storm(Cells):
    def cell(self, name, store, source, kind, seed):
        chance = random.Random(f"{seed} {store.name} {source.name} {kind.name}")
        database, kind, sent = self.templates[store].copy(name), kind(self), messages(chance)
        if isinstance(kind, OutsideCall):
            kind.bank.faults(*faults(chance))
        source = source(self, name, kind, database, sent)
        blows = Blows(source, kind, database, chance)
        blows.strike(seed)
        leases_are_over(kind, database)
        self.come_to_rest(source.rest)
        found = Found(kind, source, database, self.letters(source.rest), sent)
        found.wrong += map(repr, source.failures)
        database.drop()
        kind.end()
        return found, blows.counts, len(sent)

    def letters(self, config):
        code, output, errors = run("dead-letters", config, "list", "--json", "--limit", "100000")
        self.assertEqual(code, 0, errors)
        return json.loads(output)

    def test_whatever_strikes_each_message_has_its_effect_once(self):
        table, wrong, end = Table(), [], time.monotonic() + SECONDS
        for seed in itertools.count(SEED):
            print(f"SEMEL_STORM_SEED={seed}", flush=True)
            cells = [(store, source, kind) for store in DATABASES for source in (File, Http) for kind in KINDS]
            found = self.all_cells([lambda name, c=c: self.cell(f"s{seed}{name}", *c, seed) for c in cells])
            for cell, (result, blows, count) in zip(cells, found):
                table.add([one.name for one in cell], result, blows, count)
                wrong += [f"seed {seed}, {[one.name for one in cell]}: {what}" for what in result.wrong]
            if wrong or time.monotonic() >= end:
                break
        table.show()
        self.assertFalse(wrong, "\n".join(wrong))


class Table:
    """What all rounds have found, for each cell."""
    COLUMNS = {"messages": "messages", "kill": "killed", "terminate": "told to stop", "freeze": "frozen",
               "cut_off": "cut off", "again": "repeats outside", "effects": "effects at most",
               "outside": "outside at most", "lost": "lost"}

    def __init__(self):
        self.rows = {}

    def add(self, cell, found, blows, count):
        row = self.rows.setdefault(tuple(cell), collections.Counter())
        row.update(messages=count, lost=found.lost, again=found.again, **blows)
        row["effects"] = max(row["effects"], found.effects)
        row["outside"] = found.outside if found.outside == "-" else max(row["outside"], found.outside)

    def show(self):
        print("| store | source | kind | " + " | ".join(self.COLUMNS.values()) + " |")
        print("|---" * (3 + len(self.COLUMNS)) + "|")
        for cell, row in self.rows.items():
            print("| " + " | ".join([*cell, *(str(row[column]) for column in self.COLUMNS)]) + " |")


if __name__ == "__main__":
    unittest.main()
