"""The guides, run as they are written: every shell block in order, every configuration checked. Only the ports are
others, and where a guide waits for a lease to run out, it has run out."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from harness import PROGRAM, Case, free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LEASE_IS_OVER = 'sqlite3 shop.db "UPDATE semel_intents SET due_at = 0 WHERE state = 2"'
UNTIL_SETTLED = "until order o-4 | grep '^HTTP/1.1 201'; do :; done"


def blocks(guide, language):
    """The code blocks of one language, in order."""
    text = (ROOT / "docs/guides" / f"{guide}.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)


def statuses(output):
    return re.findall(r"^HTTP/1\.1 (\d+)", output, re.M)


class Guide(Case):
    def setUp(self):
        super().setUp()
        self.ports = {port: str(free_port()) for port in ("8080", "9100", "3000")}
        (self.folder / "bin").mkdir()
        (self.folder / "bin/semel").symlink_to(pathlib.Path(PROGRAM).resolve())
        shutil.copytree(ROOT / "examples/charge_card", self.folder / "examples/charge_card")
        shutil.copytree(ROOT / "tests/provider", self.folder / "tests/provider",
                        ignore=shutil.ignore_patterns("__pycache__"))

    def here(self, text):
        """With ports of our own."""
        for port, other in self.ports.items():
            text = re.sub(rf"(127\.0\.0\.1:|--port |1\", ){port}\b", rf"\g<1>{other}", text)
        return text

    def shell(self, *scripts, folder="."):
        """What they print, on both outputs. What they leave running is ended with them."""
        script = "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n" + self.here("\n".join(scripts))
        env = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "BANK_KEY": "sk_practice"}
        done = subprocess.run(["bash", "-c", script], cwd=self.folder / folder, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.stdout

    def shop(self):
        """The shop's configuration, with our ports."""
        config = self.folder / "examples/charge_card/semel.yaml"
        config.write_text(self.here(config.read_text()))
        return config


class ChargeACard(Guide):
    def test_it_goes_as_the_guide_says(self):
        self.shop()
        setting_up, twice, lost, declined, killed = blocks("charge-a-card", "sh")
        self.assertIn("sleep 16; order o-4 ", killed)
        killed = killed.replace("sleep 16; order o-4 ", f"{LEASE_IS_OVER}; {UNTIL_SETTLED} ")
        output = self.shell(setting_up, twice, lost, declined, killed)
        self.assertIn("ready to run", output)
        self.assertNotIn("warning", output)
        self.assertEqual(statuses(output), ["201", "201", "201", "402", "402", "409", "201"], output)
        self.assertEqual(output.count('201 Created'), 4, output)
        self.assertEqual(output.count('{"order":"o-1","charge":"ch_000001"}'), 2)
        charges, = re.findall(r'^(\{"data".*)$', output, re.M)
        self.assertEqual(len(json.loads(charges)["data"]), 1)

    def test_a_chain_is_undone_as_the_guide_says(self):
        config = self.shop()
        _, chain = blocks("charge-a-card", "yaml")
        before, _, _ = config.read_text().partition("handlers:")
        config.write_text(before + self.here(chain))
        setting_up, _, _, _, _ = blocks("charge-a-card", "sh")
        order, faults = (re.search(rf"^{name}\(\) .*$", "\n".join(blocks("charge-a-card", "sh")), re.M)[0]
                         for name in ("order", "faults"))
        output = self.shell(setting_up, order, faults, """faults '{"fault":"decline","on":"captures","next":1}'
order o-9
order o-8
semel intents semel.yaml list""")
        self.assertIn("ready to run", output)
        self.assertEqual(statuses(output), ["409", "201"], output)
        self.assertIn('{"order":"o-9","refunding":true}', output)
        for effect in ("charge", "ship", "refund"):
            self.assertRegex(output, rf" {effect} +bank +sell +o-9 ")


class Gateway(Guide):
    def test_it_goes_as_the_guide_says(self):
        whole, = blocks("gateway", "sh")
        output = self.shell(whole)
        self.assertEqual(statuses(output), ["201", "201"], output)
        self.assertEqual((output.count('{"payment": 1}'), output.count("Idempotent-Replayed: true")), (2, 1), output)

    def test_a_service_that_takes_keys_is_asked_again(self):
        whole, = blocks("gateway", "sh")
        remembering, = blocks("gateway", "yaml")
        plain = re.search(r"<<'EOF'\n(store:.*?)EOF\n", whole, re.S)[1]
        failing = whole.replace("send_response(201)", "send_response(500 if done == 1 else 201)")
        output = self.shell(
            failing.replace(plain, remembering).replace("semel run", "semel check semel.yaml\nsemel run"))
        self.assertIn("payments-service remembers the key for 1d", output)
        self.assertNotIn("warning", output)
        self.assertEqual(statuses(output), ["201", "201"], output)
        self.assertEqual((output.count('{"payment": 2}'), output.count("Idempotent-Replayed: true")), (2, 1), output)


class Prove(Guide):
    def test_it_goes_as_the_guide_says(self):
        whole, = blocks("prove", "sh")
        output = self.shell(whole)
        self.assertRegex(output, r"repeat +1 +1 +1 +same +held")
        self.assertRegex(output, r'changed +- +- +- +- +not tried: needs "changed"')
        self.assertIn("exit code 1", output)
        self.assertIn("  1. 2 clients at once:", output)
        self.assertIn("  Looking first and writing then leaves a gap", output)


class AmbiguousIntent(Guide):
    def test_it_goes_as_the_guide_says(self):
        config = self.shop()
        config.write_text(re.sub(r"^providers:.*?^handlers:", "providers:\n  bank: {}\nhandlers:", config.read_text(),
                                 flags=re.S | re.M))
        said = re.findall(r"^\$ (.*)$", (ROOT / "docs/guides/ambiguous-intent.md").read_text(), re.M)
        listing, showing, asking, resolving = said
        setting_up, *_ = blocks("charge-a-card", "sh")
        order, faults = (re.search(rf"^{name}\(\) .*$", "\n".join(blocks("charge-a-card", "sh")), re.M)[0]
                         for name in ("order", "faults"))
        ours = "$(semel intents semel.yaml list --waiting --json | sed 's/.*\"id\":\"\\([0-9a-f]*\\)\".*/\\1/')"
        output = self.shell(setting_up, order, faults, "faults '{\"fault\":\"reset_after\",\"next\":1}'", "order o-21",
                            listing, f"id={ours}", showing.replace("dfda57", "$id"), asking,
                            resolving.replace("dfda57", "$id").replace("ch_000007", "ch_000001"),
                            "until order o-21 | tee last | grep -q '^HTTP/1.1 201'; do :; done; cat last",
                            "semel intents semel.yaml list --waiting; echo then $?")
        self.assertEqual(statuses(output), ["409", "201"], output)
        self.assertIn("\n4\n", output, "the exit code of the list")
        self.assertRegex(output, r"reference +o-21\n")
        self.assertIn("succeeded: `semel run` writes what follows", output)
        self.assertIn('{"order":"o-21","charge":"ch_000001"}', output)
        self.assertIn("then 0", output)


class Configurations(Guide):
    def test_every_whole_configuration_of_the_guides_is_one(self):
        """Those that do not stand alone are part of one that a test above has run."""
        alone = [block for guide in ("charge-a-card", "gateway", "ambiguous-intent")
                 for block in blocks(guide, "yaml") if re.search(r"^store:", block, re.M)]
        self.assertEqual(len(alone), 2)
        for block in alone:
            output = self.shell("sqlite3 shop.db < shop.sql", f"cat > it.yaml <<'EOF'\n{block}EOF",
                                "semel migrate it.yaml", "semel check it.yaml; echo then $?; rm -f shop.db",
                                folder="examples/charge_card")
            self.assertIn("then 0", output, output)


if __name__ == "__main__":
    unittest.main()
