"""Whether the seals of a study's runs hold, kept beside its results: hashing every file of 1,000 runs takes a while.

A state is believed as long as names, sizes and times of a run's files are what they were when it was found. Bytes may
rot without that: whoever shows a state that was believed says when it was found, and `verify` always looks again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from waterjar.diagnose.cache import FOLDER, fingerprint
from waterjar.errors import WaterjarError
from waterjar.run import seal
from waterjar.run.disk import write_file
from waterjar.run.provenance import now
from waterjar.run.stamped import pack, unpack
from waterjar.run.store import read_file
from waterjar.run.study import Study

FILE = f"{FOLDER}/seals.json"
_STATES = ("sealed", "open", "tampered")


@dataclass(frozen=True)
class Found:
    """What a check of a run's seal found, when (UTC), and at which fingerprint of its files."""

    mark: str
    state: str
    at: str


def seal_states(
    study: Study, marks: Mapping[str, str], *, again: Collection[str] = ()
) -> tuple[dict[str, str], dict[str, str]]:
    """(run -> state, run -> when that was found, of those that were not looked at now).

    `marks` has the fingerprints of the runs by name; those named in `again` are looked at whatever was kept.
    """
    folder = study.path
    known = _read(folder)
    believed = {name for name, mark in marks.items() if name in known and known[name].mark == mark} - set(again)
    runs = {entry.name: entry for entry in (*study.entries, *study.probe_runs)}
    new = {
        name: Found(mark, seal.verify(folder / name, study.open(runs[name])).state, now())
        for name, mark in marks.items()
        if name not in believed
    }
    _keep(folder, known, new)
    states = {name: (new[name] if name in new else known[name]).state for name in marks}
    return states, {name: known[name].at for name in marks if name in believed}


def verify_all(runs: Iterable[Path]) -> list[seal.Verification]:
    """Verify runs and, where their study keeps states of seals, renew those."""
    found = []
    folders: dict[Path, dict[str, Found]] = {}
    for run in runs:
        place = run.resolve()
        mark = fingerprint(run) if (place.parent / FILE).is_file() else ""  # before: what changes meanwhile is stale
        found.append(seal.verify(run))
        if mark:
            folders.setdefault(place.parent, {})[place.name] = Found(mark, found[-1].state, now())
    for folder, new in folders.items():
        _keep(folder, _read(folder), new)
    return found


def _read(folder: Path) -> dict[str, Found]:
    """What was kept; nothing of a file that is damaged, or of another version."""
    try:
        kept = unpack(read_file(folder, FILE))["runs"]
        found = {name: Found(*map(str, of)) for name, of in kept.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return {name: one for name, one in found.items() if one.state in _STATES}


def _keep(folder: Path, known: Mapping[str, Found], new: Mapping[str, Found]) -> None:
    if new:
        rows = {name: (one.mark, one.state, one.at) for name, one in {**known, **new}.items()}
        with contextlib.suppress(WaterjarError):  # a read-only study is checked every time
            write_file(folder / FILE, pack({"runs": rows}), sync=False)
