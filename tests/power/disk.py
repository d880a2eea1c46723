"""A disk that loses its power: what is left of a folder, by the journal that journal.cpp wrote.

The disk forgets as much as POSIX lets it. What was written to a file is durable once the file has been synced, a name
in a folder once the folder has. Of the rest either everything is lost, or a part that a seed chooses: writes in
pieces of a sector, names of a folder up to some change.
"""

import os
import pathlib
import random
import struct

HEAD = struct.Struct("<cHHQI")
SECTOR = 4096
# Rebuilt by whoever opens the database after a crash, never read from before it.
MAPPED = (".db-shm", "-shm")


class Record:
    def __init__(self, what, path, other, offset, data, end):
        self.what, self.path, self.other, self.offset, self.data, self.end = what, path, other, offset, data, end

    def __repr__(self):
        return f"{self.what} {self.path} {self.other} {self.offset} +{len(self.data)}"


def records(journal):
    """Of the bytes of a journal; `end` is where each one ends. A torn record at the end is none."""
    at = 0
    while at + HEAD.size <= len(journal):
        what, path, other, offset, size = HEAD.unpack_from(journal, at)
        begin = at + HEAD.size
        at = begin + path + other + size
        if at > len(journal):
            return
        names = journal[begin:begin + path + other]
        yield Record(what.decode(), os.path.normpath(os.fsdecode(names[:path])) if path else "",
                     os.path.normpath(os.fsdecode(names[path:])) if other else "", offset,
                     journal[begin + path + other:at], at)


class Inode:
    def __init__(self, content=b""):
        self.durable = bytearray(content)
        self.pending = []

    @staticmethod
    def change(content, record):
        if record.what == "W":
            if len(content) < record.offset:
                content.extend(bytes(record.offset - len(content)))
            content[record.offset:record.offset + len(record.data)] = record.data
        elif record.what == "T":
            del content[record.offset:]
            content.extend(bytes(record.offset - len(content)))
        elif record.what == "A" and len(content) < record.offset:
            content.extend(bytes(record.offset - len(content)))

    def sync(self):
        for record in self.pending:
            self.change(self.durable, record)
        self.pending = []

    def after_crash(self, choice):
        content = bytearray(self.durable)
        for record in self.pending if choice else []:
            for piece in sectors(record):
                if choice.random() < 0.5:
                    self.change(content, piece)
        return bytes(content)


def sectors(record):
    """A write in the pieces that reach a disk or not, each by itself."""
    if record.what != "W":
        return [record]
    pieces, at, end = [], record.offset, record.offset + len(record.data)
    while at < end:
        until = min(end, (at // SECTOR + 1) * SECTOR)
        begin = at - record.offset
        pieces.append(Record("W", record.path, "", at, record.data[begin:begin + until - at], record.end))
        at = until
    return pieces


class Disk:
    def __init__(self, root, before):
        """`root` is the folder's path in the journal, `before` a copy of it as it was when the journal began."""
        self.root, before = str(root), pathlib.Path(before)
        self.now = {}  # path: Inode, or None for a folder
        for path in sorted(before.rglob("*")):
            name = os.path.join(self.root, path.relative_to(before))
            if path.is_dir():
                self.now[name] = None
            elif path.is_file():
                self.now[name] = Inode(path.read_bytes())
        self.durable = dict(self.now)
        self.pending = {}  # folder: changes of names in it, in order

    def apply(self, record):
        if record.what == "X":
            if not record.path.endswith(MAPPED):
                raise AssertionError(f"{record.path} is written through a shared mapping, which nobody sees")
        elif record.what == "Y":
            for path in list(self.now):
                self.sync(path)
            for folder in list(self.pending):
                self.sync_names(folder)
        elif record.what == "F":
            self.sync(record.path)
        elif record.what in "CM":
            if record.path not in self.now:
                self.name(record.path, Inode() if record.what == "C" else None)
        elif record.what == "U":
            self.forget(record.path)
        elif record.what in "RL":
            self.link(record)
        elif self.now.get(record.path):
            self.now[record.path].pending.append(record)

    def link(self, record):
        if record.path not in self.now:
            return  # it failed, or it is a folder of which nothing is known
        self.name(record.other, self.now[record.path])
        if record.what == "L":
            return
        below = [path for path in self.now if path.startswith(record.path + "/")]
        for path in below:
            self.name(record.other + path[len(record.path):], self.now[path])
            self.forget(path)
        self.forget(record.path)

    def name(self, path, inode):
        self.now[path] = inode
        self.pending.setdefault(os.path.dirname(path), []).append((path, inode, True))

    def forget(self, path):
        if path in self.now:
            self.pending.setdefault(os.path.dirname(path), []).append((path, self.now.pop(path), False))

    def sync(self, path):
        if path == self.root or (path in self.now and self.now[path] is None):
            self.sync_names(path)
        elif path in self.now:
            self.now[path].sync()

    def sync_names(self, folder):
        self.rename_in(self.durable, self.pending.pop(folder, []))

    @staticmethod
    def rename_in(names, changes):
        for path, inode, is_there in changes:
            if is_there:
                names[path] = inode
            elif names.get(path, inode) is inode:
                names.pop(path, None)

    def after_crash(self, folder, seed=None):
        """Writes into `folder` what is left; without a seed nothing that was not synced."""
        choice = None if seed is None else random.Random(seed)
        names = dict(self.durable)
        for changes in self.pending.values() if choice else []:
            self.rename_in(names, changes[:choice.randint(0, len(changes))])
        folder = pathlib.Path(folder)
        folder.mkdir(exist_ok=True)
        for path, inode in sorted(names.items()):
            target = folder / os.path.relpath(path, self.root)
            if inode is None:
                target.mkdir(parents=True, exist_ok=True)
            elif target.parent.is_dir():  # else the folder is lost, and what is in it
                target.write_bytes(inode.after_crash(choice))
        return folder
