"""One statement over many messages, in the shipped program: what one row or one message does to its neighbours."""

import json
import unittest

from harness import Case, on_every_store, run

CONFIG = """
store: {store}
sources:
  events: {{ file: {file} }}
handlers:
  add:
    from: events
    key: /id
    execute_batch: >
      INSERT INTO totals (account, cents) {rows}
      ON CONFLICT (account) DO UPDATE SET cents = totals.cents + excluded.cents
    retry: {{ attempts: 1 }}
"""

ROWS = {"sqlite": "VALUES (:/account, :/cents)",
        "postgres": "SELECT account, cents FROM unnest(:/account::text[], :/cents::bigint[]) AS t(account, cents)"}


class Batch(Case):
    def sum_up(self, database, events):
        """Reads the events from a file; returns the totals and why messages were set aside."""
        database.execute("CREATE TABLE totals (account text PRIMARY KEY, cents bigint NOT NULL)")
        file = self.write("events.jsonl", "".join(json.dumps(event) + "\n" for event in events))
        rows = ROWS[database.name]
        config = self.migrated(self.write("semel.yaml", CONFIG.format(store=database.uri, file=file, rows=rows)))
        code, _, errors = run("run", config)
        self.assertEqual(code, 0, errors)
        return database.execute("SELECT account, cents FROM totals ORDER BY account"), self.dead_letters(config)

    @on_every_store
    def test_one_row_that_several_messages_change_gets_each_of_them_once(self, database):
        events = [{"id": n, "account": "ab"[n % 2], "cents": n} for n in range(1, 9)]
        totals, set_aside = self.sum_up(database, [*events, *events[:4]])
        self.assertEqual(totals, [("a", "20"), ("b", "16")])
        self.assertEqual(set_aside, [])

    @on_every_store
    def test_one_bad_message_costs_its_neighbours_nothing(self, database):
        events = [{"id": n, "account": f"a{n}", "cents": n} for n in range(1, 6)]
        events[2]["cents"] = None
        totals, set_aside = self.sum_up(database, events)
        self.assertEqual(totals, [(f"a{n}", str(n)) for n in (1, 2, 4, 5)])
        self.assertEqual(set_aside, ["exhausted"])


if __name__ == "__main__":
    unittest.main()
