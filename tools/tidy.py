#!/usr/bin/env python3
"""House rules that a compiler does not know. Prints what breaks one, and what to do instead; then exits with 1.

    tools/tidy.py [ROOT]

A rule is a function `rule_<name>(tree)` that yields findings; it is found by its name. Each has a test in tidy_test.py
that breaks it. The layer table and the map of folders are read out of ARCHITECTURE.md, so that the page stays true.
"""

import fnmatch
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

LINE_WIDTH_MAX = 120
FUNCTION_LINES_MAX = 60
SYSTEM_HEADERS = ("sys/", "netinet/", "arpa/", "fcntl.h", "netdb.h", "poll.h", "pthread.h", "pwd.h", "signal.h",
                  "spawn.h", "stdlib.h", "strings.h", "termios.h", "unistd.h")
STORE_FILES = ("connection", "schema", "session", "store", "errors")


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    message: str  # what is wrong, and what to do instead


class Tree:
    """The files of a working copy: those that git tracks, or would."""

    def __init__(self, root):
        self.root = Path(root)
        self._texts = {}

    @cached_property
    def files(self):
        listed = subprocess.run(
            ["git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True, check=False)
        if listed.returncode == 0:
            names = listed.stdout.decode().split("\0")
        else:
            names = [p.relative_to(self.root).as_posix() for p in self.root.rglob("*")]
            names = [n for n in names if not n.startswith((".git/", "build/"))]
        return sorted(n for n in names if n and (self.root / n).is_file())

    @cached_property
    def folders(self):
        return {str(parent) for name in self.files for parent in PurePosixPath(name).parents}

    def match(self, *patterns):
        return [n for n in self.files if any(fnmatch.fnmatchcase(n, p) for p in patterns)]

    def has(self, name):
        return name in self.files

    def text(self, name):
        """The text of a file; empty for one that is not text."""
        if name not in self._texts:
            try:
                self._texts[name] = (self.root / name).read_text(encoding="utf-8")
            except (UnicodeDecodeError, FileNotFoundError):
                self._texts[name] = ""
        return self._texts[name]

    def lines(self, name):
        return enumerate(self.text(name).splitlines(), 1)

    @property
    def cpp(self):
        return self.match("*.cpp", "*.hpp")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


# --- Markdown ---------------------------------------------------------------------------------------------------------


def section(text, heading):
    """The lines below a heading, up to the next one of the same rank: [(line number, line)]."""
    found, rank = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        title = re.match(r"(#+) (.*)", line)
        if title and rank and len(title[1]) <= rank:
            break
        if rank:
            found.append((number, line))
        elif title and title[2].strip() == heading:
            rank = len(title[1])
    return found


def tables(lines):
    """The rows of the tables among `lines`, each a dict by its column's title: [(line number, row)]."""
    titles = None
    for number, line in lines:
        if not line.lstrip().startswith("|"):
            titles = None
            continue
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if titles is None:
            titles = cells
        elif not all(re.fullmatch(r":?-+:?", c) for c in cells):
            yield number, dict(zip(titles, cells))


def code_words(cell):
    return re.findall(r"`([^`]+)`", cell)


# --- Layers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layer:
    name: str
    patterns: tuple
    may_include: tuple
    foreign: tuple


class Layers:
    """The layer table. The first row that matches a file is its layer. A `*` folder in a pattern (`src/stores/*/`)
    makes siblings, which do not see each other. In the last column `system` stands for what POSIX brings."""

    def __init__(self, tree):
        self.layers = []
        for _, row in tables(section(tree.text("ARCHITECTURE.md"), "Layers")):
            self.layers.append(Layer(row["layer"], tuple(code_words(row["files"])),
                                     tuple(w.strip() for w in row["may include"].split(",")),
                                     tuple(re.findall(r"[\w./-]+", row["foreign headers"]))))

    def of(self, path):
        """(layer, sibling) of a file; sibling is None in a layer without siblings."""
        for layer in self.layers:
            for pattern in layer.patterns:
                expression = "".join("([^/]+)" if c == "*" else re.escape(c) for c in pattern)
                found = re.match(expression + ("" if pattern.endswith("/") else "$"), path)
                if found:
                    return layer, self._sibling(pattern, found)
        return None, None

    @staticmethod
    def _sibling(pattern, found):
        if "*" not in pattern or pattern.count("/") < 2 or not re.search(r"(stores|sources|performers)/\*", pattern):
            return None
        return re.search(r"(stores|sources|performers)/([^/.]+)", found[0])[2]

    def allows(self, path, target):
        layer, sibling = self.of(path)
        other, other_sibling = self.of(target)
        if layer is None or other is None:
            return False
        if layer.name == other.name:
            return sibling == other_sibling
        if other.name not in layer.may_include and "everything" not in layer.may_include:
            return False
        return sibling is None or other_sibling is None or sibling == other_sibling


def includes(tree, name):
    """[(line, "x.hpp" or <x>, the file of ours it names or None)]"""
    for number, line in tree.lines(name):
        found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if not found:
            continue
        quote, target = found.groups()
        if quote == '"':
            sibling = (PurePosixPath(name).parent / target).as_posix()
            places = [f"src/{target}", f"app/{target}", sibling]
            yield number, f'"{target}"', next((p for p in places if tree.has(p) or tree.has(p + ".in")), places[0])
        else:
            yield number, f"<{target}>", f"include/{target}" if target.startswith("semel/") else None


def rule_layers(tree):
    """Every #include obeys the layer table of ARCHITECTURE.md."""
    layers = Layers(tree)
    if not layers.layers:
        yield Finding("ARCHITECTURE.md", 1, "has no table under the heading \"Layers\"; write it again")
        return
    for name in tree.match("src/*.[ch]pp", "app/*.[ch]pp", "include/*.hpp"):
        layer, _ = layers.of(name)
        if layer is None:
            yield Finding(name, 1, "belongs to no layer; give its folder a row in the table of ARCHITECTURE.md")
            continue
        if name.endswith("_test.cpp"):
            continue
        for line, spelled, target in includes(tree, name):
            if target is None:
                if not is_for_tests(tree, name):
                    yield from foreign_findings(layer, name, line, spelled)
            elif is_for_tests(tree, target) and not is_for_tests(tree, name):
                yield Finding(name, line, f"{spelled} is for tests; shipped code may not include it")
            elif not tree.has(target) and not tree.has(target + ".in"):
                yield Finding(name, line, f"{spelled} names no file; include ours by its path below src, or <semel/…>")
            elif not layers.allows(name, target):
                yield Finding(name, line, f"layer {layer.name} may not include {spelled}; move what is needed to a "
                              "layer below both, or hand it in from above")


def is_for_tests(tree, name):
    return name.startswith("src/testing/") or bool(re.search(r"#include <g(test|mock)/", tree.text(name)))


def foreign_findings(layer, name, line, spelled):
    header = spelled.strip("<>")
    is_standard = "/" not in header and not header.endswith((".h", ".hpp"))
    allowed = [*layer.foreign, *(SYSTEM_HEADERS if "system" in layer.foreign else ())]
    if not is_standard and not header.startswith(tuple(allowed)) and "everything" not in allowed:
        yield Finding(name, line, f"layer {layer.name} may not include the foreign header {spelled}; wrap the "
                      "library in the layer that owns it, or add the header to the layer table with a reason")


def rule_protocol_is_pure(tree):
    """The protocol reads no clock, starts no thread and does no I/O."""
    for name in tree.match("src/protocol/*.[ch]pp"):
        for line, text in tree.lines(name):
            if re.search(r"#\s*include\s*<(thread|mutex|condition_variable|future|[io]?f?stream|iostream|cstdio)>"
                         r"|::now\(", text):
                yield Finding(name, line, "the protocol is pure: pass the time in as a value, and leave threads and "
                              "I/O to the engine")


def rule_map(tree):
    """The map of folders in ARCHITECTURE.md names what is there, and all that is below src."""
    lines = section(tree.text("ARCHITECTURE.md"), "Folders")
    mapped = {}
    for number, row in tables(lines):
        for word in code_words(row.get("folder", "")):
            mapped[word.rstrip("/")] = number
    if not mapped:
        yield Finding("ARCHITECTURE.md", 1, "has no table of folders under the heading \"Folders\"; write it again")
    for folder, number in mapped.items():
        if folder not in tree.folders:
            yield Finding("ARCHITECTURE.md", number, f"there is no folder {folder}/; take it off the map")
    holding = {str(PurePosixPath(n).parent) for n in tree.match("src/*", "app/*")} - {"src"}
    for folder in sorted(holding):
        parents = {folder, *map(str, PurePosixPath(folder).parents)}
        if not parents & (set(mapped) - {"src"}):
            yield Finding("ARCHITECTURE.md", 1, f"{folder}/ is not on the map; add it under \"Folders\"")


# --- Documents --------------------------------------------------------------------------------------------------------


def rule_house_documents(tree):
    """The pages that everything else points to are there."""
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "STYLE.md", "SECURITY.md", "CHANGELOG.md",
                 "LICENSE", "docs/guarantees.md", "docs/fault-model.md", "docs/life-of-a-message.md"):
        if not tree.has(name):
            yield Finding(name, 1, "is missing; write it")


def test_names(tree):
    """Every Suite.Name in the sources, and every name that ctest knows."""
    names = set()
    for name in tree.match("*.cpp", "*.hpp"):
        for suite, test in re.findall(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", tree.text(name)):
            names.add(f"{suite}.{test}")
        for store in re.findall(r"^SEMEL_STORE_CONFORMANCE\((\w+),", tree.text(name), re.M):
            names.add(f"{store}Store.keeps")
    for name in tree.match("*.py"):
        suite = None
        for _, line in tree.lines(name):
            if found := re.match(r"class (\w+)\(", line):
                suite = found[1]
            elif suite and (found := re.match(r"    def (test_\w+)\(", line)):
                names.add(f"{suite}.{found[1]}")
    for name in tree.match("*CMakeLists.txt", "*.cmake"):
        names |= set(re.findall(r"(?:semel_test\(|add_test\(\s*NAME\s+)([\w.-]+)", tree.text(name)))
    return names


def rule_named_tests(tree):
    """Every row of the tables in the fault model and the guarantees names a test that exists."""
    known = test_names(tree)
    suites = {n.split(".")[0] for n in known}
    for page in ("docs/fault-model.md", "docs/guarantees.md"):
        for number, row in tables(tree.lines(page)):
            for title, cell in row.items():
                if "test" not in title.lower():
                    continue
                words = code_words(cell)
                if not words:
                    yield Finding(page, number, "names no test; name one as `Suite.Name`, or as the path of a file")
                for word in words:
                    suite = word.removesuffix(".*")
                    if not (word in known or tree.has(word) or (word.endswith(".*") and suite in suites)):
                        yield Finding(page, number, f"there is no test {word}; name one that exists, or write it")


def rule_named_code(tree):
    """In docs/proof.md every row of a table with a column "code" names files that are there, and behind each of them
    words that occur in it: of `Type::function` the last part."""
    for page in tree.match("docs/proof.md"):
        for number, row in tables(tree.lines(page)):
            for title in ("step", "code") if "code" in row else ():
                file = None
                for word in code_words(row.get(title, "")):
                    if "/" in word:
                        file = word
                        if not tree.has(file):
                            yield Finding(page, number, f"there is no file {file}; name the one that does it")
                    elif file is None or not re.search(rf"\b{re.escape(word.split('::')[-1])}\b", tree.text(file)):
                        yield Finding(page, number, f"{word} is not in {file or 'any file before it'}; correct it")
                if file is None:
                    yield Finding(page, number, f"names no file under \"{title}\"; name one as `path` `function`")


def rule_error_pages(tree):
    """Every ErrorCode has a page, and every page a code."""
    header = "include/semel/error.hpp"
    enum = re.search(r"enum class ErrorCode[^{]*\{(.*?)\}", tree.text(header), re.S)
    if not enum:
        yield Finding(header, 1, "has no enum class ErrorCode; tools/tidy.py reads it from here")
        return
    codes = {}
    for found in re.finditer(r"(\w+) = (\d+)", enum[1]):
        page = f"docs/errors/SEMEL-{int(found[2]):04}.md"
        line = line_of(tree.text(header), enum.start(1) + found.start())
        if page in codes:
            yield Finding(header, line, f"the number {found[2]} is given twice; take the next free one")
        codes[page] = line
        if not tree.has(page):
            yield Finding(header, line, f"{found[1]} has no page; write {page}")
    for page in tree.match("docs/errors/SEMEL-*"):
        if page not in codes:
            yield Finding(page, 1, "belongs to no ErrorCode; a number that is no longer used keeps its enumerator")


def slugs(text):
    """The anchors of a page's headings, as GitHub makes them."""
    for title in re.findall(r"^#+ (.*)$", text, re.M):
        yield re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def rule_links(tree):
    """Relative links in the documents lead somewhere."""
    for page in tree.match("*.md"):
        prose = re.sub(r"```.*?```|`[^`\n]*`", lambda m: re.sub(r"[^\n]", " ", m[0]), tree.text(page), flags=re.S)
        for found in re.finditer(r"\]\(([^)\s]+)\)", prose):
            target, _, anchor = found[1].partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            line = line_of(prose, found.start())
            path = os.path.normpath((PurePosixPath(page).parent / target).as_posix()) if target else page
            if not (tree.has(path) or path in tree.folders):
                yield Finding(page, line, f"the link {found[1]} leads nowhere; correct it")
            elif anchor and path.endswith(".md") and anchor not in slugs(tree.text(path)):
                yield Finding(page, line, f"{path} has no heading #{anchor}; correct the link")


QUOTED = (r"^<!-- file: (\S+) -->\n+(?:```[^\n]*\n(.*?)^```$)?", r"^```\w* file=(\S+)\n(.*?)^```$")


def rule_quoted_files(tree):
    """A code block that is marked as a file, by `<!-- file: PATH -->` above it or `file=PATH` in its first line, is
    that file, to the letter."""
    for page in tree.match("*.md"):
        text = tree.text(page)
        for found in (f for pattern in QUOTED for f in re.finditer(pattern, text, re.S | re.M)):
            path, block = found.groups()
            line = line_of(text, found.start())
            if not tree.has(path):
                yield Finding(page, line, f"there is no file {path}; correct the mark")
            elif block is None:
                yield Finding(page, line, f"no code block follows the mark; put {path} in one, or remove the mark")
            elif block != tree.text(path):
                yield Finding(page, line, f"the block differs from {path}; copy the file into it")


# --- Words ------------------------------------------------------------------------------------------------------------


def rule_words(tree):
    """Words that have no place here. (The patterns are spelt so that they do not find themselves.)"""
    forbidden = (
        (r"\b(TO[D]O|FIX[M]E|X[X]X)\b", "finish it, or open an issue; the code holds no reminders"),
        (r"\bDIS[A]BLED_|\bGTEST_[S]KIP\b", "every test runs; repair it or delete it"),
        (r"(?<![\w.])/wor[k]/|(?<![\w.])/tmp/[w]\b", "a path of one machine; use a relative path or a variable"),
        (r"(?i)exactly[- ]once[ -]deliver[y]", "delivery never is; say that the effect happens once"),
    )
    for name in tree.files:
        for number, line in tree.lines(name):
            for pattern, instead in forbidden:
                if found := re.search(pattern, line):
                    yield Finding(name, number, f"\"{found[0]}\": {instead}")


def rule_sleeps(tree):
    """No test waits for time to pass."""
    for name in tree.match("*_test.cpp", "tests/*", "src/testing/*", "*_test.py"):
        for number, line in tree.lines(name):
            if re.search(r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(|^\s*sleep\s+[\d.$]", line):
                yield Finding(name, number, "a test must not sleep; wait for the event (Probe, Doorbell, a pipe)")


def rule_names(tree):
    """Types and folders are named after what they are."""
    for folder in sorted(tree.folders):
        if PurePosixPath(folder).name in ("util", "utils", "common", "core", "misc", "impl", "helpers"):
            yield Finding(folder, 1, "the name says nothing; name the folder after what it holds")
    for name in tree.cpp:
        for number, line in tree.lines(name):
            found = re.search(r"\b(?:class|struct)\s+(I[A-Z][a-z]\w*|\w*(?:Manager|Helper|Impl|Utils?))\b", line)
            if found:
                yield Finding(name, number, f"{found[1]}: name the type after its duty, an interface by its noun")


# --- Source files -----------------------------------------------------------------------------------------------------


def rule_file_opening(tree):
    """Every header says on its first line what it is for, and so does a .cpp without a header of its own; every header
    is included once."""
    for name in tree.cpp:
        text = tree.text(name)
        stem, folder = PurePosixPath(name).stem.removesuffix("_test"), PurePosixPath(name).parent.name
        own_header = re.search(rf'^#include ["<]([\w/]+/)?({stem}|{folder})\.hpp[">]', text, re.M)
        if not text.startswith("// ") and not (name.endswith(".cpp") and own_header):
            yield Finding(name, 1, "opens without a comment; say first what the file is for")
        if name.endswith(".hpp") and "#pragma once" not in text:
            yield Finding(name, 1, "has no #pragma once; add it below the opening comment")


def rule_line_width(tree):
    """Lines fit the screen."""
    for name in tree.match("*.cpp", "*.hpp", "*.py", "*.cmake", "*CMakeLists.txt", "script/*", ".ci/*"):
        for number, line in tree.lines(name):
            if len(line) > LINE_WIDTH_MAX:
                yield Finding(name, number, f"{len(line)} columns, over {LINE_WIDTH_MAX}; break the line")


def blank_literals(text):
    """`text` with comments, strings and character literals blanked out; line breaks stay."""
    literals = (r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s"]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*\""""
                r"""|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""")
    return re.sub(literals, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def functions(text):
    """The functions that a .cpp defines: [(first line, last line)]. A brace whose head ends like a parameter list opens
    one, unless another is open around it."""
    code = blank_literals(text)
    head_start, depth, opened = 0, 0, None
    for found in re.finditer(r"[{};]", code):
        at = found.start()
        if found[0] == "{":
            head = code[head_start:at]
            is_container = re.search(r"\b(namespace|class|struct|enum|union|extern)\b", head) and ")" not in head
            if opened is None and ")" in head and not is_container and not head.rstrip().endswith(("=", ",", "(")):
                first = at - len(head.lstrip())
                opened = (depth, line_of(code, first))
            depth += 1
        elif found[0] == "}":
            depth -= 1
            if opened and opened[0] == depth:
                yield opened[1], line_of(code, at)
                opened = None
        head_start = at + 1


def rule_function_length(tree):
    """A function fits one screen."""
    for name in tree.match("*.cpp"):
        for first, last in functions(tree.text(name)):
            if last - first + 1 > FUNCTION_LINES_MAX:
                yield Finding(name, first, f"a function of {last - first + 1} lines, over {FUNCTION_LINES_MAX}; "
                              "give its parts names of their own")


def rule_store_shape(tree):
    """Every store's folder holds the same files, so that who knows one finds the way in all."""
    folders = sorted({str(PurePosixPath(n).parent) for n in tree.match("src/stores/*/*")})
    for folder in folders:
        for stem in STORE_FILES:
            if not tree.has(f"{folder}/{stem}.cpp"):
                yield Finding(f"{folder}/{stem}.cpp", 1, "is missing; a store is made of connection, schema, session, "
                              "store and errors")


def rule_built(tree):
    """Every .cpp is named by a CMakeLists.txt at or above it."""
    listings = tree.match("CMakeLists.txt", "*/CMakeLists.txt")
    for name in tree.match("*.cpp"):
        named = False
        for listing in listings:
            relative = os.path.relpath(name, PurePosixPath(listing).parent.as_posix()).replace(os.sep, "/")
            if re.search(rf"(?<![\w.]){re.escape(relative)}(?![\w.])", tree.text(listing)):
                named = True
        if not named:
            yield Finding(name, 1, "no CMakeLists.txt names it, so nobody compiles it; add it to a target or delete it")


def rule_scripts(tree):
    """Scripts stop at the first failure, and can be started."""
    for name in tree.match("script/*", ".ci/*", "tests/*.sh", "tools/*.sh"):
        text = tree.text(name)
        if text.startswith("#!/usr/bin/env bash") and "set -euo pipefail" not in text:
            yield Finding(name, 1, "goes on after a failure; add `set -euo pipefail`")
        if text.startswith("#!") and not os.access(tree.root / name, os.X_OK):
            yield Finding(name, 1, "cannot be started; chmod +x")


RULES = {name.removeprefix("rule_"): rule for name, rule in list(globals().items()) if name.startswith("rule_")}


def main(arguments):
    root = arguments[0] if arguments else Path(__file__).resolve().parent.parent
    tree = Tree(root)
    count = 0
    for name, rule in RULES.items():
        for finding in rule(tree):
            count += 1
            print(f"{finding.path}:{finding.line}: [{name}] {finding.message}")
    if count:
        print(f"tidy: {count} finding{'s' if count > 1 else ''}", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
