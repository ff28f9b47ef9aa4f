"""A disk that forgets what was not synced: every call that changes files is noted, then replayed up to a power cut.

What POSIX promises, and no more. After a cut, a file has what it had at its last fsync, and any part of what came
later; a folder has the entries of its last fsync, and any part of the changes since, in their order. An fsync of a file
does not save its name, a rename does not save its contents.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FATES = ("none", "names", "contents", "any")
"""What survives of the unsynced: nothing, names without contents, contents without names, any part of both."""


class File:
    """A regular file: what is on the disk, and the writes that may not be."""

    def __init__(self) -> None:
        self.safe = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []  # offset and data; None cuts the file there

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.safe, change)
        self.pending = []

    def after(self, fate: str, rng: random.Random) -> bytes:
        found = bytearray(self.safe)
        for change in self.pending:
            if fate == "contents" or (fate == "any" and rng.random() < 0.5):
                offset, data = change
                if data and fate == "any" and rng.random() < 0.3:  # torn
                    data = data[: rng.randrange(len(data))]
                _apply(found, (offset, data))
        return bytes(found)


class Folder:
    """A folder: entries on the disk, and changes that may not be."""

    def __init__(self) -> None:
        self.safe: dict[str, File | Folder] = {}
        self.now: dict[str, File | Folder] = {}
        self.pending: list[tuple[str, File | Folder | None]] = []

    def set(self, name: str, node: File | Folder | None) -> None:
        _enter(self.now, name, node)
        self.pending.append((name, node))

    def sync(self) -> None:
        for name, node in self.pending:
            _enter(self.safe, name, node)
        self.pending = []

    def after(self, fate: str, rng: random.Random, place: Path) -> None:
        """Write what is left of it to `place`."""
        kept = {"none": 0, "contents": 0, "names": len(self.pending)}.get(fate, rng.randint(0, len(self.pending)))
        found = dict(self.safe)
        for name, node in self.pending[:kept]:
            _enter(found, name, node)
        place.mkdir()
        for name, node in found.items():
            if isinstance(node, File):
                (place / name).write_bytes(node.after(fate, rng))
            else:
                node.after(fate, rng, place / name)


def _enter(entries: dict[str, File | Folder], name: str, node: File | Folder | None) -> None:
    if node is None:
        entries.pop(name, None)
    else:
        entries[name] = node


def _apply(content: bytearray, change: tuple[int, bytes | None]) -> None:
    offset, data = change
    if data is None:
        del content[offset:]
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


class Tape:
    """The changes below a folder, in their order, and remarks of the test between them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[tuple[Any, ...]] = []

    def note(self, *remark: object) -> None:
        self.calls.append(("note", *remark))

    def replay(self, until: int) -> tuple[Folder, list[tuple[Any, ...]]]:
        """The disk after the first calls, and the remarks among them."""
        top, remarks = Folder(), []
        for kind, *rest in self.calls[:until]:
            if kind == "note":
                remarks.append(tuple(rest))
                continue
            parent, name = _find(top, rest[0])
            node = parent.now.get(name) if name else top
            if kind == "mkdir":
                parent.set(name, Folder())
            elif kind == "create" and node is None:
                parent.set(name, File())
            elif kind == "unlink":
                parent.set(name, None)
            elif kind == "replace":
                to, new = _find(top, rest[1])
                to.set(new, node)
                parent.set(name, None)
            elif kind == "write":
                assert isinstance(node, File)
                node.pending.append((rest[1], rest[2]))
            elif kind == "sync":
                assert node is not None
                node.sync()
        return top, remarks

    def cut(self, until: int, fate: str, rng: random.Random, place: Path) -> list[tuple[Any, ...]]:
        """Cut the power after so many calls; what is left goes to `place`. Returns the remarks until then."""
        top, remarks = self.replay(until)
        top.after(fate, rng, place)
        return remarks


def _find(top: Folder, path: tuple[str, ...]) -> tuple[Folder, str]:
    here = top
    for part in path[:-1]:
        found = here.now[part]
        assert isinstance(found, Folder)
        here = found
    return here, path[-1] if path else ""


@contextlib.contextmanager
def taped(folder: Path) -> Iterator[Tape]:
    """Note what happens below an empty folder, until the end of the block."""
    tape = Tape(folder)
    opened: dict[int, tuple[str, ...]] = {}
    real = {name: getattr(os, name) for name in _WATCHED}

    def inside(path: Any) -> tuple[str, ...] | None:
        if isinstance(path, int):
            return opened.get(path)
        full = Path.cwd() / os.fspath(path)
        return full.relative_to(folder).parts if full.is_relative_to(folder) else None

    def open_(path: Any, flags: int, *args: Any, **more: Any) -> int:
        new = not os.path.lexists(path)
        descriptor: int = real["open"](path, flags, *args, **more)
        where = inside(path)
        if where is not None:
            opened[descriptor] = where
            if new:
                tape.calls.append(("create", where))
            if flags & os.O_TRUNC and not new:
                tape.calls.append(("write", where, 0, None))
        return descriptor

    def close(descriptor: int) -> None:
        opened.pop(descriptor, None)
        real["close"](descriptor)

    def write(descriptor: int, data: Any) -> int:
        where = opened.get(descriptor)
        before = os.fstat(descriptor).st_size if where is not None else 0  # drafts and the ledger grow at their end
        count: int = real["write"](descriptor, data)
        if where is not None:
            tape.calls.append(("write", where, before, bytes(data)[:count]))
        return count

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        count: int = real["pwrite"](descriptor, data, offset)
        if descriptor in opened:
            tape.calls.append(("write", opened[descriptor], offset, data[:count]))
        return count

    def noted(name: str, kind: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            done = real[name](*args, **more)
            places = [inside(path) for path in args[: 2 if kind == "replace" else 1]]
            if None not in places:
                tape.calls.append((kind, *places, *((args[1], None) if name == "truncate" else ())))
            return done

        return call

    with pytest.MonkeyPatch.context() as patched:
        for name, call in {"open": open_, "close": close, "write": write, "pwrite": pwrite}.items():
            patched.setattr(os, name, call)
        for name, kind in _WATCHED.items():
            if kind:
                patched.setattr(os, name, noted(name, kind))
        yield tape


_WATCHED = {
    "open": "",
    "close": "",
    "write": "",
    "pwrite": "",
    "fsync": "sync",
    "replace": "replace",
    "rename": "replace",
    "mkdir": "mkdir",
    "unlink": "unlink",
    "truncate": "write",
}
