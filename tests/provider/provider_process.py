"""The provider as a process of a test's own.

    sys.path.insert(0, <this folder>)
    provider = ProviderProcess(folder); provider.start(); self.addCleanup(provider.stop)
    provider.faults({"fault": "hang_after", "next": 1})
    ... the program under test calls provider.url ...
    provider.wait_until_waiting(1); provider.release()
    self.assertEqual(len(provider.charges("order-1")), 1)

No call here has a time limit: the limit is that of the test.
"""

import http.client
import json
import pathlib
import subprocess
import sys

PROVIDER = pathlib.Path(__file__).resolve().parent / "provider.py"


class ProviderProcess:
    """One provider and its ledger. It keeps its port and its ledger over kill() and start()."""

    def __init__(self, folder, settings=None):
        self.ledger_path = pathlib.Path(folder) / "provider-ledger.db"
        self.port = 0
        self._process = None
        self._settings = settings

    def start(self):
        """Returns once it accepts connections. It ends by itself when the test does."""
        self._process = subprocess.Popen(
            [sys.executable, "-B", str(PROVIDER), "--ledger", str(self.ledger_path), "--port", str(self.port),
             "--stop-with-stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first_line = self._process.stdout.readline()
        if not first_line:
            self.stop()
            raise AssertionError("the provider did not start")
        self.port = int(first_line)
        if self._settings:
            self.settings(**self._settings)
            self._settings = None  # from here on they are in the ledger
        return self

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self._process.pid

    def kill(self):
        """SIGKILL: every open connection breaks, what hangs is gone, faults are forgotten; the ledger stays."""
        self._end(self._process.kill)

    def stop(self):
        """SIGTERM. Does nothing where it does not run."""
        self._end(lambda: self._process.poll() is None and self._process.terminate())

    def _end(self, how):
        if self._process is None:
            return
        how()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process = None

    def request(self, method, path, body=None, headers=None):
        """One request on a connection of its own: (status, headers, JSON). Raises where the connection breaks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), json.loads(answer.read())
        finally:
            connection.close()

    def _admin(self, method, path, body=None):
        status, _, answer = self.request(method, "/admin/" + path, body)
        if status != 200:
            raise AssertionError(f"{method} {path}: {status} {answer}")
        return answer

    def settings(self, **changes):
        self._admin("POST", "settings", changes)

    def faults(self, *rules):
        """Replaces all rules; without any it behaves. A rule is its dictionary, or only the name of its fault."""
        self._admin("POST", "faults", {"rules": [{"fault": r} if isinstance(r, str) else r for r in rules]})

    def faults_left(self):
        return self._admin("GET", "faults")["rules"]

    def ledger(self, at_least=0):
        """Every charge, capture and refund in order, those that failed too, with the key each came with. Returns once
        there are at least so many."""
        return self._admin("GET", f"ledger?at_least={at_least}")["operations"]

    def charges(self, reference=None):
        """The charges that took money."""
        return [one for one in self.ledger() if one["kind"] == "charge" and one["status"] != "failed"
                and reference in (None, one["reference"])]

    def advance(self, seconds):
        """The only thing that moves its clock."""
        self._admin("POST", "clock", {"advance": seconds})

    def set_status(self, operation_id, status):
        self._admin("POST", "status", {"id": operation_id, "status": status})

    def wait_until_waiting(self, count):
        """Returns once that many requests hang."""
        return self._admin("GET", f"waiting?at_least={count}")["waiting"]

    def wait_until_received(self, count):
        """Returns the requests once there were that many since it started, lookups too."""
        return self._admin("GET", f"requests?at_least={count}")["requests"]

    def wait_until_nobody_calls(self):
        """Returns once every connection is closed: what callers that are dead had sent is done then."""
        self._admin("GET", "alone")

    def received(self):
        return self.wait_until_received(0)

    def release(self, drop=False):
        """Every request that hangs now goes on, or loses its connection. Returns how many there were."""
        return self._admin("POST", "release", {"drop": drop})["released"]

    def reset(self):
        self._admin("POST", "reset", {})
