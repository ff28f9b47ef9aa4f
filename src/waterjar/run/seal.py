"""The seal: a checksum per file, one root hash over them, and whether both still hold.

`.waterjar/manifest.sha256` lists the SHA-256 of every file, `.waterjar/root.sha256` that of the manifest: the
root hash. Both are in the format of `sha256sum`, so they can be checked without waterjar. Whoever edits a run can
recompute a bare hash; therefore it is also kept in the study's ledger, printed on what is made from the run,
and can be signed with an SSH key (`waterjar.run.signature`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from waterjar.errors import WaterjarError
from waterjar.run import ledger
from waterjar.run.checks import damage, is_zarr
from waterjar.run.disk import as_path
from waterjar.run.manifest import read_manifest, root_line
from waterjar.run.root import NewerSchemaError, NotARunError, root_and_digest
from waterjar.run.store import MANIFEST, ROOT, ROOT_HASH, LocalStore, read_file, sha256
from waterjar.run.writer import TreeWriter

if TYPE_CHECKING:
    from waterjar.run.reader import Run

_LARGEST_FILE = 2**34
_OF_THE_OCCASION = ("resources/", "events/time/")
State = Literal["sealed", "open", "tampered"]


@dataclass(frozen=True)
class Problem:
    """One thing that does not hold, and where."""

    kind: str
    file: str
    array: str | None = None
    chunk: str | None = None

    def __str__(self) -> str:
        """In words, the array and its chunk first."""
        if self.chunk is not None:
            return f"{self.kind}: array {self.array}, chunk {self.chunk} ({self.file})"
        if self.array is not None:
            return f"{self.kind}: metadata of {self.array} ({self.file})"
        return f"{self.kind}: {self.file}"


@dataclass(frozen=True)
class Verification:
    """What `verify` found: the state, the root hash of a sealed run, and every problem of a tampered one."""

    path: Path
    state: State
    root: str | None = None
    files: int = 0
    problems: list[Problem] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)


def close(store: LocalStore, writer: TreeWriter) -> str:
    """Seal a run: true shapes, manifest, and last the root that says so. Killed in between, it is still open."""
    writer.finish()
    writer.attributes["seal"] = {
        "algorithm": "sha256",
        "manifest": MANIFEST,
        "content": content_hash(writer.digests),
    }
    root = writer.root()
    digests = {**writer.digests, ROOT: sha256(root)}
    manifest = "".join(f"{digests[key]}  {key}\n" for key in sorted(digests))
    found = sha256(manifest.encode())
    # A manifest on the disk is a whole one, of files that are there: cut off before it, the run is open; after it, too.
    store.put_after_all(ROOT_HASH, root_line(found))
    store.put_after_all(MANIFEST, manifest.encode())
    store.put_root(root, sync=True)
    return found


def is_of_the_occasion(key: str) -> bool:
    """Whether a file tells of when and where a run was made, and not of its numbers."""
    return key.startswith(_OF_THE_OCCASION)


def content_hash(digests: dict[str, str]) -> str:
    """Hash of the recorded numbers alone: equal for two runs with the same bits, whenever and wherever they ran.

    The root (provenance, times), /resources (seconds, memory) and the times of events are left out.
    """
    lines = [f"{digests[key]}  {key}\n" for key in sorted(digests) if not is_of_the_occasion(key)]
    return sha256("".join(lines).encode())


def verify(path: str | os.PathLike[str], opened: Run | None = None) -> Verification:
    """Compare every file of a run with its seal; the root of a run that was `opened` is not read again.

    An open run has no seal yet: its files are compared with the checksums inside its chunks and its root. A seal
    or signature beside a root that calls itself open must hold for everything but that root (sealing may have been
    interrupted just before the root was swapped), and a signed run cannot be open.
    """
    folder, digest = as_path(path), None
    try:
        root, digest = root_and_digest(folder) if opened is None else (opened.root, opened.root_digest)
        status = root["attributes"]["status"]
    except (NewerSchemaError, NotARunError) as error:
        if isinstance(error, NewerSchemaError) or not (folder / MANIFEST).exists():
            raise
        root, status = {}, "damaged"
    except WaterjarError as error:
        has_root, has_manifest = os.path.lexists(folder / ROOT), (folder / MANIFEST).exists()  # a link, too
        if not has_root and not has_manifest:
            raise
        if not has_manifest:  # it was open, or lost its seal: there is nothing to compare it with
            return Verification(folder, "tampered", problems=[Problem(str(error), ROOT)])
        root, status = {}, "damaged"
    recorded = ledger.last_root(folder)
    if status in ("sealed", "damaged"):
        return _verify_sealed(folder, recorded, digest)
    problems = [_problem(kind, key) for kind, key in damage(folder, root)]
    if recorded is not None:
        problems.append(Problem(f"the ledger has it sealed as {recorded}, but it is open", ROOT))
    if (folder / MANIFEST).exists():
        beside = _verify_sealed(folder, None, digest).problems
        problems += [problem for problem in beside if problem.file != ROOT and problem not in problems]
        if (folder / f"{MANIFEST}.sig").exists():
            problems.append(Problem("it is signed, and was therefore sealed, but calls itself open", ROOT))
    return Verification(folder, "tampered" if problems else "open", problems=problems)


def _verify_sealed(path: Path, recorded: str | None, root_digest: str | None) -> Verification:
    try:
        root, entries = read_manifest(path)
    except (OSError, ValueError) as error:
        return Verification(path, "tampered", problems=[Problem(f"missing or unreadable ({error})", MANIFEST)])
    problems = _compare(path, entries, {} if root_digest is None else {ROOT: root_digest})
    if _read(path, ROOT_HASH) != root_line(root):
        problems.append(Problem("does not match the manifest", ROOT_HASH))
    if recorded is not None and recorded != root:
        problems.append(Problem(f"the root hash is {root}, the ledger has {recorded}", "ledger"))
    arrays = {key.removesuffix("/zarr.json") for key in entries}
    added = sorted(set(LocalStore(path).files()) - set(entries))
    zarr = [key for key in added if is_zarr(key) or key.partition("/c/")[0] in arrays]
    problems += [_problem("added", key) for key in zarr]
    state: State = "tampered" if problems else "sealed"
    return Verification(path, state, root, len(entries), problems, [key for key in added if key not in zarr])


def _compare(path: Path, entries: dict[str, str], known: dict[str, str]) -> list[Problem]:
    """What is wrong with files; `known` has the digests of those that were read already."""
    problems = []
    for key, digest in entries.items():
        data = b"" if key in known else _read(path, key)
        if data is None:
            problems.append(_problem("missing", key))
        elif (known[key] if key in known else sha256(data)) != digest:
            problems.append(_problem("changed", key))
    return problems


def _read(path: Path, key: str) -> bytes | None:
    """A file of the run itself: not a link to elsewhere, on no level, and nothing that never ends."""
    try:
        return read_file(path, key, _LARGEST_FILE)
    except OSError:
        return None


def _problem(kind: str, key: str) -> Problem:
    array, found, chunk = key.rpartition("/c/")
    if found:
        return Problem(kind, key, array, chunk)
    if key.endswith("/zarr.json"):
        return Problem(kind, key, key.removesuffix("/zarr.json"))
    return Problem(kind, key)
