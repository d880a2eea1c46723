"""Two processes under load on one database, killed, frozen and cut off at random, on both stores. What was acknowledged
must be there: 201 means one row of that content, 202 a dead letter of that content, 500 neither.

Nothing here depends on time: each blow falls after a number of answers, and a frozen process goes on once the other one
has answered or all senders wait for the frozen one. Set SEMEL_CHAOS_SEED to the seed of a failure to have its blows and
messages again, and SEMEL_CHAOS_MESSAGES for a longer run."""

import collections
import http.client
import json
import os
import random
import signal
import threading
import unittest

from harness import DATABASES, Case, Program, free_port, run

SEED = int(os.environ.get("SEMEL_CHAOS_SEED", random.SystemRandom().randrange(1_000_000)))
MESSAGES = int(os.environ.get("SEMEL_CHAOS_MESSAGES", 1500))
SENDERS = 8
BLOW_EVERY = 50  # answers, more or less

CONFIG = """
store: {{ uri: "{store}", lock_timeout: 500ms }}
sources:
  payments: {{ http: {{ listen: "127.0.0.1:{port}", path: /pay, verify: none }} }}
handlers:
  pay:
    from: payments
    key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    answer: {{ status: 201, body: {{ paid: ":/cents" }} }}
admin: none
"""


def messages(chance):
    """A fifth comes twice or more; some reuse a key for something else; some cannot be written."""
    sent = []
    for number in range(MESSAGES):
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


class Answers:
    """Who was answered what; and the number of answers, for those who wait for it."""

    def __init__(self):
        self.changed = threading.Condition()
        self.all = []
        self.by_port = collections.Counter()
        self.waiting = collections.Counter()
        self.sending = SENDERS
        self.failures = []
        self.over = False

    def add(self, port, message, status):
        with self.changed:
            self.all.append((message, status))
            self.by_port[port] += 1
            self.changed.notify_all()

    def waits(self, port, change):
        with self.changed:
            self.waiting[port] += change
            self.changed.notify_all()

    def sends_no_more(self):
        with self.changed:
            self.sending -= 1
            self.changed.notify_all()

    def end(self):
        with self.changed:
            self.over = True
            self.changed.notify_all()


class Senders:
    """Send each message, now to the one process and now to the other, until somebody answers for good."""

    def __init__(self, ports, sent, answers, seed):
        self.ports, self.answers = ports, answers
        self.left = collections.deque(sent)
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
                self._until_answered(message, connections, chance)
        except BaseException as error:  # an answer that nobody expects, too
            self.answers.failures.append(error)
            raise
        finally:
            self.answers.sends_no_more()
            for connection in connections.values():
                connection.close()

    def _until_answered(self, message, connections, chance):
        body = json.dumps({"id": message[0], "cents": message[1]})
        while True:
            port = chance.choice(self.ports)
            connection = connections.setdefault(port, http.client.HTTPConnection("127.0.0.1", port, timeout=10))
            self.answers.waits(port, +1)
            try:
                connection.request("POST", "/pay", body)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                continue
            finally:
                self.answers.waits(port, -1)
            if answer.status not in (409, 503):  # which ask to come again
                return self.answers.add(port, message, answer.status)

    def join(self):
        for thread in self.threads:
            thread.join()
        self.answers.end()


class Blows:
    """Strikes one of the two every now and then until all is answered."""

    def __init__(self, programs, start, database, answers, chance):
        self.programs, self.start, self.database, self.answers, self.chance = programs, start, database, answers, chance
        self.counts = collections.Counter()
        self.failures = []
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        try:
            kinds = [self.kill, self.kill, self.freeze, self.stop]
            if self.database.name == "postgres":
                kinds.append(self.cut_off)
            while self._after(self.chance.randrange(BLOW_EVERY // 2, BLOW_EVERY * 3 // 2)):
                blow = self.chance.choice(kinds)
                self.counts[blow.__name__] += 1
                blow(self.chance.choice(list(self.programs)))
        except BaseException as error:
            self.failures.append(error)
            raise

    def _after(self, count):
        with self.answers.changed:
            until = len(self.answers.all) + count
            self.answers.changed.wait_for(lambda: self.answers.over or len(self.answers.all) >= until)
            return not self.answers.over

    def kill(self, port):
        self.programs[port].kill()
        self.programs[port] = self.start(port)

    def stop(self, port):
        code = self.programs[port].stop()
        if code != 0:
            raise AssertionError(f"SIGTERM: exit code {code}\n" + "".join(self.programs[port].errors[-20:]))
        self.programs[port] = self.start(port)

    def freeze(self, port):
        """Until the other one has gone on without it or, where it holds the lock, everybody waits for it."""
        other = next(p for p in self.programs if p != port)
        with self.answers.changed:
            answered = self.answers.by_port[other]
        self.programs[port].process.send_signal(signal.SIGSTOP)
        with self.answers.changed:
            self.answers.changed.wait_for(lambda: self.answers.over or self.answers.by_port[other] >= answered + 5
                                          or self.answers.waiting[port] == self.answers.sending)
        self.programs[port].process.send_signal(signal.SIGCONT)

    def cut_off(self, _):
        self.database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                              "WHERE datname = current_database() AND pid <> pg_backend_pid()")


class Chaos(Case):
    def start_at(self, config_of, programs):
        def start(port):
            program = Program("run", config_of[port])
            self.addCleanup(lambda: program.process.poll() is None and program.kill())
            program.wait_until_it_says("listening")
            return program
        for port in config_of:
            programs[port] = start(port)
        return start

    def test_what_was_acknowledged_is_there_once(self):
        for kind in DATABASES:
            with self.subTest(store=kind.name, seed=SEED):
                chance = random.Random(f"{SEED} {kind.name}")
                database = self.database(kind)
                config_of = {}
                for port in [free_port(), free_port()]:
                    config_of[port] = self.write(f"{port}.yaml", CONFIG.format(store=database.uri, port=port))
                self.migrated(config_of[port])
                programs = {}
                start = self.start_at(config_of, programs)
                sent = messages(chance)
                answers = Answers()
                senders = Senders(list(config_of), sent, answers, SEED)
                blows = Blows(programs, start, database, answers, chance)
                senders.join()
                blows.thread.join()
                print(f"{database.name}: seed {SEED}, {len(sent)} messages, blows {dict(blows.counts)}, "
                      f"answers {dict(collections.Counter(status for _, status in answers.all))}", flush=True)
                self.assertEqual(answers.failures + blows.failures, [])
                for program in programs.values():
                    self.assertEqual(program.stop(), 0, program.text())
                self.check(database, config_of[port], sent, answers.all)

    def check(self, database, config, sent, answers):
        self.assertEqual(len(answers), len(sent), "each message is answered in the end")
        rows = [(key, int(cents)) for key, cents in database.execute("SELECT id, cents FROM effects")]
        twice = [key for key, count in collections.Counter(key for key, _ in rows).items() if count > 1]
        self.assertEqual(twice, [], "two effects of one key")
        code, output, errors = run("dead-letters", config, "list", "--json", "--limit", "100000")
        self.assertEqual(code, 0, errors)
        letters = collections.Counter((letter["reason"], letter["key"]) for letter in json.loads(output))
        rows = set(rows)
        for message, status in answers:
            if message[1] is None:
                self.assertEqual(status, 500, message)
            elif status == 201:
                self.assertIn(message, rows, "acknowledged and lost")
            else:
                self.assertEqual(status, 202, message)
                self.assertNotIn(message, rows)
                self.assertTrue(letters[("conflict", message[0])], f"{message} was neither applied nor set aside")
        self.assertEqual({key for key, _ in rows}, {key for key, cents in sent if cents is not None})


if __name__ == "__main__":
    unittest.main()
