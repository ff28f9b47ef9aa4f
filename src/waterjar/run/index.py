"""The index of a study: what its runs are, without opening a thousand of them. A cache, never the truth."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from waterjar.errors import WaterjarError
from waterjar.run.coordinates import is_number
from waterjar.run.disk import write_file
from waterjar.run.reader import Run
from waterjar.run.stamped import pack, unpack
from waterjar.run.store import read_file

INDEX = ".waterjar/index.json"
_VERSION = 3


DAMAGED, MISANNOTATED = "damaged", "misannotated"
"""Statuses of a run that cannot be read, and of one that cannot for its annotations alone."""


@dataclass(frozen=True)
class Entry:
    """What the index knows of a run, without opening it."""

    name: str
    run_id: str
    cell_id: str
    status: str
    seeds: list[int]
    config: dict[str, Any]
    progress: dict[str, Any]
    root_hash: str | None
    source: str = ""
    """Root hash of the run that a probe run looked into; empty of a run that was trained."""

    @property
    def fault(self) -> str:
        """Why it cannot be read, and what can be done; empty where it can."""
        said, without = str(self.progress.get("error", "")), f'"status != {DAMAGED}"'
        if self.status != DAMAGED:
            return said
        return f"{said}. Leave it out with select({without}), on the command line with --where {without}"


Index = dict[str, tuple[list[int], Entry]]
"""run -> time, size and inode of its root when it was read, and what it said."""


def entry_of(run: Run) -> Entry:
    """What an index keeps of a run, from the run itself."""
    about = {key: run.attributes[key] for key in ("run_id", "cell_id", "status", "seeds", "config", "progress")}
    source = run.attributes.get("source", {}).get("root_hash", "")
    return Entry(run.path.name, **about, root_hash=run.root_hash, source=source)


def damaged_entry(name: str, error: WaterjarError) -> Entry:
    """A run that cannot be read: it must show among the others, and must not hide them."""
    return Entry(name, "", f"damaged {name}", DAMAGED, [], {}, {"step": -1, "error": str(error)}, None)


def misannotated(entry: Entry, error: WaterjarError) -> Entry:
    """A run that is what it was, and cannot be read as its annotations would have it."""
    return replace(entry, status=MISANNOTATED, progress={**entry.progress, "error": str(error)})


def read_index(folder: Path) -> Index:
    """The index is a cache: whatever is wrong with it, the runs themselves tell."""
    try:
        index = unpack(read_file(folder, INDEX))
        if index["version"] != _VERSION:
            return {}
        found = {name: (stamp, Entry(**about)) for name, (stamp, about) in index["runs"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return found if all(_is_sound(entry) and entry.name == name for name, (_, entry) in found.items()) else {}


def _is_sound(entry: Entry) -> bool:
    """Whether what an index says of a run has the types that it must have."""
    texts = (entry.run_id, entry.cell_id, entry.status, entry.root_hash or "", entry.source)
    known = type(entry.progress) is dict and type(entry.progress.get("step")) is int and type(entry.config) is dict
    known = known and is_number(entry.progress.get("total_epoch", 0))
    seeds = type(entry.seeds) is list and all(type(seed) is int for seed in entry.seeds)
    return known and seeds and all(isinstance(text, str) for text in texts)


def write_index(folder: Path, runs: Index) -> None:
    """Keep the index, if it can be kept."""
    kept = {name: (stamp, vars(entry)) for name, (stamp, entry) in runs.items()}
    # a study on a full or read-only disk, or with a folder whose name is not Unicode, opens all the same
    with contextlib.suppress(WaterjarError, UnicodeEncodeError):
        write_file(folder / INDEX, pack({"version": _VERSION, "runs": kept}), sync=False)
