#!/usr/bin/env python3
"""Searches the models of the protocol, every state of them, for a broken promise; then each model with a bug planted,
which must be found. docs/proof.md explains it.

    model/check.py                all of it; fails also where docs/proof.md says otherwise
    model/check.py --write-docs   writes the tables in docs/proof.md
    model/check.py --trail BUG    how a planted bug breaks its promise, step by step
    model/check.py --list         what there is

Needs spin and gcc. Runs two searches at a time, each within MEMORY_MIB.
"""

import argparse
import concurrent.futures
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROOF = HERE.parent / "docs" / "proof.md"
PARALLEL = 2
MEMORY_MIB = 1900
DEPTH_MAX = 1_000_000
SEARCH_SECONDS_MAX = 600

ONE, TWO, THREE, FOUR = "at most one effect", "nothing is lost", "the first answer", "no guessing"


@dataclass(frozen=True)
class Model:
    title: str
    file: str
    defines: tuple = ()


@dataclass(frozen=True)
class Bug:
    name: str     # without BUG_
    model: str    # a title of MODELS
    promise: str
    what: str
    prefix: str = "BUG_"

    @property
    def switch(self):
        return self.prefix + self.name


MODELS = (
    Model("messages", "claim.pml"),
    Model("call, idempotent", "intent.pml", ("POLICY=IDEMPOTENT",)),
    Model("call, lookup", "intent.pml", ("POLICY=LOOKUP",)),
    Model("call, neither", "intent.pml", ("POLICY=NEITHER",)),
    Model("call, idempotent and lookup", "intent.pml", ("POLICY=IDEMPOTENT_AND_LOOKUP", "STALLS=1")),
    Model("publications", "outbox.pml"),
)

BUGS = (
    Bug("ACKNOWLEDGED_BEFORE_THE_COMMIT", "messages", TWO, "the source is told before the commit is confirmed"),
    Bug("CLAIM_IN_ITS_OWN_TRANSACTION", "messages", TWO, "the record commits first, the effect in another one"),
    Bug("NO_UNIQUE_INDEX", "messages", ONE, "\"no record found\" is taken for \"free to commit\""),
    Bug("LOST_REPLY_TAKEN_FOR_A_FAILURE", "messages", ONE, "a commit whose reply is lost is repeated without a claim"),
    Bug("GUARD_IN_MEMORY", "messages", ONE, "what was done is remembered by the process"),
    Bug("FINGERPRINT_SKIPPED", "messages", TWO, "whoever has a known key is a replay, whatever it says"),
    Bug("ANSWER_NOT_STORED", "messages", THREE, "the record is kept without its answer"),
    Bug("RECORD_PURGED_EARLY", "messages", ONE, "a record goes while its message can still come"),
    Bug("NO_ATTEMPT_TOKEN", "call, lookup", ONE, "a report is booked whichever attempt it is of"),
    Bug("LEASE_JUDGED_BY_THE_LOCAL_CLOCK", "call, neither", ONE, "who takes over asks its own clock, which is ahead"),
    Bug("LEASE_NOT_LOOKED_AT_BEFORE_THE_CALL", "call, lookup", ONE, "who wakes past its lease calls all the same"),
    Bug("RENEWED_BEFORE_THE_CALL", "call, lookup", ONE, "a lease is renewed for a call that has not gone out"),
    Bug("CALLED_BEFORE_THE_START_IS_DURABLE", "call, neither", ONE, "the call goes out before its start is committed"),
    Bug("UNKNOWN_RETRIED_UNDER_NEITHER", "call, neither", ONE, "a call is repeated though nothing makes that safe"),
    Bug("A_NEW_KEY_FOR_EACH_ATTEMPT", "call, idempotent", ONE, "the provider's key is made anew for each attempt"),
    Bug("REPEATED_PAST_THE_KEYS_LIFETIME", "call, idempotent", ONE, "a call is repeated when its key may be forgotten"),
    Bug("LOOKED_UP_TOO_EARLY", "call, lookup", ONE, "\"not found\" is believed before the visibility delay"),
    Bug("LOOKUP_JUDGED_WHEN_IT_ARRIVES", "call, lookup", ONE,
        "\"not found\" is believed by the time at which it is booked, not at which it was asked"),
    Bug("DOUBT_DATED_BY_THE_FIRST_ATTEMPT", "call, idempotent and lookup", ONE,
        "the visibility delay counts from the first attempt in doubt, not from the last"),
    Bug("SETTLE_STEP_IN_ITS_OWN_TRANSACTION", "call, idempotent", ONE, "settle step and outcome commit apart"),
    Bug("LATE_OUTCOME_DROPPED", "call, neither", FOUR, "what an attempt says past its lease is thrown away"),
    Bug("UNFINISHED_INTENT_PURGED", "call, neither", FOUR, "an intent without an outcome expires"),
    Bug("FOUND_BY_A_CURSOR", "publications", TWO, "publications are found by \"number above the last one\""),
    Bug("TAKEN_OUT_BEFORE_IT_IS_CONFIRMED", "publications", TWO, "a publication leaves when it is sent"),
    Bug("LEASE_NEVER_ENDS", "publications", TWO, "what a dead relay had taken stays taken"),
    Bug("UNSENT_PUBLICATION_PURGED", "publications", TWO, "a record goes, and an unsent publication with it"),
    Bug("LEASED_PREDECESSOR_SKIPPED", "publications", "order", "a leased predecessor does not hold back what follows"),
    Bug("GOES_ON_BEHIND_A_FAILURE", "publications", "order", "what is behind a failed send is sent all the same"),
)

LIMITS = (
    Bug("KEY_FORGOTTEN_SOONER", "call, idempotent", ONE, "the provider forgets a key sooner than stated", "LIMIT_"),
    Bug("SHOWN_LATER", "call, lookup", ONE, "the provider shows a charge later than stated", "LIMIT_"),
    Bug("CALL_ARRIVES_ANY_TIME", "call, lookup", ONE,
        "a call arrives later than margin and visibility delay allow for", "LIMIT_"),
    Bug("OPERATOR_IS_WRONG", "call, neither", ONE, "an operator says \"it did not happen\", and it did", "LIMIT_"),
)


class Failed(Exception):
    pass


def command(arguments, folder, seconds=SEARCH_SECONDS_MAX):
    try:
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False,
                              stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Failed(f"{arguments[0]} is not installed; script/bootstrap brings it") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{arguments[0]}: not done after {seconds} s") from None
    if done.returncode != 0:
        raise Failed(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


@dataclass
class Searched:
    """What the verifier says of one search."""
    text: str
    seconds: float
    narration: str = ""

    def number(self, pattern):
        found = re.search(pattern, self.text)
        if not found:
            raise Failed(f"the verifier does not say {pattern!r}:\n{self.text}")
        return float(found[1])

    @property
    def states(self):
        return int(self.number(r"([\d.e+]+) states, stored"))

    @property
    def transitions(self):
        return int(self.number(r"([\d.e+]+) transitions"))

    @property
    def depth(self):
        return int(self.number(r"depth reached (\d+)"))

    @property
    def errors(self):
        return int(self.number(r"errors: (\d+)"))

    @property
    def memory_mib(self):
        return self.number(r"([\d.]+)\s+total actual memory usage")

    @property
    def error(self):
        found = re.search(r"pan:\d+: (.*) \(at depth (\d+)\)", self.text)
        return (found[1], int(found[2])) if found else None

    def check_exhaustive(self):
        """Every state was seen: the verifier says so where not, in these words."""
        if not re.search(r"Full statespace search for:", self.text):
            raise Failed(f"not a full search:\n{self.text}")
        for words in ("max search depth too small", "Search not completed", "MEMLIM bound", "out of memory",
                      "resource limit", "hash array", "truncated", "Bit statespace"):
            if words in self.text:
                raise Failed(f"the search was not exhaustive: {words}\n{self.text}")


# Compiled for what is looked for: broken assertions and deadlocks; cycles; or the shortest way to an error.
COMPILED = {"promises": ("-DSAFETY",), "rest": ("-DNP", "-DNOFAIR"), "bug": ("-O1", "-DSAFETY", "-DBFS")}


def search(model, looking_for, more=()):
    defines = [f"-D{one}" for one in (*model.defines, *more)]
    with tempfile.TemporaryDirectory(prefix="semel-model-") as folder:
        path = Path(folder, model.file)
        path.write_text((HERE / model.file).read_text(encoding="utf-8"), encoding="utf-8")
        command(["spin", "-a", *defines, model.file], folder)
        command(["gcc", "-w", "-O2", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MIB}", *COMPILED[looking_for], "-o", "pan",
                 "pan.c"], folder)
        start = time.monotonic()
        text = command(["./pan", "-n", f"-m{DEPTH_MAX}", *(["-l"] if looking_for == "rest" else [])], folder)
        searched = Searched(text, time.monotonic() - start)
        if Path(folder, model.file + ".trail").exists():
            replayed = command(["spin", "-t", "-T", *defines, model.file], folder)
            searched.narration = "".join(f"{line}\n" for line in replayed.splitlines() if is_narration(line))
        return searched


def is_narration(line):
    return not re.match(r"\s|\d+:|#|spin: |\d+ process|ltl|MSC|starting claim", line)


def model_of(title):
    return next(one for one in MODELS if one.title == title)


def all_searches(jobs):
    """What each job finds, in order, two at a time."""
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as threads:
        yield from threads.map(lambda job: search(*job), jobs)


def check_models():
    """The rows of the table of models."""
    print(f"{'model':<30}{'looked for':<12}{'states':>12}{'transitions':>13}{'depth':>7}{'MiB':>7}{'seconds':>9}")
    jobs = [(model, looking_for) for looking_for in ("promises", "rest") for model in MODELS]
    rows = []
    for (model, looking_for), found in zip(jobs, all_searches(jobs)):
        if found.errors:
            raise Failed(f"{model.title}: {found.error[0] if found.error else 'an error'}\n{found.narration}")
        found.check_exhaustive()
        print(f"{model.title:<30}{looking_for:<12}{found.states:>12,}{found.transitions:>13,}{found.depth:>7}"
              f"{found.memory_mib:>7.0f}{found.seconds:>9.1f}", flush=True)
        rows.append((model.title, looking_for, f"{found.states:,}", f"{found.transitions:,}", str(found.depth)))
    return rows


def check_bugs(bugs):
    """The rows of the table of planted bugs, or of limits."""
    jobs = [(model_of(bug.model), "bug", (bug.switch,)) for bug in bugs]
    rows = []
    for bug, found in zip(bugs, all_searches(jobs)):
        if not found.error:
            raise Failed(f"{bug.switch}: NOT FOUND in \"{bug.model}\"; it is blind for it now\n{found.text}")
        steps = found.error[1]
        print(f"{bug.switch:<46}{bug.promise:<20}{steps:>4} steps{found.states:>10,} states", flush=True)
        rows.append((f"`{bug.switch}`", bug.what, bug.model, bug.promise, str(steps)))
    return rows


def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "".join(line + "\n" for line in lines + ["| " + " | ".join(row) + " |" for row in rows])


def parts():
    """Everything is searched: the tables by their name in docs/proof.md."""
    check_switches()
    models = check_models()
    print(f"\n{'planted bug':<46}{'breaks':<20}{'trail':>10}")
    titles = ("switch", "what it does", "model", "breaks", "steps")
    bugs = check_bugs(BUGS)
    print(f"\n{'what it rests on, taken away':<46}{'breaks':<20}{'trail':>10}")
    limits = check_bugs(LIMITS)
    return {"the searches": table(("model", "looked for", "states", "transitions", "depth"), models),
            "the planted bugs": table(titles, bugs), "the limits": table(titles, limits)}


def check_switches():
    """Every switch in a model is looked for, and every one that is looked for is there."""
    switches = {name for file in HERE.glob("*.pml")
                for name in re.findall(r"\b(?:BUG|LIMIT)_[A-Z_]+", file.read_text(encoding="utf-8"))}
    listed = {bug.switch for bug in (*BUGS, *LIMITS)}
    if switches - listed - {"BUG_", "LIMIT_"} or listed - switches:
        raise Failed(f"in one place only: {sorted(switches ^ listed)}")


def compare(tables, write):
    text = written = PROOF.read_text(encoding="utf-8")
    for name, content in tables.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, mark, rest = written.partition(begin)
        _, second, after = rest.partition(end)
        if not mark or not second:
            raise Failed(f"docs/proof.md has no marks for {name}")
        written = f"{before}{begin}\n{content}\n{end}{after}"
    if write:
        PROOF.write_text(written, encoding="utf-8")
    elif written != text:
        raise Failed("docs/proof.md says otherwise; look why, then: model/check.py --write-docs")


def trail(name):
    for bug in (*BUGS, *LIMITS):
        if name in (bug.name, bug.switch):
            found = search(model_of(bug.model), "bug", (bug.switch,))
            if not found.error:
                raise Failed(f"{bug.switch}: not found")
            print(f"{bug.switch}: {bug.what}\nbreaks: {bug.promise}\n\n{found.narration}\n{found.error[0]}")
            return
    raise Failed(f"no bug is named {name}; see --list")


def main():
    arguments = argparse.ArgumentParser(description="Checks the models of the protocol.")
    arguments.add_argument("--trail", metavar="BUG")
    arguments.add_argument("--write-docs", action="store_true")
    arguments.add_argument("--list", action="store_true")
    asked = arguments.parse_args()
    start = time.monotonic()
    try:
        if asked.list:
            for bug in (*BUGS, *LIMITS):
                print(f"{bug.switch:<46}{bug.model:<30}{bug.what}")
        elif asked.trail:
            trail(asked.trail)
        else:
            compare(parts(), asked.write_docs)
            print(f"\nAll states searched, {len(BUGS)} planted bugs found, in {time.monotonic() - start:.0f} s.")
    except Failed as failure:
        print(f"model: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
