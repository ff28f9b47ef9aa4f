"""Where what was forgotten while recording is kept: beside the sealed bytes, never in them.

`<run>/.waterjar/annotations.json`, or the same in the folder of a study for all its runs. It carries a checksum, and
its hash is named beside every number that rests on it. Manifest and seal of the run do not speak of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waterjar.run.disk import write_file
from waterjar.run.identity import plain
from waterjar.run.root import DamagedError
from waterjar.run.stamped import pack, unpack
from waterjar.run.store import read_file, sha256

FILE = ".waterjar/annotations.json"
_LARGEST = 2**24


@dataclass(frozen=True)
class Annotations:
    """What was added to a run, or to all runs of a study, and the SHA-256 of the file that says it."""

    entries: dict[str, Any]
    digest: str


def read_annotations(folder: Path) -> Annotations | None:
    """The annotations beside a run, or of a study; None where there are none. Damaged ones are an error, not none."""
    try:
        text = read_file(folder, FILE, _LARGEST)
        entries = unpack(text)["annotations"]
        if not isinstance(entries, dict):
            raise TypeError("they are no mapping")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedError(folder, f"{folder / FILE} is damaged: {error}") from error
    return Annotations(entries, sha256(text))


def write_annotations(folder: Path, entries: dict[str, Any]) -> Annotations:
    """Put annotations in their place, whole or not at all, in the stead of those that were there."""
    text = pack({"annotations": plain(entries, "annotations")})
    write_file(folder / FILE, text)
    return Annotations(unpack(text)["annotations"], sha256(text))
