#!/usr/bin/env python3
"""A payment provider of our own, for tests: a process with a durable ledger, which misbehaves as it is told to.

    provider.py --ledger FILE [--port N] [--stop-with-stdin]

It listens on 127.0.0.1 and prints its port as the first line. Killed and started again on the same file, it knows all
that it did. It keeps nobody from charging twice: whoever does finds it in the ledger.

    POST /charges      {"amount": 1250, "currency": "EUR", "reference": "order-1"}        -> 201, the charge
    POST /captures     {"charge": "ch_000001", "amount": …, "currency": …, "reference": …}
    POST /refunds      the same as /captures
                       a body may also be a form: amount=1250&currency=EUR&reference=order-1
    GET  /charges?reference=order-1   {"data": [...]}, /captures and /refunds too; subject to the visibility delay
    GET  /charges/ch_000001           never delayed

For the test, on the same port:

    POST /admin/settings   see SETTINGS; what is not named keeps its value     GET  /admin/settings
    POST /admin/faults     {"rules": [RULE, ...]}; replaces them all           GET  /admin/faults
    POST /admin/clock      {"advance": SECONDS}; it stands still otherwise
    POST /admin/status     {"id": "ch_000001", "status": "failed"}; what became of a charge later
    POST /admin/release    {"drop": false}; what hangs goes on; with "drop" its connection is closed instead
    GET  /admin/waiting?at_least=N     answers once N requests hang, whether or not their callers still wait
    GET  /admin/requests?at_least=N    answers once N were received; lists them, with the keys they carried
    GET  /admin/alone                  answers once no other connection is open: what callers that are dead had sent is
                                       done then
    GET  /admin/ledger?at_least=N      every charge, capture and refund in order, with its key, once there are N
    POST /admin/reset      as if it had never run

A RULE is {"fault": NAME} with, each optional: "next": N (only the next N requests that match), "reference": R, "on":
"charges", "captures", "refunds", "lookups" or "all" (without it: whatever moves money), and what FAULTS says about its
answer: "status", "retry_after", "body", "headers", "amount", "charges", "stored". The first rule that matches is used.
With "stored" the fault's answer is kept under the key and replayed; without it the key replays what was done.
"""

import argparse
import json
import os
import socket
import struct
import sys
import threading
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ledger import Ledger, shown

KINDS = {"charges": "charge", "captures": "capture", "refunds": "refund"}

SETTINGS = {
    "key_header": "Idempotency-Key",  # null: it has no keys in headers
    "key_field": None,                # a member of the body that carries the key instead
    "key_required": False,            # without one: 400
    "key_length_max": 255,
    "key_lifetime_seconds": 86400,
    "repeat": "replay",               # or "current": the resource as it is now, as PayPal and Braintree do; or
                                      # "conflict": 409 that names the existing resource, as GoCardless does
    "mismatch_status": 422,           # or 400, with the type idempotency_error, as Stripe does; null: never compared
    "look_alike_seconds": 0,          # an equal charge within this time is refused, as Braintree does; 0: never
    "visible_after_seconds": 0,       # a search shows a charge only so long after it was made
    "visible_after_lookups": 0,       # and only after this many searches for it
    "first_status": "succeeded",
}


@dataclass(frozen=True)
class Fault:
    charges: bool = True       # whether the money moves
    status: int = 0            # what is answered instead of the truth; 0: the truth
    code: str = ""
    retry_after: int | None = None
    hangs: str = ""            # "before" it charges; "after": it is done, the answer is stuck; "working": done, but not
                               # finished, so that a twin finds the key in flight
    ends: str = "answer"       # or "close" without one, "reset", "truncated", "garbage"
    settles_as: str = ""       # the status of the charge, where it is not that of the settings


FAULTS = {
    "error_before": Fault(charges=False, status=500, code="internal"),
    "error_after": Fault(status=500, code="internal"),
    "unavailable": Fault(charges=False, status=503, code="unavailable", retry_after=1),
    "too_many": Fault(charges=False, status=429, code="too_many_requests", retry_after=1),
    "conflict": Fault(charges=False, status=409, code="conflict"),
    "decline": Fault(status=402, code="card_declined", settles_as="failed"),
    "hang_before": Fault(hangs="before"),              # released: charges and answers
    "hang_after": Fault(hangs="after", ends="close"),  # released: the connection ends without an answer
    "late": Fault(hangs="working"),                    # released: answers
    "reset_before": Fault(charges=False, ends="reset"),
    "reset_after": Fault(ends="reset"),
    "close_before": Fault(charges=False, ends="close"),
    "close_after": Fault(ends="close"),
    "truncated": Fault(ends="truncated"),
    "garbage": Fault(ends="garbage"),
    "other_amount": Fault(),                           # charges "amount", or one more than asked
    "answer": Fault(charges=False, status=200),        # "status", "headers" and "body" to the letter
}
RULE_MEMBERS = {"fault", "next", "reference", "on", "status", "retry_after", "body", "headers", "amount", "charges",
                "stored"}


@dataclass
class Answer:
    status: int
    body: object = None                      # JSON, or text as it is
    headers: dict = field(default_factory=dict)
    ends: str = "answer"


class Refused(Exception):
    def __init__(self, status, code, message, **more):
        super().__init__(message)
        self.answer = Answer(status, {"error": {"code": code, "message": message, **more}})


class Rule:
    """One fault that was asked for, and how often it is still to happen."""

    def __init__(self, asked):
        unknown = set(asked) - RULE_MEMBERS
        if unknown or asked.get("fault") not in FAULTS:
            raise Refused(400, "bad_rule", f"no such fault, or members that no rule has: {asked}")
        self.asked = asked
        self.left = asked.get("next")
        self.fault = FAULTS[asked["fault"]]
        self.charges = asked.get("charges", self.fault.charges)

    def matches(self, operation, reference):
        on = self.asked.get("on")
        fits = on in ("all", operation) or (on is None and operation in KINDS)
        return fits and self.asked.get("reference", reference) == reference

    def amount(self, asked):
        if self.asked["fault"] != "other_amount":
            return asked
        return self.asked.get("amount", asked + 1)

    def answer(self):
        """What it says instead of the truth, or None."""
        status = self.asked.get("status", self.fault.status)
        if not status:
            return None
        error = {"error": {"code": self.fault.code, "message": f"asked for: {self.asked['fault']}"}}
        headers = dict(self.asked.get("headers", {}))
        retry_after = self.asked.get("retry_after", self.fault.retry_after)
        if retry_after is not None:
            headers["Retry-After"] = str(retry_after)
        return Answer(status, self.asked.get("body", error), headers)


NO_FAULT = Fault()


class Waiting:
    """The requests that hang, and all that were received: counts that a test can wait for."""

    def __init__(self):
        self._changed = threading.Condition()
        self._hanging = {}
        self._received = []
        self._callers = 0

    def count_callers(self, change):
        with self._changed:
            self._callers += change
            self._changed.notify_all()

    def wait_until_alone(self):
        with self._changed:
            self._changed.wait_for(lambda: self._callers == 1)

    def receive(self, request):
        with self._changed:
            self._received.append(request)
            self._changed.notify_all()

    def hang(self):
        """Returns once released: True to go on, False to drop the connection."""
        ticket = object()
        with self._changed:
            self._hanging[ticket] = None
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._hanging[ticket] is not None)
            decision = self._hanging.pop(ticket)
            self._changed.notify_all()
            return decision

    def release(self, go_on):
        with self._changed:
            for ticket in self._hanging:
                self._hanging[ticket] = go_on
            self._changed.notify_all()
            return len(self._hanging)

    def wait_hanging(self, at_least):
        with self._changed:
            self._changed.wait_for(lambda: self._count() >= at_least)
            return self._count()

    def _count(self):
        return sum(decision is None for decision in self._hanging.values())

    def charged(self):
        with self._changed:
            self._changed.notify_all()

    def wait_ledger(self, ledger, at_least):
        with self._changed:
            self._changed.wait_for(lambda: len(ledger.operations()) >= at_least)
            return ledger.operations()

    def wait_received(self, at_least):
        with self._changed:
            self._changed.wait_for(lambda: len(self._received) >= at_least)
            return list(self._received)

    def reset(self):
        self.release(go_on=False)
        with self._changed:
            self._received.clear()


class Provider:
    """What is answered to whom. It knows nothing of sockets; any thread may call it."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.waiting = Waiting()
        self._lock = threading.Lock()
        self._rules = []
        self._in_flight = {}  # key -> what was asked

    # --- Settings and faults ---

    @property
    def settings(self):
        return SETTINGS | self.ledger.state("settings", {})

    def set_settings(self, changes):
        if unknown := set(changes) - set(SETTINGS):
            raise Refused(400, "bad_setting", f"no such setting: {sorted(unknown)}")
        self.ledger.set_state("settings", self.settings | changes)

    def set_rules(self, asked):
        rules = [Rule(rule) for rule in asked]
        with self._lock:
            self._rules = rules

    def rules(self):
        with self._lock:
            return [rule.asked | ({} if rule.left is None else {"next": rule.left}) for rule in self._rules]

    def _rule(self, operation, reference):
        with self._lock:
            for rule in self._rules:
                if rule.left != 0 and rule.matches(operation, reference):
                    if rule.left is not None:
                        rule.left -= 1
                    return rule
        return None

    # --- What moves money ---

    def operate(self, operation, body, keys):
        """`keys` are the values of the key header. Returns what is to be answered, and how the connection ends."""
        settings = self.settings
        asked = body if isinstance(body, dict) else {}
        key = self._key(settings, asked, keys)
        rule = self._rule(operation, asked.get("reference"))
        fault = rule.fault if rule else NO_FAULT
        instead = rule.answer() if rule else None
        stored = bool(rule and rule.asked.get("stored") and instead)
        if rule and not rule.charges and not stored:
            return self._do_nothing(fault, instead)
        self._check(operation, asked)
        request = json.dumps([operation, asked], sort_keys=True)
        answer = self._claim(settings, key, request)
        try:
            if fault.hangs == "before" and not self.waiting.hang():
                return Answer(0, ends="close")
            if answer is None:
                answer = self._execute(settings, operation, asked, key, request, rule, instead if stored else None)
            if fault.hangs == "working" and not self.waiting.hang():
                return Answer(0, ends="close")
        finally:
            self._let_go(key, request)
        if fault.hangs == "after":
            self.waiting.hang()
        if instead and not fault.settles_as:
            answer = instead
        return Answer(answer.status, answer.body, answer.headers, fault.ends)

    def _do_nothing(self, fault, instead):
        if fault.hangs:
            self.waiting.hang()
            return Answer(0, ends="close")
        return instead or Answer(200, {"note": "nothing was done"}, ends=fault.ends)

    @staticmethod
    def _key(settings, asked, keys):
        if settings["key_field"] is not None:
            keys = [asked[settings["key_field"]]] if settings["key_field"] in asked else []
        elif settings["key_header"] is None:
            return None
        if len(keys) > 1:
            raise Refused(400, "idempotency_key_twice", "more than one idempotency key")
        if not keys and settings["key_required"]:
            raise Refused(400, "idempotency_key_missing", "an idempotency key is required")
        if keys and not 0 < len(keys[0]) <= settings["key_length_max"]:
            raise Refused(400, "idempotency_key_length", "the idempotency key is empty or too long")
        return keys[0] if keys else None

    def _check(self, operation, asked):
        amount = asked.get("amount")
        if type(amount) is not int or amount <= 0:
            raise Refused(400, "bad_amount", "amount must be a positive integer")
        if not all(isinstance(asked.get(name), str) for name in ("currency", "reference")):
            raise Refused(400, "bad_request", "currency and reference must be strings")
        if operation != "charges" and not self.ledger.find(asked.get("charge")):
            raise Refused(404, "charge_not_found", "no such charge")

    def _claim(self, settings, key, request):
        """None where the request is fresh; its key is then in flight until it is let go."""
        if key is None:
            return None
        with self._lock:
            if (first := self._in_flight.get(key)) is not None:
                self._compare(settings, first, request)
                raise Refused(409, "idempotency_key_in_use", "a request with this key is in progress")
            with self.ledger.transaction() as t:
                known = t.key(key, self.ledger.now, settings["key_lifetime_seconds"])
            if known is None:
                self._in_flight[key] = request
                return None
        self._compare(settings, known["request"], request)
        if settings["repeat"] == "conflict" and known["operation"]:
            raise Refused(409, "idempotent_creation_conflict", "a resource was created with this key",
                          conflicting_resource_id=known["operation"])
        if settings["repeat"] == "current" and known["operation"]:
            return Answer(200, shown(self.ledger.find(known["operation"])))
        return Answer(known["status"], json.loads(known["body"]), {"Idempotent-Replayed": "true"})

    def _let_go(self, key, request):
        with self._lock:
            if self._in_flight.get(key) is request:
                del self._in_flight[key]

    @staticmethod
    def _compare(settings, first, request):
        if first == request or settings["mismatch_status"] is None:
            return
        if settings["mismatch_status"] == 400:
            raise Refused(400, "idempotency_key_reused", "the key came with other parameters", type="idempotency_error")
        raise Refused(422, "idempotency_key_reused", "the key came with another body")

    def _execute(self, settings, operation, asked, key, request, rule, stored):
        """Moves the money, unless the rule says that nothing is done, and remembers what a repeat is answered."""
        with self.ledger.transaction() as t:
            now = self.ledger.now
            operation_id = None
            answer = stored
            if rule is None or rule.charges:
                made = self._operation(settings, operation, asked, key, now, rule)
                self._refuse_look_alike(settings, t, made)
                operation_id = t.add(made)
                if answer is None:
                    answer = self._told(made | {"id": operation_id}, rule)
            if key is not None:
                t.remember(key, request, answer.status, json.dumps(answer.body), operation_id, now)
        self.waiting.charged()
        return answer

    @staticmethod
    def _operation(settings, operation, asked, key, now, rule):
        return {
            "kind": KINDS[operation], "charge": asked.get("charge") if operation != "charges" else None,
            "amount": rule.amount(asked["amount"]) if rule else asked["amount"], "currency": asked["currency"],
            "reference": asked["reference"],
            "status": rule.fault.settles_as if rule and rule.fault.settles_as else settings["first_status"],
            "idempotency_key": key, "created": now, "visible_from": now + settings["visible_after_seconds"],
            "lookups_hidden": settings["visible_after_lookups"]}

    @staticmethod
    def _told(operation, rule):
        if operation["status"] != "failed" or rule is None:
            return Answer(201, shown(operation))
        declined = rule.answer()
        return Answer(declined.status, declined.body | {"id": operation["id"]}
                      if isinstance(declined.body, dict) else declined.body)

    @staticmethod
    def _refuse_look_alike(settings, t, made):
        if not settings["look_alike_seconds"]:
            return
        same = t.execute("SELECT id FROM operations WHERE kind = ? AND amount = ? AND currency = ? AND reference = ? "
                         "AND created > ?", made["kind"], made["amount"], made["currency"], made["reference"],
                         made["created"] - settings["look_alike_seconds"]).fetchone()
        if same:
            raise Refused(422, "duplicate_transaction", "an equal charge was made just now")

    # --- Lookups ---

    def look_up(self, operation, operation_id, reference):
        rule = self._rule("lookups", reference)
        if rule and rule.fault.hangs and not self.waiting.hang():
            return Answer(0, ends="close")
        if rule and (instead := rule.answer()):
            return instead
        ends = rule.fault.ends if rule else "answer"
        if operation_id is None:
            found = self.ledger.look_up(KINDS[operation], reference)
            return Answer(200, {"data": [shown(one) for one in found]}, ends=ends)
        found = self.ledger.find(operation_id)
        if found is None or found["kind"] != KINDS[operation]:
            raise Refused(404, "not_found", "no such resource")
        return Answer(200, shown(found), ends=ends)

    def reset(self):
        self.set_rules([])
        self.waiting.reset()
        self.ledger.reset()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, port, provider):
        super().__init__(("127.0.0.1", port), Handler)
        self.provider = provider
        self.to_reset = set()

    def process_request(self, request, client_address):
        """In the thread that accepts: whoever asks to be alone is counted after all who came before it."""
        self.provider.waiting.count_callers(+1)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        """A connection that is to be reset ends with RST, and without the FIN that would look like an end."""
        self.provider.waiting.count_callers(-1)
        if request not in self.to_reset:
            super().shutdown_request(request)
            return
        self.to_reset.discard(request)
        request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_request(request)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a caller that went away is nothing to report
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._serve("GET")

    def do_POST(self):
        self._serve("POST")

    def _serve(self, method):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        parts = [urllib.parse.unquote(part) for part in url.path.strip("/").split("/")]
        try:
            body = self._body()
            answer = (self._admin(method, parts[1:], query, body) if parts[0] == "admin"
                      else self._api(method, parts, query, body))
        except Refused as refused:
            answer = refused.answer
        self._send(answer)

    def _body(self):
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise Refused(411, "length_required", "a body needs a Content-Length")
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get_content_type() == "application/x-www-form-urlencoded":
            form = dict(urllib.parse.parse_qsl(data.decode()))
            return form | {"amount": int(form["amount"])} if form.get("amount", "").isdigit() else form
        try:
            return json.loads(data) if data else {}
        except ValueError:
            raise Refused(400, "bad_json", "the body is not JSON") from None

    def _api(self, method, parts, query, body):
        provider = self.server.provider
        header = provider.settings["key_header"]
        keys = self.headers.get_all(header, []) if header else []
        provider.waiting.receive({"method": method, "path": self.path, "keys": keys, "body": body,
                                  "headers": self.headers.items()})
        if parts[0] not in KINDS or len(parts) > 2:
            raise Refused(404, "not_found", "no such path")
        if method == "POST" and len(parts) == 1:
            return provider.operate(parts[0], body, keys)
        if method == "GET" and (len(parts) == 2 or "reference" in query):
            return provider.look_up(parts[0], parts[1] if len(parts) == 2 else None, query.get("reference"))
        raise Refused(405, "method_not_allowed", "GET with a reference or an id, or POST")

    def _admin(self, method, parts, query, body):
        provider = self.server.provider
        at_least = int(query.get("at_least", 0))
        match (method, *parts):
            case ("POST", "settings"):
                provider.set_settings(body)
            case ("POST", "faults"):
                provider.set_rules(body.get("rules", []))
            case ("POST", "reset"):
                provider.reset()
            case ("POST", "clock"):
                return Answer(200, {"now": provider.ledger.advance(body.get("advance", 0))})
            case ("POST", "status"):
                if not provider.ledger.set_status(body.get("id"), body.get("status")):
                    raise Refused(404, "not_found", "no such charge")
            case ("POST", "release"):
                return Answer(200, {"released": provider.waiting.release(not body.get("drop", False))})
            case ("GET", "settings"):
                return Answer(200, provider.settings)
            case ("GET", "faults"):
                return Answer(200, {"rules": provider.rules()})
            case ("GET", "waiting"):
                return Answer(200, {"waiting": provider.waiting.wait_hanging(at_least)})
            case ("GET", "requests"):
                return Answer(200, {"requests": provider.waiting.wait_received(at_least)})
            case ("GET", "alone"):
                provider.waiting.wait_until_alone()
            case ("GET", "ledger"):
                operations = provider.waiting.wait_ledger(provider.ledger, at_least)
                return Answer(200, {"now": provider.ledger.now, "operations": operations})
            case _:
                raise Refused(404, "not_found", "no such path")
        return Answer(200, {})

    def _send(self, answer):
        if answer.ends in ("close", "reset"):
            self.close_connection = True
            if answer.ends == "reset":
                self.server.to_reset.add(self.connection)
            return
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        if answer.ends == "garbage":
            answer, text = Answer(200), "<html><body>Welcome to the provider</body></html>"
        data = text.encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(data)), **answer.headers}
        if answer.ends == "garbage":
            headers["Content-Type"] = "text/html"
        if answer.ends == "truncated":
            self.close_connection = True
            data = data[:len(data) // 2]
        self.send_response(answer.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self._headers_buffer.append(b"\r\n" + data)
        self.flush_headers()


def stop_with_stdin():
    sys.stdin.read()
    os._exit(0)  # as sudden as a kill; the ledger is made for that


def main():
    parser = argparse.ArgumentParser(description="A payment provider for tests.")
    parser.add_argument("--ledger", required=True, help="the file that outlives the process")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--stop-with-stdin", action="store_true", help="end when standard input does")
    options = parser.parse_args()
    server = Server(options.port, Provider(Ledger(options.ledger)))
    if options.stop_with_stdin:
        threading.Thread(target=stop_with_stdin, daemon=True).start()
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
