"""The study's ledger: one line per sealed run, only ever appended to."""

from __future__ import annotations

import errno
import fcntl
import functools
import json
import os
import stat
from pathlib import Path

from waterjar.errors import WaterjarError, brief
from waterjar.run.disk import to_disk
from waterjar.run.manifest import read_root_hash
from waterjar.run.provenance import now
from waterjar.run.root import read_root
from waterjar.run.store import LARGEST, MANIFEST, read_file

DECLARATION = "study.yaml"
LEDGER = "ledger.jsonl"
_TO_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def append(run: Path, run_id: str, root: str) -> None:
    """Enter a sealed run; a run outside a study has no ledger to enter."""
    place = _place(run)
    study = place.parent
    if not (study / DECLARATION).is_file():
        return
    line = json.dumps({"run": place.name, "run_id": run_id, "root": root, "sealed": now()})
    try:
        descriptor = os.open(study / LEDGER, _TO_APPEND, 0o666)
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
                raise OSError(errno.EINVAL, f"expected a regular file of at most {LARGEST} bytes")
            fcntl.lockf(descriptor, fcntl.LOCK_EX)
            whole, cut = _split(
                os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            )  # the lock goes when any other is closed
            if cut:
                os.truncate(descriptor, len(whole))
            start = "\n" if whole and not whole.endswith(b"\n") else ""
            entry = f"{start}{line}\n".encode()
            if os.write(descriptor, entry) != len(entry):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
            to_disk(study)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise WaterjarError(
            f"{run} is sealed as {root}, but {study / LEDGER} could not be written: {error.strerror}"
        ) from error


def ensure(run: Path, run_id: str) -> None:
    """Enter a sealed run that was killed between its seal and its line."""
    root = read_root_hash(run)
    if root is not None and last_root(run) is None:
        append(run, run_id, root)


def ensure_all(study: Path) -> None:
    """Enter every sealed run of a study that has no line yet."""
    known = {entry["run"] for entry in entries(study)}
    for manifest in sorted(study.glob(f"*/{MANIFEST}")):
        run = manifest.parent.parent
        try:
            attributes = read_root(run)["attributes"]
        except WaterjarError:  # not a run, or a damaged one: verify says so
            continue
        root = read_root_hash(run)
        if run.name not in known and attributes["status"] == "sealed" and root is not None:
            append(run, str(attributes["run_id"]), root)


def _place(run: Path) -> Path:
    """A run's own name and study, however it was addressed (`.` has no name)."""
    return Path(os.path.abspath(run))  # noqa: PTH100 - links are kept: the ledger knows a run by the name it has here


def entries(study: Path) -> list[dict[str, str]]:
    """All lines of a ledger, oldest first."""
    return list(_read(study)[0])


def _read(study: Path) -> tuple[list[dict[str, str]], dict[str, str]]:
    """The lines of a ledger, and run -> the root hash of its last one; read again only when the file has changed."""
    file = study / LEDGER
    try:
        about = file.lstat()
    except FileNotFoundError:
        return [], {}
    return _parse(file, (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino))


@functools.lru_cache(maxsize=4)
def _parse(file: Path, stamp: tuple[int, ...]) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Parse a ledger as it was at one moment, which `stamp` stands for: a study of 3,000 runs asks 3,000 times."""
    found = []
    try:
        text = read_file(file.parent, file.name)
    except OSError as error:
        raise WaterjarError(f"could not read the ledger {file}: {error.strerror}") from error
    for number, line in enumerate(_split(text)[0].splitlines(), 1):
        try:
            entry = json.loads(line)
            found.append({key: str(entry[key]) for key in ("run", "run_id", "root", "sealed")})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise WaterjarError(f"{file}, line {number} is not an entry of a ledger: {brief(line)}") from error
    return found, {entry["run"]: entry["root"] for entry in found}


def _split(text: bytes) -> tuple[bytes, bytes]:
    """What a ledger holds, and a last line that a crash cut off: such a line never was an entry."""
    end = text.rfind(b"\n") + 1
    try:
        json.loads(text[end:] or b"{}")
    except ValueError:
        return text[:end], text[end:]
    return text, b""


def last_root(run: Path) -> str | None:
    """The root hash under which a run was last sealed, if its study's ledger has it."""
    place = _place(run)
    return _read(place.parent)[1].get(place.name)
