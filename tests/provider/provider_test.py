#!/usr/bin/env python3
"""The provider of our own, over real sockets: every fault that other tests rely on does what its name says."""

import http.client
import shutil
import signal
import os
import tempfile
import threading
import unittest

from provider_process import ProviderProcess

DAY = 86400


class Asked(threading.Thread):
    """A request that runs by itself; `answer` waits for it."""

    def __init__(self, call):
        super().__init__()
        self.call = call
        self.result = None
        self.start()

    def run(self):
        try:
            self.result = self.call()
        except (OSError, http.client.HTTPException) as broken:
            self.result = broken

    def answer(self):
        self.join()
        return self.result


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="semel-provider-")
        self.addCleanup(shutil.rmtree, folder)
        self.provider = ProviderProcess(folder).start()
        self.addCleanup(self.provider.stop)

    def charge(self, reference="order-1", key=None, amount=1250, path="/charges", header="Idempotency-Key", **more):
        headers = {} if key is None else {header: key}
        body = {"amount": amount, "currency": "EUR", "reference": reference, **more}
        return self.provider.request("POST", path, body, headers)

    def status(self, *arguments, **named):
        return self.charge(*arguments, **named)[0]

    def code(self, *arguments, **named):
        status, _, body = self.charge(*arguments, **named)
        return status, body["error"]["code"]

    def search(self, reference="order-1", path="/charges"):
        return self.provider.request("GET", f"{path}?reference={reference}")[2]["data"]

    def breaks(self, error, *arguments, **named):
        with self.assertRaises(error) as broken:
            self.charge(*arguments, **named)
        return broken.exception

    def assert_charged(self, times, reference="order-1"):
        self.assertEqual(len(self.provider.charges(reference)), times)


class Healthy(Case):
    def test_a_charge_is_made_found_and_in_the_ledger(self):
        status, headers, charge = self.charge(key="k")
        self.assertEqual((status, charge["amount"], charge["currency"], charge["status"]),
                         (201, 1250, "EUR", "succeeded"))
        self.assertNotIn("Idempotent-Replayed", headers)
        self.assertEqual(self.search(), [charge])
        self.assertEqual(self.provider.request("GET", f"/charges/{charge['id']}")[2], charge)
        (row,) = self.provider.ledger()
        self.assertEqual((row["id"], row["idempotency_key"], row["reference"]), (charge["id"], "k", "order-1"))

    def test_captures_and_refunds_follow_the_rules_of_charges(self):
        charge = self.charge()[2]["id"]
        for path, kind in (("/captures", "capture"), ("/refunds", "refund")):
            self.assertEqual(self.status(key=kind, path=path, charge=charge), 201)
            self.assertEqual(self.charge(key=kind, path=path, charge=charge)[1]["Idempotent-Replayed"], "true")
            self.assertEqual([one["charge"] for one in self.search(path=path)], [charge])
            self.assertEqual(self.code(path=path, charge="ch_none"), (404, "charge_not_found"))
        self.assertEqual([one["kind"] for one in self.provider.ledger()], ["charge", "capture", "refund"])

    def test_a_request_that_is_no_charge_is_refused_and_keeps_no_key(self):
        for amount in (0, -1, 1.5, "1250", True, None):
            self.assertEqual(self.code(key="k", amount=amount), (400, "bad_amount"))
        self.assertEqual(self.status(key="k"), 201)

    def test_everything_received_is_kept_with_its_keys(self):
        self.charge(key="k")
        self.search()
        write, lookup = self.provider.wait_until_received(2)
        self.assertEqual((write["keys"], write["body"]["reference"]), (["k"], "order-1"))
        self.assertEqual((lookup["method"], lookup["path"]), ("GET", "/charges?reference=order-1"))

    def test_it_keeps_its_ledger_keys_clock_and_settings_over_a_kill(self):
        self.provider.settings(key_lifetime_seconds=DAY, first_status="pending")
        self.provider.advance(1000)
        charge = self.charge(key="k")[2]
        port = self.provider.port
        self.provider.kill()
        self.provider.start()
        self.assertEqual(self.provider.port, port)
        self.assertEqual(self.charge(key="k")[2], charge)
        self.assertEqual(charge["status"], "pending")
        self.provider.advance(DAY)
        self.assertEqual(self.charge(key="k")[2]["created"], charge["created"] + DAY)
        self.assert_charged(2)

    def test_reset_makes_it_new(self):
        self.charge(key="k")
        self.provider.settings(key_header=None)
        self.provider.faults("decline")
        self.provider.reset()
        self.assertEqual(self.provider.ledger(), [])
        self.assertEqual(self.charge(key="k")[2]["id"], "ch_000001")
        self.assertEqual(self.charge(key="k")[1]["Idempotent-Replayed"], "true")


    def test_a_body_can_be_a_form(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.provider.port)
        connection.request("POST", "/charges", "amount=1250&currency=EUR&reference=order-1",
                           {"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual(connection.getresponse().status, 201)
        connection.close()
        self.assertEqual([one["amount"] for one in self.provider.charges("order-1")], [1250])


class Keys(Case):
    def test_the_same_key_replays_the_first_answer(self):
        first = self.charge(key="k")
        again = self.charge(key="k")
        self.assertEqual((again[0], again[2], again[1]["Idempotent-Replayed"]), (first[0], first[2], "true"))
        self.assert_charged(1)

    def test_members_in_another_order_are_the_same_request(self):
        self.charge(key="k", note="a")
        body = {"note": "a", "reference": "order-1", "currency": "EUR", "amount": 1250}
        self.assertEqual(self.provider.request("POST", "/charges", body, {"Idempotency-Key": "k"})[0], 201)
        self.assert_charged(1)

    def test_a_key_is_forgotten_when_it_is_old(self):
        self.charge(key="k")
        self.provider.advance(DAY - 1)
        self.charge(key="k")
        self.assert_charged(1)
        self.provider.advance(1)
        self.charge(key="k")
        self.assert_charged(2)

    def test_the_header_can_have_another_name(self):
        self.provider.settings(key_header="PayPal-Request-Id")
        self.charge(key="k", header="PayPal-Request-Id")
        self.charge(key="k", header="PayPal-Request-Id")
        self.assert_charged(1)
        self.charge(key="k")
        self.assert_charged(2)

    def test_the_key_can_be_a_member_of_the_body(self):
        self.provider.settings(key_field="idempotency_key")
        self.charge(idempotency_key="k")
        self.charge(idempotency_key="k")
        self.assert_charged(1)

    def test_without_keys_every_request_charges(self):
        self.provider.settings(key_header=None)
        self.charge(key="k")
        self.charge(key="k")
        self.assert_charged(2)

    def test_another_body_is_refused(self):
        self.charge(key="k")
        self.assertEqual(self.code(key="k", amount=99), (422, "idempotency_key_reused"))
        self.provider.settings(mismatch_status=400)
        status, _, body = self.charge(key="k", amount=99)
        self.assertEqual((status, body["error"]["type"]), (400, "idempotency_error"))
        self.assert_charged(1)

    def test_a_key_that_is_missing_or_too_long_or_there_twice_is_refused(self):
        self.provider.settings(key_required=True, key_length_max=4)
        self.assertEqual(self.code(), (400, "idempotency_key_missing"))
        self.assertEqual(self.code(key="12345"), (400, "idempotency_key_length"))
        connection = http.client.HTTPConnection("127.0.0.1", self.provider.port)
        connection.putrequest("POST", "/charges")
        connection.putheader("Idempotency-Key", "a")
        connection.putheader("Idempotency-Key", "b")
        connection.putheader("Content-Length", "0")
        connection.endheaders()
        self.assertIn(b"idempotency_key_twice", connection.getresponse().read())
        connection.close()

    def test_a_twin_of_a_request_in_flight_is_told_so(self):
        self.provider.faults({"fault": "hang_before", "next": 1})
        first = Asked(lambda: self.charge(key="k"))
        self.provider.wait_until_waiting(1)
        self.assertEqual(self.code(key="k"), (409, "idempotency_key_in_use"))
        self.assertEqual(self.code(key="k", amount=99), (422, "idempotency_key_reused"))
        self.assertEqual(self.status("order-2", key="other"), 201)
        self.provider.release()
        self.assertEqual(first.answer()[0], 201)
        self.assertEqual(self.charge(key="k")[2], first.answer()[2])
        self.assert_charged(1)

    def test_many_twins_at_once_charge_once(self):
        together = threading.Barrier(20)

        def one():
            together.wait()
            return self.status(key="k")

        statuses = {asked.answer() for asked in [Asked(one) for _ in range(20)]}
        self.assertLessEqual(statuses, {201, 409})
        self.assertIn(201, statuses)
        self.assert_charged(1)

    def test_a_repeat_can_name_what_is_there_even_where_that_failed(self):
        self.provider.settings(repeat="conflict")
        self.provider.faults({"fault": "decline", "next": 1})
        self.charge(key="k")
        status, _, body = self.charge(key="k")
        self.assertEqual((status, body["error"]["code"]), (409, "idempotent_creation_conflict"))
        there = self.provider.request("GET", "/charges/" + body["error"]["conflicting_resource_id"])[2]
        self.assertEqual(there["status"], "failed")

    def test_a_repeat_can_show_what_became_of_the_first(self):
        self.provider.settings(repeat="current", first_status="pending")
        charge = self.charge(key="k")[2]["id"]
        self.provider.set_status(charge, "failed")
        status, _, body = self.charge(key="k")
        self.assertEqual((status, body["id"], body["status"]), (200, charge, "failed"))

    def test_a_key_that_is_never_compared_names_what_has_another_amount(self):
        self.provider.settings(repeat="conflict", mismatch_status=None)
        charge = self.charge(key="k")[2]["id"]
        status, _, body = self.charge(key="k", amount=99)
        self.assertEqual((status, body["error"]["conflicting_resource_id"]), (409, charge))
        self.assert_charged(1)

    def test_a_look_alike_is_refused_for_a_time(self):
        self.provider.settings(key_header=None, look_alike_seconds=30)
        self.charge()
        self.assertEqual(self.code(), (422, "duplicate_transaction"))
        self.assertEqual(self.status(amount=99), 201)
        self.provider.advance(30)
        self.assertEqual(self.status(), 201)


class Lookups(Case):
    def test_a_search_shows_a_charge_only_after_the_delay(self):
        self.provider.settings(visible_after_seconds=60)
        charge = self.charge()[2]
        self.provider.advance(59)
        self.assertEqual(self.search(), [])
        self.assertEqual(self.provider.request("GET", f"/charges/{charge['id']}")[0], 200)
        self.provider.advance(1)
        self.assertEqual(self.search(), [charge])

    def test_a_search_shows_a_charge_only_after_some_searches(self):
        self.provider.settings(visible_after_lookups=2)
        charge = self.charge()[2]
        self.assertEqual([self.search() for _ in range(3)], [[], [], [charge]])

    def test_a_charge_can_settle_later(self):
        self.provider.settings(first_status="pending")
        charge = self.charge()[2]["id"]
        self.provider.set_status(charge, "failed")
        self.assertEqual(self.search()[0]["status"], "failed")
        self.assert_charged(0)

    def test_lookups_fail_only_where_they_are_named(self):
        self.charge()
        self.provider.faults("unavailable")
        self.assertEqual(len(self.search()), 1)
        self.provider.faults({"fault": "unavailable", "on": "lookups", "next": 1})
        self.assertEqual(self.provider.request("GET", "/charges?reference=order-1")[0], 503)
        self.assertEqual(len(self.search()), 1)

    def test_a_lookup_can_hang_and_break(self):
        self.provider.faults({"fault": "hang_before", "on": "lookups"})
        asked = Asked(self.search)
        self.provider.wait_until_waiting(1)
        self.provider.release()
        self.assertEqual(asked.answer(), [])
        self.provider.faults({"fault": "reset_after", "on": "lookups"})
        self.assertRaises(ConnectionResetError, self.search)


class Faults(Case):
    """Each case: what the first request sees, how often it charged, and what a repeat with the same key then does."""

    def test_answers_instead_of_the_truth(self):
        cases = {  # fault: (status, Retry-After, charged by then)
            "error_before": (500, None, 0), "error_after": (500, None, 1), "unavailable": (503, "1", 0),
            "too_many": (429, "1", 0), "conflict": (409, None, 0)}
        for fault, (status, retry_after, charged) in cases.items():
            with self.subTest(fault=fault):
                self.provider.faults({"fault": fault, "next": 1})
                answer = self.charge(fault, key=fault)
                self.assertEqual((answer[0], answer[1].get("Retry-After")), (status, retry_after))
                self.assert_charged(charged, fault)
                self.assertEqual(self.status(fault, key=fault), 201)
                self.assert_charged(1, fault)

    def test_a_stored_error_is_replayed(self):
        for fault, charged in (("error_before", 0), ("error_after", 1)):
            self.provider.faults({"fault": fault, "next": 1, "stored": True})
            self.assertEqual([self.status(fault, key=fault) for _ in range(2)], [500, 500])
            self.assert_charged(charged, fault)

    def test_a_decline_is_an_answer_and_is_replayed(self):
        self.provider.faults({"fault": "decline", "next": 1})
        status, _, body = self.charge(key="k")
        self.assertEqual((status, body["error"]["code"]), (402, "card_declined"))
        self.assertEqual(self.charge(key="k")[2], body)
        self.assertEqual([one["status"] for one in self.search()], ["failed"])
        self.assert_charged(0)

    def test_connections_that_break(self):
        cases = {"reset_before": (ConnectionResetError, 0), "reset_after": (ConnectionResetError, 1),
                 "close_before": (http.client.RemoteDisconnected, 0),
                 "close_after": (http.client.RemoteDisconnected, 1), "truncated": (http.client.IncompleteRead, 1)}
        for fault, (error, charged) in cases.items():
            with self.subTest(fault=fault):
                self.provider.faults({"fault": fault, "next": 1})
                self.assertIs(type(self.breaks(error, fault, key=fault)), error)
                self.assert_charged(charged, fault)
                self.assertEqual(self.status(fault, key=fault), 201)
                self.assert_charged(1, fault)

    def test_garbage_is_a_200_that_is_no_json(self):
        self.provider.faults({"fault": "garbage", "next": 1})
        self.breaks(ValueError, key="k")
        self.assert_charged(1)

    def test_another_amount_is_charged(self):
        self.provider.faults({"fault": "other_amount", "next": 1}, {"fault": "other_amount", "amount": 7, "next": 1})
        self.assertEqual([self.charge(reference)[2]["amount"] for reference in "abc"], [1251, 7, 1250])

    def test_hanging_before_it_charges_and_going_on_when_the_caller_has_left(self):
        self.provider.faults("hang_before")
        connection = http.client.HTTPConnection("127.0.0.1", self.provider.port)
        connection.request("POST", "/charges", '{"amount": 1, "currency": "EUR", "reference": "order-1"}')
        self.provider.wait_until_waiting(1)
        connection.close()
        self.assert_charged(0)
        self.assertEqual(self.provider.release(), 1)
        self.assertEqual(len(self.provider.ledger(at_least=1)), 1)

    def test_nobody_calls_once_what_a_caller_that_left_had_sent_is_done(self):
        self.provider.faults("hang_before")
        connection = http.client.HTTPConnection("127.0.0.1", self.provider.port)
        connection.request("POST", "/charges", '{"amount": 1, "currency": "EUR", "reference": "order-1"}')
        connection.close()
        asked = Asked(self.provider.wait_until_nobody_calls)
        self.provider.wait_until_waiting(1)
        self.assertTrue(asked.is_alive())
        self.provider.release()
        asked.answer()
        self.assert_charged(1)

    def test_hanging_before_it_charges_and_dropped(self):
        self.provider.faults({"fault": "hang_before", "next": 1})
        asked = Asked(lambda: self.charge(key="k"))
        self.provider.wait_until_waiting(1)
        self.provider.release(drop=True)
        self.assertIsInstance(asked.answer(), http.client.RemoteDisconnected)
        self.assert_charged(0)
        self.assertEqual(self.status(key="k"), 201)

    def test_hanging_after_it_charged_frees_the_key_and_never_answers(self):
        self.provider.faults({"fault": "hang_after", "next": 1})
        asked = Asked(lambda: self.charge(key="k"))
        self.provider.wait_until_waiting(1)
        self.assert_charged(1)
        self.assertEqual(self.status(key="k"), 201)
        self.provider.release()
        self.assertIsInstance(asked.answer(), http.client.RemoteDisconnected)
        self.assert_charged(1)

    def test_a_late_answer_keeps_its_key_in_flight(self):
        self.provider.faults({"fault": "late", "next": 1})
        asked = Asked(lambda: self.charge(key="k"))
        self.provider.wait_until_waiting(1)
        self.assert_charged(1)
        self.assertEqual(self.code(key="k"), (409, "idempotency_key_in_use"))
        self.provider.release()
        self.assertEqual(asked.answer()[0], 201)
        self.assertEqual(self.status(key="k"), 201)
        self.assert_charged(1)

    def test_killed_while_it_hangs(self):
        for fault, charged in (("hang_before", 0), ("late", 1)):
            with self.subTest(fault=fault):
                self.provider.faults(fault)
                asked = Asked(lambda: self.charge(fault, key=fault))
                self.provider.wait_until_waiting(1)
                self.provider.kill()
                self.assertIsInstance(asked.answer(), (OSError, http.client.HTTPException))
                self.provider.start()
                self.assert_charged(charged, fault)
                self.assertEqual(self.status(fault, key=fault), 201)
                self.assert_charged(1, fault)

    def test_an_answer_to_the_letter(self):
        self.provider.faults({"fault": "answer", "status": 422, "headers": {"X-Reason": "a"},
                              "body": {"name": "UNPROCESSABLE_ENTITY"}})
        status, headers, body = self.charge()
        self.assertEqual((status, headers["X-Reason"], body), (422, "a", {"name": "UNPROCESSABLE_ENTITY"}))
        self.assert_charged(0)
        self.provider.faults({"fault": "answer", "status": 504, "charges": True})
        self.assertEqual(self.status(), 504)
        self.assert_charged(1)


class Rules(Case):
    def test_the_first_that_matches_is_used_until_it_is_used_up(self):
        self.provider.faults({"fault": "too_many", "next": 2}, {"fault": "unavailable", "next": 1})
        self.assertEqual([self.status() for _ in range(4)], [429, 429, 503, 201])

    def test_a_rule_can_name_a_reference_and_an_operation(self):
        self.provider.faults({"fault": "too_many", "reference": "bad"}, {"fault": "unavailable", "on": "refunds"})
        charge = self.charge("good")[2]["id"]
        self.assertEqual(self.status("bad"), 429)
        self.assertEqual(self.status("good", path="/refunds", charge=charge), 503)

    def test_what_it_does_not_know_is_refused(self):
        for rule in ({"fault": "of_the_moon"}, {"fault": "decline", "nxet": 1}, {}):
            with self.assertRaises(AssertionError):
                self.provider.faults(rule)
        with self.assertRaises(AssertionError):
            self.provider.settings(key_lifetime_hours=1)

    def test_it_says_which_faults_are_left(self):
        self.provider.faults({"fault": "too_many", "next": 2})
        self.status()
        self.assertEqual(self.provider.faults_left(), [{"fault": "too_many", "next": 1}])

    def test_it_ends_with_its_standard_input(self):
        process = self.provider._process
        process.stdin.close()
        self.assertEqual(process.wait(), 0)

    def test_sigterm_ends_it(self):
        process = self.provider._process
        os.kill(self.provider.pid, signal.SIGTERM)
        self.assertEqual(process.wait(), -signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
