"""The demo's table: what it says is what the README says."""

import json
import unittest

from harness import Case, run


class Demo(Case):
    def test_two_consumers_double_every_payment_and_semel_none(self):
        code, output, errors = run("demo", "--json")
        self.assertEqual(code, 0, errors)
        rows = {(row["consumer"], row["fault"]): row for row in json.loads(output)}
        self.assertEqual(len(rows), 6)
        for (consumer, fault), row in rows.items():
            with self.subTest(consumer=consumer, fault=fault):
                self.assertEqual((row["messages"], row["deliveries"], row["lost"]), (41, 82, 0))
                doubled = 0 if consumer == "semel" else 41
                self.assertEqual((row["effects"], row["duplicates"]), (41 + doubled, doubled))


if __name__ == "__main__":
    unittest.main()
