"""The study's ledger: one line per sealed run, only ever appended to."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

from waterjar.errors import WaterjarError
from waterjar.run.provenance import now
from waterjar.run.store import MANIFEST, sha256

DECLARATION = "study.yaml"
LEDGER = "ledger.jsonl"


def append(run: Path, run_id: str, root: str) -> None:
    """Enter a sealed run; a run outside a study has no ledger to enter."""
    place = _place(run)
    study = place.parent
    if not (study / DECLARATION).is_file():
        return
    line = json.dumps({"run": place.name, "run_id": run_id, "root": root, "sealed": now()})
    try:
        with (study / LEDGER).open("a") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            file.write(line + "\n")
    except OSError as error:
        raise WaterjarError(
            f"{run} is sealed as {root}, but {study / LEDGER} could not be written: {error.strerror}"
        ) from error


def ensure(run: Path, run_id: str) -> None:
    """Enter a sealed run that was killed between its seal and its line."""
    if (run / MANIFEST).is_file() and last_root(run) is None:
        append(run, run_id, sha256((run / MANIFEST).read_bytes()))


def _place(run: Path) -> Path:
    """A run's own name and study, however it was addressed (`.` has no name)."""
    return Path(os.path.abspath(run))  # noqa: PTH100 - links are kept: the ledger knows a run by the name it has here


def entries(study: Path) -> list[dict[str, str]]:
    """All lines of a ledger, oldest first."""
    file = study / LEDGER
    if not file.is_file():
        return []
    found = []
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            entry = json.loads(line)
            found.append({key: str(entry[key]) for key in ("run", "run_id", "root", "sealed")})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise WaterjarError(f"{file}, line {number} is not an entry of a ledger: {line[:80]!r}") from error
    return found


def last_root(run: Path) -> str | None:
    """The root hash under which a run was last sealed, if its study's ledger has it."""
    place = _place(run)
    found = [entry["root"] for entry in entries(place.parent) if entry["run"] == place.name]
    return found[-1] if found else None
