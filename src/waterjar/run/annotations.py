"""What was forgotten while recording, kept beside the sealed bytes, never in them.

`<run>/.waterjar/annotations.json`, or the same in the folder of a study for all its runs. It carries a checksum, and
its hash is named beside every number that rests on it. Manifest and seal of the run do not speak of it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waterjar.errors import WaterjarError
from waterjar.run.disk import write_file
from waterjar.run.identity import plain
from waterjar.run.root import DamagedError
from waterjar.run.stamped import pack, to_json, unpack
from waterjar.run.store import ROOT, read_file, sha256

FILE = ".waterjar/annotations.json"
PARTS = ("eval_task", "chance", "classes", "probe_labels", "note")
"""What can be told: the task of eval sets, chance, names of classes, labels of the samples of snapshots, and a note."""
_LARGEST = 2**24


class AnnotationsError(DamagedError):
    """Annotations that cannot be read, or do not fit; the run beside them is what it was."""


@dataclass(frozen=True)
class Annotations:
    """What was added to a run, or to all runs of a study, and the SHA-256 of the file that says it (of both files)."""

    entries: dict[str, Any]
    digest: str

    @property
    def mark(self) -> str:
        """Changes with whatever is read of a run: with all but a note; empty where a note is all."""
        read = {part: value for part, value in sorted(self.entries.items()) if part != "note"}
        return sha256(to_json(read)) if read else ""


def read_annotations(folder: Path) -> Annotations | None:
    """The annotations beside a run, or of a study; None where there are none. Damaged ones are an error, not none."""
    try:
        text = read_file(folder, FILE, _LARGEST)
        entries = unpack(text)["annotations"]
        if not isinstance(entries, dict):
            raise TypeError("they are no mapping")
        faults = [part for part in PARTS if part in entries and not _is_sound(part, entries[part])]
        if faults:
            raise TypeError(f"{', '.join(faults)} cannot be that")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        raise AnnotationsError(
            folder,
            f"{folder / FILE} is damaged: {why}. 'waterjar annotate {shlex.quote(str(folder))} --remove all' takes it "
            "away",
        ) from error
    return Annotations(entries, sha256(text))


def _is_sound(part: str, value: Any) -> bool:
    """Whether a part has the form in which it is written."""
    if part == "eval_task":
        return isinstance(value, dict) and all(isinstance(task, str) or type(task) is int for task in value.values())
    if part == "chance":
        numbers = value.values() if isinstance(value, dict) else [value]
        return all(type(one) in (int, float) and 0 <= one < 1 for one in numbers)
    if part == "classes":
        return isinstance(value, list) and bool(value) and all(isinstance(name, str) and name for name in value)
    if part == "probe_labels":
        return isinstance(value, dict) and all(_are_labels(one) for one in value.values())
    return isinstance(value, str)


def _are_labels(value: Any) -> bool:
    """Whole numbers, one per sample, or such a list per repeat."""
    rows = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    return all(isinstance(row, list) and all(type(n) is int and abs(n) < 2**63 for n in row) for row in rows)


def annotations_of(run: Path) -> Annotations | None:
    """What counts for a run: what was told of it, and before that what was told of all runs of its study.

    Where both speak of the same, the run's own count.
    """
    own, study = read_annotations(run), None
    above = Path(run.absolute()).parent
    if os.path.lexists(above / FILE) and not (above / ROOT).exists():
        study = read_annotations(above)
    if own is None or study is None:
        return own or study
    return Annotations(merged(study.entries, own.entries), f"{own.digest} {study.digest}")


def merged(before: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Annotations with further ones: each in the stead of what was told before, eval sets one by one."""
    both = {**before, **new}
    if "eval_task" in before and "eval_task" in new:
        both["eval_task"] = {**before["eval_task"], **new["eval_task"]}
    return both


def write_annotations(folder: Path, entries: dict[str, Any]) -> Annotations:
    """Put annotations in their place, whole or not at all, in the stead of those that were there."""
    text = pack({"annotations": plain(entries, "annotations")})
    if len(text) > _LARGEST:
        raise WaterjarError(f"annotations of {folder} would take {len(text)} bytes: expected at most {_LARGEST}")
    write_file(folder / FILE, text)
    return Annotations(unpack(text)["annotations"], sha256(text))


def remove_annotations(folder: Path) -> None:
    """Take the annotations of a run or study away, if it has any; also what stands in their place and is no file."""
    try:
        if (folder / FILE).is_dir() and not (folder / FILE).is_symlink():
            shutil.rmtree(folder / FILE)
        else:
            (folder / FILE).unlink(missing_ok=True)
    except OSError as error:
        raise WaterjarError(f"could not remove {folder / FILE}: {error.strerror}") from error


def told(annotations: Annotations | None) -> str:
    """Annotations as one line of JSON, labels by their number alone; empty without any."""
    if annotations is None:
        return ""
    entries = dict(annotations.entries)
    if "probe_labels" in entries:
        entries["probe_labels"] = {name: f"{_count(one)} labels" for name, one in entries["probe_labels"].items()}
    return json.dumps(entries, ensure_ascii=False)


def _count(labels: list[Any]) -> int:
    return sum(len(row) for row in labels) if labels and isinstance(labels[0], list) else len(labels)
