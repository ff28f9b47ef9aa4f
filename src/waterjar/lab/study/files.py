"""What a run takes on a disk: files of a small run of the same kind, scaled by what is declared."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from waterjar.lab.loop import Experiment
from waterjar.run.recorder import Recorder
from waterjar.run.root import read_root

_BLOCK = 4096  # bytes that file systems usually allot at a time, to files and to folders
_LINE = 120  # bytes that a further file adds to the root and the manifest
_COUNTED = ("sample", "example")
"""Dimensions whose length follows from the images that there are."""


@dataclass(frozen=True)
class Growth:
    """The files of one array."""

    along: str
    """The dimension it grows along; empty if it does not."""
    rows: int
    rows_a_chunk: int
    files: int
    bytes: int
    blocks: int
    """Bytes that these files are allotted on the disk."""
    factor: float
    """How many times as many samples or examples a row of the whole run has."""

    def grown(self, rows: int) -> int:
        """Bytes on the disk with so many rows."""
        chunks = -(-(rows if self.along else self.rows) // self.rows_a_chunk)
        times = chunks / max(1, -(-self.rows // self.rows_a_chunk))
        held = self.blocks + self.bytes * (self.factor - 1.0)
        return round(times * held + max(0.0, times - 1.0) * self.files * _LINE)


@dataclass(frozen=True)
class Files:
    """Of a small run."""

    arrays: tuple[Growth, ...]
    rest: int
    """Bytes of everything else in its folder."""

    def grown(self, steps: int, snapshots: int) -> int:
        """Bytes on the disk of a run with so many of both."""
        rows = {"step": steps, "snapshot": snapshots}
        return self.rest + sum(array.grown(rows.get(array.along, array.rows)) for array in self.arrays)


def allotted(folder: Path) -> int:
    """Bytes that a folder takes on a disk that is allotted in blocks: files rounded up, and folders."""
    if not folder.exists():
        return 0
    paths = [folder, *folder.rglob("*")]
    return sum(-(-path.stat().st_size // _BLOCK) * _BLOCK if path.is_file() else _BLOCK for path in paths)


def files_of(run: Path, lengths: Mapping[str, int]) -> Files:
    """Those of a small run. `lengths` are the samples and examples of the whole one, where it has more of them."""
    here = _lengths(run)
    found = []
    for key, node in read_root(run)["consolidated_metadata"]["metadata"].items():
        if node["node_type"] != "array" or not node["shape"]:
            continue
        dims, chunks = node["dimension_names"], node["chunk_grid"]["configuration"]["chunk_shape"]
        files = [path for path in (run / key / "c").rglob("*") if path.is_file()]
        factor = 1.0
        for name in _COUNTED:
            if name in dims and here.get(name):
                factor *= lengths.get(name, here[name]) / here[name]
        along = dims[0] if dims[0] in ("step", "snapshot") else ""
        size = sum(path.stat().st_size for path in files)
        blocks = allotted(run / key / "c")
        found.append(Growth(along, node["shape"][0], chunks[0], len(files), size, blocks, factor))
    return Files(tuple(found), allotted(run) - sum(array.blocks for array in found))


def lengths_of(experiment: Experiment, folder: Path) -> dict[str, int]:
    """How many samples and examples an experiment records; it writes them down to tell."""
    found: dict[str, int] = {}
    with contextlib.suppress(_Enough), Recorder(folder, **experiment.recorder(), summary=False) as recorder:
        experiment.describe(recorder)
        recorder.sync()
        found |= _lengths(folder)
        raise _Enough  # and nothing stays of it
    return found


class _Enough(Exception):
    """Leaves a recorder without a seal."""


def _lengths(run: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in read_root(run)["consolidated_metadata"]["metadata"].values():
        if node["node_type"] == "array":
            there = dict(zip(node["dimension_names"], node["shape"], strict=True))
            found |= {name: max(there[name], found.get(name, 0)) for name in _COUNTED if name in there}
    return found
