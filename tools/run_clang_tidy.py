#!/usr/bin/env python3
"""Runs clang-tidy over every .cpp of ours that a build folder compiles, and remembers what passed.

    tools/run_clang_tidy.py BUILD_FOLDER [FILE ...]

A file is looked at again only if its text, its compile command, .clang-tidy, or a header of ours that it includes,
directly or not, has changed. The stamps are in BUILD_FOLDER/clang-tidy.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOL = "clang-tidy-14"


def ours(entry):
    path = Path(entry["directory"], entry["file"]).resolve()
    if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "build"):
        return None
    return path


def headers_of(path, seen):
    """Adds every header of ours that `path` includes to `seen`."""
    for target in re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', path.read_text(encoding="utf-8"), re.M):
        for place in (ROOT / "src" / target, ROOT / "app" / target, ROOT / "include" / target, path.parent / target):
            if place.is_file() and place not in seen:
                seen.add(place)
                headers_of(place, seen)
    return seen


def digest_of(path, entry):
    digest = hashlib.sha256()
    for part in [ROOT / ".clang-tidy", path, *sorted(headers_of(path, set()))]:
        digest.update(part.read_bytes())
    digest.update(entry.get("command", str(entry.get("arguments"))).encode())
    return digest.hexdigest()


def check(path, entry, build):
    """Prints what clang-tidy complains of in one file, and says how it went."""
    stamp = build / "clang-tidy" / (path.relative_to(ROOT).as_posix().replace("/", "+") + ".passed")
    digest = digest_of(path, entry)
    if stamp.is_file() and stamp.read_text() == digest:
        return "unchanged"
    run = subprocess.run([TOOL, "--quiet", "-p", str(build), str(path)], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        print(run.stdout + run.stderr, flush=True)
        return "complaint"
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(digest)
    return "passed"


def main(arguments):
    build = Path(arguments[0]).resolve()
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if path := ours(entry):
            entries[path] = entry
    wanted = {Path(a).resolve() for a in arguments[1:]} or set(entries)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda p: check(p, entries[p], build), sorted(wanted & set(entries))))
    print(f"clang-tidy: {results.count('complaint')} with findings, {results.count('passed')} passed, "
          f"{results.count('unchanged')} unchanged since they passed")
    return 1 if "complaint" in results else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
