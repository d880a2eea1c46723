"""The disk that loses its power, held to what it says: the real journal of a small program, and what is left of it."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from disk import Disk, records

JOURNAL_LIBRARY = os.environ["SEMEL_POWER_LIBRARY"]


class Lost(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="semel-test-")).resolve()
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = self.folder / "disk"
        self.root.mkdir()

    def left_of(self, program, seed=None, before=None):
        """What a Python program that runs in the folder leaves there when the power goes at its end."""
        for name, content in (before or {}).items():
            (self.root / name).write_bytes(content)
        base = self.folder / "before"
        shutil.copytree(self.root, base)
        journal = self.folder / "journal"
        subprocess.run([sys.executable, "-c", "import os\n" + program], cwd=self.root, check=True,
                       env={**os.environ, "LD_PRELOAD": JOURNAL_LIBRARY, "SEMEL_POWER_ROOT": str(self.root),
                            "SEMEL_POWER_JOURNAL": str(journal), "PYTHONDONTWRITEBYTECODE": "1"})
        disk = Disk(self.root, base)
        for record in records(journal.read_bytes()):
            disk.apply(record)
        left = disk.after_crash(tempfile.mkdtemp(dir=self.folder), seed)
        return {str(path.relative_to(left)): path.read_bytes() for path in left.rglob("*") if path.is_file()}

    WRITE = "f = os.open('a', os.O_RDWR); os.pwrite(f, b'new', 1)\n"

    def test_what_was_not_synced_is_lost(self):
        self.assertEqual(self.left_of(self.WRITE, before={"a": b"older"}), {"a": b"older"})

    def test_what_was_synced_stays(self):
        for sync in ("os.fsync(f)", "os.fdatasync(f)", "os.sync()"):
            self.setUp()
            self.assertEqual(self.left_of(self.WRITE + sync, before={"a": b"older"}), {"a": b"onewr"}, sync)

    def test_what_was_written_after_the_sync_is_lost(self):
        self.assertEqual(self.left_of(self.WRITE + "os.fsync(f); os.pwrite(f, b'x', 0)", before={"a": b"older"}),
                         {"a": b"onewr"})

    def test_a_new_name_is_there_once_its_folder_is_synced(self):
        create = "f = os.open('b', os.O_CREAT | os.O_WRONLY); os.write(f, b'one'); os.write(f, b'two'); os.fsync(f)\n"
        self.assertEqual(self.left_of(create), {})
        self.setUp()
        self.assertEqual(self.left_of(create + "os.fsync(os.open('.', os.O_RDONLY))"), {"b": b"onetwo"})

    def test_a_rename_replaces_once_its_folder_is_synced(self):
        rename = "os.rename('new', 'a')\n"
        before = {"a": b"older", "new": b"newer"}
        self.assertEqual(self.left_of(rename, before=before), before)
        self.setUp()
        self.assertEqual(self.left_of(rename + "os.fsync(os.open('.', os.O_RDONLY))", before=before), {"a": b"newer"})

    def test_a_removed_name_comes_back_unless_its_folder_was_synced(self):
        self.assertEqual(self.left_of("os.unlink('a')", before={"a": b"older"}), {"a": b"older"})
        self.setUp()
        removal = "os.unlink('a'); os.fsync(os.open('.', os.O_RDONLY))"
        self.assertEqual(self.left_of(removal, before={"a": b"older"}), {})

    def test_a_file_that_was_cut_has_its_length_back(self):
        cut = "f = os.open('a', os.O_RDWR | os.O_TRUNC); os.write(f, b'x'); os.ftruncate(f, 3)\n"
        self.assertEqual(self.left_of(cut, before={"a": b"older"}), {"a": b"older"})
        self.setUp()
        self.assertEqual(self.left_of(cut + "os.fsync(f)", before={"a": b"older"}), {"a": b"x\0\0"})

    def test_appended_bytes_are_where_they_belong(self):
        append = "f = os.open('a', os.O_WRONLY | os.O_APPEND); os.write(f, b'er'); os.write(f, b'!'); os.fsync(f)"
        self.assertEqual(self.left_of(append, before={"a": b"old"}), {"a": b"older!"})

    def test_a_seed_keeps_a_part_by_sectors(self):
        program = "f = os.open('a', os.O_RDWR); os.pwrite(f, b'n' * 40960, 0)"
        seen = set()
        for seed in range(3):
            self.setUp()
            content = self.left_of(program, seed, before={"a": b"o" * 40960})["a"]
            pieces = [content[at:at + 4096] for at in range(0, 40960, 4096)]
            self.assertTrue(set(pieces) <= {b"n" * 4096, b"o" * 4096})
            seen.add(content)
        self.assertEqual(len(seen), 3)

    def test_a_mapping_that_nobody_sees_is_an_error(self):
        mapped = "import mmap; mmap.mmap(os.open('a', os.O_RDWR), 5)"
        with self.assertRaisesRegex(AssertionError, "shared mapping"):
            self.left_of(mapped, before={"a": b"older"})


if __name__ == "__main__":
    unittest.main()
