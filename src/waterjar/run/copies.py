"""Where the copy of a migrated run goes: what is there already, and whether it is a copy that was begun or finished."""

from __future__ import annotations

import re
from pathlib import Path

from waterjar.errors import WaterjarError
from waterjar.run import seal
from waterjar.run.annotations import FILE, read_annotations
from waterjar.run.disk import write_file
from waterjar.run.reader import Run, open_run
from waterjar.run.schema import SCHEMA_VERSION
from waterjar.run.store import MANIFEST, PRIVATE, ROOT, ROOT_HASH, SYNCED, LocalStore, read_file

_LOCK = f"{PRIVATE}/lock"
_SEAL = (MANIFEST, ROOT_HASH, SYNCED)
_CHUNK = re.compile(r"(.+)/c(?:/\d+)*")


def copy_at(old: Run, place: Path) -> Run | None:
    """The finished copy of a run at `place`; None where one can be made, or was begun and can be made anew.

    Anything else is refused: a place that holds something else, one within a run, and one beside the old run, since a
    study has each run once. Nothing is written.
    """
    folders = place.resolve().parents
    inside = next((folder for folder in folders if (folder / ROOT).exists()), None)
    if inside is not None:
        raise WaterjarError(f"{place} is inside the run {inside}, which is not written to: choose another path")
    file = next((folder for folder in (place, *folders) if folder.exists() and not folder.is_dir()), None)
    if file is not None:
        raise WaterjarError(f"{file} is a file: choose another path")
    check_annotations(old.path, place)
    if old.path.resolve().parent == folders[0] and old.path.resolve() != place.resolve():
        raise WaterjarError(f"{place} is beside the old run, in one study: choose a path outside of {folders[0]}")
    if not _files(place) - {_LOCK, FILE}:
        return None
    new = _copy_of(old, place)
    if new is None:
        raise WaterjarError(f"{place} is not empty: choose a path of its own")
    if _is_begun(new):
        _refuse_strangers(old, new)
        return None
    found = seal.verify(place, new)
    if found.state != "sealed":
        raise WaterjarError(
            f"{place} is {found.state} ({found.problems[0]}): it is a copy of {old.path} no more. Move it away"
        )
    return new


def clear(store: LocalStore) -> None:
    """Remove a copy that was begun, which `copy_at` has found to be one; its root, which says so, goes last."""
    for key in _files(store.path) - {_LOCK, FILE, ROOT}:
        store.delete(key)
    folders = [folder for folder in store.path.rglob("*") if folder.is_dir() and folder.name != PRIVATE]
    for folder in sorted(folders, key=lambda one: -len(one.parts)):
        folder.rmdir()
    store.delete(ROOT)


def check_annotations(old: Path, new: Path) -> None:
    """Refuse damaged annotations, and a place that has others than those that would be copied there."""
    given, there = read_annotations(old), read_annotations(new)
    if given is not None and there is not None and given.digest != there.digest:
        raise WaterjarError(f"{new / FILE} says something else than {old / FILE}: move one of them away")


def copy_annotations(old: Path, new: Path) -> None:
    """Put the annotations of a run or study beside its copy, to the byte; where there are none, nothing."""
    if read_annotations(old) is not None and read_annotations(new) is None:
        write_file(new / FILE, read_file(old, FILE))


def _files(place: Path) -> set[str]:
    """All that is in a folder but other folders, and but drafts of ours."""
    items = [item for item in place.rglob("*") if not item.is_dir() or item.is_symlink()] if place.is_dir() else []
    names = {item.relative_to(place).as_posix() for item in items}
    return {name for name in names if not name.startswith(f"{PRIVATE}/draft-")}


def _copy_of(old: Run, place: Path) -> Run | None:
    """What is at `place`, if its root says that it was copied of this very run, and nobody has recorded into it."""
    if not (place / ROOT).is_file():
        return None
    new = open_run(place)
    about = new.attributes.get("migrated_from") or {}
    is_copy = about.get("root_hash") == old.root_hash and new.attributes["waterjar_schema"] == SCHEMA_VERSION
    return new if is_copy and new.attributes["provenance"] == old.attributes["provenance"] else None


def _is_begun(new: Run) -> bool:
    """Whether the seal is not complete: copies of earlier versions called themselves sealed before they were."""
    signed = (new.path / f"{MANIFEST}.sig").exists()
    return not signed and (new.status != "sealed" or not (new.path / MANIFEST).exists())


def _refuse_strangers(old: Run, new: Run) -> None:
    """Refuse to make a copy anew in a folder that holds what no copying has put there."""
    present = _files(new.path)
    nodes = {key.rpartition("/")[0] for key in present if key.endswith("/zarr.json")}
    chunks = {key: _CHUNK.fullmatch(key) for key in present}
    made = {key for key, found in chunks.items() if key.endswith("/zarr.json") or (found and found[1] in nodes)}
    strangers = sorted(present - made - {_LOCK, FILE, ROOT, *_SEAL})
    if strangers:
        raise WaterjarError(
            f"{new.path} is a copy of {old.path} that was not finished, and holds {strangers[0]}, which is none of it: "
            "move that away"
        )
