"""How every file of ours is written: whole or not at all, and on the disk before anything speaks of it.

A file is written beside its place, brought to the disk, and renamed: a full disk, a kill or a power cut leaves what was
there before. A rename may reach the disk before the contents do, and a name before its folder; hence the two syncs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from waterjar.errors import UnwrittenError, WaterjarError, brief

_DEVICES = (Path("/dev"), Path("/dev/fd"))


def refuse_taken(path: str | os.PathLike[str]) -> None:
    """Refuse a path at which something is, before work is done that would be lost."""
    place = as_path(path)
    try:
        taken = any(one.name != ".waterjar" for one in place.iterdir()) if place.is_dir() else place.exists()
        run = (place / "zarr.json").exists()
    except (OSError, ValueError) as error:
        raise WaterjarError(f"path {str(place)!r} cannot be used: {error}") from error
    if taken:
        raise WaterjarError(
            f"{place} {'holds a run already' if run else 'is not empty'}: expected a path at which there is nothing yet"
        )


def as_path(path: str | os.PathLike[str]) -> Path:
    """Where the caller says that a run or a study is."""
    try:
        return Path(path)
    except TypeError as error:
        raise WaterjarError(f"path={brief(repr(path))}: expected a path, such as 'runs/first'") from error


def write_file(path: str | os.PathLike[str], data: bytes | str, *, sync: bool = True) -> Path:
    """Write a file and the folders above it; an error leaves the file that was there.

    Caches, which can be made again and know whether they are whole, do without `sync`. A link is replaced by the file:
    what it leads to may be somebody else's. /dev/stdout is written to as it is; /dev/shm is a folder like any other.
    """
    target = Path(path)
    content = data.encode() if isinstance(data, str) else data
    try:
        if target.parent in _DEVICES:
            with target.open("wb") as file:
                file.write(content)
            return target
        make_folder(target.parent, sync=sync)
        replace_file(_draft_of(target), target, content, sync=sync)
        if sync:
            to_disk(target.parent)
    except (OSError, ValueError) as error:  # a name with a zero in it
        raise unwritten(target, error) from error
    return target


def write_files(files: Mapping[Path, bytes | str]) -> None:
    """Write files that belong together: an error, such as a full disk, leaves all of those that were there.

    Each is written beside its place first, and only when the disk has all of them are they renamed.
    """
    drafts: list[tuple[Path, Path]] = []
    target = Path()
    try:
        for target, data in files.items():
            make_folder(target.parent)
            drafts.append((_draft_of(target), target))
            _write_draft(drafts[-1][0], data.encode() if isinstance(data, str) else data, sync=True)
        for draft, target in drafts:
            draft.replace(target)
        for folder in dict.fromkeys(target.parent for target in files):
            to_disk(folder)
    except (OSError, ValueError) as error:
        raise unwritten(target, error) from error
    finally:
        for draft, _ in drafts:
            with contextlib.suppress(OSError, ValueError):
                draft.unlink(missing_ok=True)


def _draft_of(target: Path) -> Path:
    return target.with_name(f".{target.name[:50]}-{os.getpid()}.draft")


def replace_file(draft: Path, target: Path, data: bytes, *, sync: bool) -> None:
    """Write `draft` and rename it to `target`, on the same file system; an error leaves `target` as it was.

    `sync` is for the contents; the folder, which has the name, is for the caller to wait for.
    """
    try:
        _write_draft(draft, data, sync=sync)
        os.replace(draft, target)  # noqa: PTH105 - the hot path of every commit
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _write_draft(draft: Path, data: bytes, *, sync: bool) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path, *, sync: bool = True) -> list[Path]:
    """Make a folder and those above it; returns the folders that have a new entry."""
    changed: list[Path] = []
    missing = [] if path.is_dir() else [path]
    while missing:
        try:
            missing[-1].mkdir()
        except FileNotFoundError:
            missing.append(missing[-1].parent)
        except FileExistsError:  # somebody made it meanwhile, or it is a file: whoever writes into it is told
            missing.pop()
        else:
            changed.insert(0, missing.pop().parent)
    if sync:
        for folder in changed:
            to_disk(folder)
    return changed


def to_disk(path: str | os.PathLike[str]) -> None:
    """Wait until a file's contents, or a folder's entries, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def tree_to_disk(folder: Path) -> None:
    """Wait until a folder and all that is in it are on the disk."""
    for place, _, files in os.walk(folder):
        for name in files:
            to_disk(Path(place, name))
        to_disk(place)


@contextmanager
def written_beside(target: Path) -> Iterator[Path]:
    """Yield a folder to write, which becomes `target` at the end; after an error nothing is left of it.

    The draft stands one level deeper than its target will, so that nothing takes it for one of the target's kind.
    """
    if target.exists() or target.is_symlink():
        raise WaterjarError(f"{target} exists already: choose another place, or move it away first")
    made = [folder for folder in target.parents if not folder.exists()]
    draft: Path | None = None
    try:
        make_folder(target.parent)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name[:50]}-", suffix=".partial", dir=target.parent))
        place = draft / target.name
        yield place
        tree_to_disk(place)
        place.rename(target)
        to_disk(target.parent)
        made = []
    except OSError as error:
        raise unwritten(error.filename or target, error) from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        for folder in made:  # the nearest first; those that somebody else has filled since stay
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def unwritten(path: str | os.PathLike[str], error: Exception) -> UnwrittenError:
    """The error for a file that could not be written.

    NumPy's own error for a full disk has no strerror: it says how many values were written.
    """
    return UnwrittenError(f"could not write {os.fspath(path)}: {getattr(error, 'strerror', None) or error}")
