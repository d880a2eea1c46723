#!/usr/bin/env python3
"""Each rule of tidy.py finds what it is for, and leaves a tidy tree alone."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tidy  # noqa: E402

ARCHITECTURE = """# Architecture

## Layers

| layer | files | may include | foreign headers |
|---|---|---|---|
| errors | `include/semel/error.hpp` | nothing | |
| ports | `include/semel/` | errors | |
| base | `src/base/` | errors | `openssl/` |
| protocol | `src/protocol/` | base, ports | |
| stores | `src/stores/*/` | base, ports | `sqlite3.h`, system |
| app | `app/` | everything | everything |

## Folders

| folder | what is there |
|---|---|
| `include/semel/` | the API |
| `src/base/`, `src/protocol/` | plain things |
| `src/stores/one/`, `src/stores/two/` | stores |
| `app/` | the program |
"""

STORES = {f"src/stores/{folder}/{stem}.cpp": "// Part of a store.\n#include <sqlite3.h>\n#include <unistd.h>\n"
          for folder in ("one", "two") for stem in tidy.STORE_FILES}

TIDY = {
    "ARCHITECTURE.md": ARCHITECTURE,
    "README.md": "# Semel\n\nSee [the style](STYLE.md) and [layers](ARCHITECTURE.md#layers).\n\n"
                 "<!-- file: app/main.cpp -->\n```cpp\n// The program.\nint main() {}\n```\n",
    "CONTRIBUTING.md": "", "STYLE.md": "", "SECURITY.md": "", "CHANGELOG.md": "", "LICENSE": "",
    "docs/guarantees.md": "", "docs/life-of-a-message.md": "",
    "docs/fault-model.md": "| fault | shown by the tests |\n|---|---|\n| crash | `Claim.Decides`, `app/main.cpp` |\n",
    "docs/proof.md": "| step | code |\n|---|---|\n| `app/main.cpp` | `src/protocol/claim_test.cpp` `A::Claim` |\n",
    "docs/errors/SEMEL-0101.md": "",
    "include/semel/error.hpp": "// Errors.\n#pragma once\nenum class ErrorCode : int {\n  no_key = 101,\n};\n",
    "include/semel/store.hpp": "// A port.\n#pragma once\n#include <semel/error.hpp>\n#include <string>\n",
    "src/base/digest.hpp": "// Digests.\n#pragma once\n",
    "src/base/digest.cpp": "// Digests.\n#include \"base/digest.hpp\"\n#include <openssl/evp.h>\n",
    "src/protocol/claim.cpp": "// Claims.\n#include <semel/store.hpp>\n#include \"base/digest.hpp\"\n",
    "src/protocol/claim_test.cpp": "// Tests.\n#include <gtest/gtest.h>\nTEST(Claim, Decides) {}\n",
    "app/main.cpp": "// The program.\nint main() {}\n",
    "CMakeLists.txt": "add(app/main.cpp src/base/digest.cpp src/protocol/claim.cpp src/protocol/claim_test.cpp\n"
                      + "\n".join(STORES) + ")\n",
    "script/run": "#!/usr/bin/env bash\nset -euo pipefail\n",
    **STORES,
}


def broken(changes):
    """What tidy finds in the tidy tree with some files changed (None: deleted): [(rule, path, line)]."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**TIDY, **changes}.items():
            if text is None:
                continue
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if name.startswith("script/") and "not startable" not in text:
                os.chmod(path, 0o755)
        tree = tidy.Tree(folder)
        return [(rule, f.path, f.line) for rule, check in tidy.RULES.items() for f in check(tree)]


def more(name, text):
    """The tidy tree's file with lines added."""
    return {name: TIDY[name] + text}


def function_of(lines, head="int f(int x)", before=""):
    return f"// Long.\n{before}{head} {{\n" + "  if (x) { call(\"}\"); }\n" * (lines - 2) + "}\n"


# What is broken, and what must be found: (rule, path, line), and nothing else.
CASES = {
    "layers: upwards": (more("src/base/digest.hpp", '#include "protocol/claim.cpp"\n'),
                        ("layers", "src/base/digest.hpp", 3)),
    "layers: a port looks at nothing of ours": (more("include/semel/store.hpp", '#include "base/digest.hpp"\n'),
                                                ("layers", "include/semel/store.hpp", 5)),
    "layers: one store at another": ({"src/stores/one/a.hpp": '// A.\n#pragma once\n#include "stores/two/b.hpp"\n',
                                      "src/stores/two/b.hpp": "// B.\n#pragma once\n"},
                                     ("layers", "src/stores/one/a.hpp", 3)),
    "layers: a foreign library": (more("src/protocol/claim.cpp", "#include <sqlite3.h>\n"),
                                  ("layers", "src/protocol/claim.cpp", 4)),
    "layers: the system": (more("src/protocol/claim.cpp", "#include <unistd.h>\n"),
                           ("layers", "src/protocol/claim.cpp", 4)),
    "layers: what is for tests": ({"src/base/stand.hpp": "// For tests.\n#pragma once\n#include <gtest/gtest.h>\n",
                                   **more("src/base/digest.hpp", '#include "base/stand.hpp"\n')},
                                  ("layers", "src/base/digest.hpp", 3)),
    "layers: no such file": (more("src/base/digest.hpp", '#include "gone.hpp"\n'),
                             ("layers", "src/base/digest.hpp", 3)),
    "layers: a folder without a layer": ({"src/new/a.hpp": "// A.\n#pragma once\n",
                                          "ARCHITECTURE.md": ARCHITECTURE + "| `src/new/` | new |\n"},
                                         ("layers", "src/new/a.hpp", 1)),
    "protocol_is_pure: a clock": (more("src/protocol/claim.cpp", "auto t = Clock::now();\n"),
                                  ("protocol_is_pure", "src/protocol/claim.cpp", 4)),
    "protocol_is_pure: a thread": (more("src/protocol/claim.cpp", "#include <thread>\n"),
                                   ("protocol_is_pure", "src/protocol/claim.cpp", 4)),
    "map: a folder that is gone": (more("ARCHITECTURE.md", "| `fuzz/` | gone |\n"), ("map", "ARCHITECTURE.md", 22)),
    "map: a folder that is missing": ({"ARCHITECTURE.md": ARCHITECTURE.replace("`src/base/`, `src", "`src")},
                                      ("map", "ARCHITECTURE.md", 1)),
    "house_documents": ({"SECURITY.md": None}, ("house_documents", "SECURITY.md", 1)),
    "named_tests: no such test": (more("docs/fault-model.md", "| lie | `Claim.Lies` |\n"),
                                  ("named_tests", "docs/fault-model.md", 4)),
    "named_tests: a row without one": (more("docs/fault-model.md", "| lie | some day |\n"),
                                       ("named_tests", "docs/fault-model.md", 4)),
    "named_code: no such file": (more("docs/proof.md", "| `app/main.cpp` `main` | `app/gone.cpp` |\n"),
                                 ("named_code", "docs/proof.md", 4)),
    "named_code: no such function": (more("docs/proof.md", "| `app/main.cpp` `main` | `app/main.cpp` `A::gone` |\n"),
                                     ("named_code", "docs/proof.md", 4)),
    "named_code: no file": (more("docs/proof.md", "| `app/main.cpp` `main` | everywhere |\n"),
                            ("named_code", "docs/proof.md", 4)),
    "error_pages: a code without a page": ({"docs/errors/SEMEL-0101.md": None},
                                           ("error_pages", "include/semel/error.hpp", 4)),
    "error_pages: a page without a code": ({"docs/errors/SEMEL-0102.md": ""},
                                           ("error_pages", "docs/errors/SEMEL-0102.md", 1)),
    "error_pages: a number twice": ({"include/semel/error.hpp": TIDY["include/semel/error.hpp"].replace(
        "};", "  twice = 101,\n};")}, ("error_pages", "include/semel/error.hpp", 5)),
    "links: to nowhere": (more("README.md", "[x](docs/gone.md)\n"), ("links", "README.md", 10)),
    "links: to no heading": (more("README.md", "[x](ARCHITECTURE.md#gone)\n"), ("links", "README.md", 10)),
    "quoted_files: differs": ({"README.md": TIDY["README.md"].replace("main() {}", "main() { }")},
                              ("quoted_files", "README.md", 5)),
    "quoted_files: no such file": (more("README.md", "<!-- file: app/gone.cpp -->\n```\n```\n"),
                                   ("quoted_files", "README.md", 10)),
    "quoted_files: no block": (more("README.md", "<!-- file: app/main.cpp -->\nwords\n"),
                               ("quoted_files", "README.md", 10)),
    "quoted_files: differs, marked in the fence": (more("README.md", "```cpp file=app/main.cpp\n```\n"),
                                                   ("quoted_files", "README.md", 10)),
    "words: a reminder": (more("src/base/digest.hpp", "// TO" "DO\n"), ("words", "src/base/digest.hpp", 3)),
    "words: a skipped test": (more("src/base/digest.hpp", "GTEST_" "SKIP();\n"), ("words", "src/base/digest.hpp", 3)),
    "words: a disabled test": (more("src/base/digest.hpp", "TEST(A, DIS" "ABLED_B)\n"),
                               ("words", "src/base/digest.hpp", 3)),
    "words: a path of one machine": (more("script/run", "cd /wor" "k/main\n"), ("words", "script/run", 3)),
    "words: what delivery is not": (more("SECURITY.md", "exactly-once " "delivery\n"), ("words", "SECURITY.md", 1)),
    "sleeps": (more("src/protocol/claim_test.cpp", "void f() { sleep" "_for(1s); }\n"),
               ("sleeps", "src/protocol/claim_test.cpp", 4)),
    "names: a type": (more("src/base/digest.hpp", "class LaneManager {};\n"), ("names", "src/base/digest.hpp", 3)),
    "names: an interface": (more("src/base/digest.hpp", "struct IStore {};\n"), ("names", "src/base/digest.hpp", 3)),
    "names: a folder": ({"app/util/x.txt": ""}, ("names", "app/util", 1)),
    "file_opening: no comment": ({"src/base/digest.hpp": "#pragma once\n"}, ("file_opening", "src/base/digest.hpp", 1)),
    "file_opening: a source without a header": ({"app/main.cpp": "int main() {}\n", "README.md": "# Semel\n"},
                                                ("file_opening", "app/main.cpp", 1)),
    "file_opening: no guard": ({"src/base/digest.hpp": "// Digests.\n"}, ("file_opening", "src/base/digest.hpp", 1)),
    "line_width": (more("src/base/digest.hpp", "// " + "x" * 118 + "\n"), ("line_width", "src/base/digest.hpp", 3)),
    "function_length: a function": ({"app/main.cpp": function_of(61), "README.md": "# Semel\n"},
                                    ("function_length", "app/main.cpp", 2)),
    "function_length: a member": ({"app/main.cpp": function_of(61, before="namespace a {\nclass B {\n") + "};\n}\n",
                                   "README.md": "# Semel\n"}, ("function_length", "app/main.cpp", 4)),
    "store_shape": ({"src/stores/two/errors.cpp": None}, ("store_shape", "src/stores/two/errors.cpp", 1)),
    "built": ({"app/extra.cpp": "// Extra.\n"}, ("built", "app/extra.cpp", 1)),
    "scripts: go on": ({"script/run": "#!/usr/bin/env bash\ntrue\n"}, ("scripts", "script/run", 1)),
    "scripts: not startable": ({"script/run": TIDY["script/run"] + "# not startable\n"}, ("scripts", "script/run", 1)),
}


class Tidy(unittest.TestCase):
    def test_a_tidy_tree_has_no_findings(self):
        self.assertEqual(broken({}), [])

    def test_each_rule_finds_what_it_is_for_and_nothing_else(self):
        for title, (changes, expected) in CASES.items():
            with self.subTest(title):
                self.assertEqual(broken(changes), [expected])

    def test_every_rule_has_a_case(self):
        self.assertEqual({title.split(":")[0] for title in CASES}, set(tidy.RULES))

    def test_a_source_may_open_with_its_own_header(self):
        self.assertEqual(broken({"src/base/digest.cpp": '#include "base/digest.hpp"\n'}), [])

    def test_a_header_may_be_made_from_a_template(self):
        self.assertEqual(broken({"app/version.hpp.in": "", "app/main.cpp": '// Main.\n#include "version.hpp"\n',
                                 "README.md": "# Semel\n"}), [])

    def test_a_function_of_the_longest_length_passes(self):
        self.assertEqual(broken({"app/main.cpp": function_of(60), "README.md": "# Semel\n"}), [])

    def test_functions_are_told_from_what_looks_like_one(self):
        code = ('// x\nnamespace n {\nconst int table[] = {\n1,\n2,\n};\nstruct S {\nint f() { return 1; }\n};\n'
                'S::S(int a) : a_(a) {\n  auto text = R"(}}{{)";\n  char c = \'{\';\n}\n}\n')
        self.assertEqual(list(tidy.functions(code)), [(8, 8), (10, 13)])


if __name__ == "__main__":
    unittest.main()
