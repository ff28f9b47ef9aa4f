"""Where a run's bytes go: atomic puts, one root swap a commit, one writer at a time.

An object store has neither rename nor process locks; a second class with these methods would serve it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from waterjar.errors import WaterjarError

ROOT = "zarr.json"
PRIVATE = ".waterjar"
"""Holds what is not data: the lock, files in the making, manifest and signature."""


MANIFEST = f"{PRIVATE}/manifest.sha256"
ROOT_HASH = f"{PRIVATE}/root.sha256"


LARGEST = 2**28
"""Bytes of a file that is not a chunk: a root, a manifest, a node."""


def read_file(folder: Path, key: str, limit: int = LARGEST) -> bytes:
    """A file of a run: a regular one of at most `limit` bytes, and no link on any level below the run's folder.

    Anything else (a pipe that never ends, a device, a file of somebody else's) is an OSError that says so.
    """
    place = os.fspath(folder)
    *folders, name = key.split("/")
    for part in folders:
        place = f"{place}/{part}"
        if stat.S_ISLNK(os.lstat(place).st_mode):
            raise OSError(errno.ELOOP, "it is behind a link: a run's files stand in its own folder", place)
    descriptor = os.open(f"{place}/{name}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", file.name)
        if about.st_size > limit:
            raise OSError(errno.EFBIG, f"it has {about.st_size} bytes; at most {limit} were expected", file.name)
        try:
            return file.readall()[: limit + 1]
        except MemoryError as error:
            raise OSError(errno.ENOMEM, f"its {about.st_size} bytes do not fit into memory", file.name) from error


def sha256(data: bytes) -> str:
    """The checksum of a file."""
    return hashlib.sha256(data).hexdigest()


class LocalStore:
    """A directory on a POSIX file system."""

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        self.path = path
        self._private = path / PRIVATE
        self._sync = sync
        self._known: set[Path] = set()
        self._lock: IO[str] | None = None

    def patch(self, key: str, offset: int, data: bytes) -> None:
        """Write into a file, at a place that no reader looks at yet."""
        try:
            descriptor = os.open(f"{self.path}/{key}", os.O_WRONLY)
            try:
                written = os.pwrite(descriptor, data, offset)
                if written != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if self._sync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self._unwritten(key, error) from error

    def put(self, key: str, data: bytes) -> str:
        """Write a file whole or not at all; returns its SHA-256."""
        target = self.path / key
        draft = self._private / f"draft-{os.getpid()}"
        try:
            if target.parent not in self._known:
                target.parent.mkdir(parents=True, exist_ok=True)
                self._private.mkdir(exist_ok=True)
                self._known.add(target.parent)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                if self._sync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(draft, target)  # noqa: PTH105 - the hot path of every commit
            if self._sync:
                _sync_directory(target.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise self._unwritten(key, error) from error
        return sha256(data)

    def _unwritten(self, key: str, error: OSError) -> WaterjarError:
        return WaterjarError(
            f"could not write {self.path / key}: {error.strerror}. What was recorded before is intact and readable; "
            "make room or choose another place, then log this step again or resume"
        )

    @classmethod
    def hasher(cls) -> LocalStore:
        """A store that only says what a file would hash to."""
        return _Hasher(Path())

    def put_root(self, data: bytes) -> None:
        """Make everything put so far visible at once."""
        self.put(ROOT, data)

    def get(self, key: str) -> bytes:
        """Read a file."""
        try:
            return read_file(self.path, key)
        except OSError as error:
            raise WaterjarError(f"could not read {self.path / key}: {error.strerror}") from error

    def delete(self, key: str) -> None:
        """Remove a file that is no longer part of the run."""
        (self.path / key).unlink(missing_ok=True)

    def files(self) -> Iterator[str]:
        """Every file of the run, the private ones left out."""
        for folder, folders, files in os.walk(self.path):
            here = Path(folder)
            if here == self.path and PRIVATE in folders:
                folders.remove(PRIVATE)
            for name in files:
                yield (here / name).relative_to(self.path).as_posix()

    def lock(self) -> None:
        """Become the only writer; a living other one is an error that names its pid.

        The lock goes with its process, so what a killed one leaves behind is in nobody's way. It belongs to
        the open file, so that reading or copying the run's folder does not lose it; a forked child (a data-loading
        worker may outlive its parent) closes its copy at once.
        """
        try:
            self._private.mkdir(parents=True, exist_ok=True)
            handle = (self._private / "lock").open("a+")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise WaterjarError(f"could not write to {self.path}: {why}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            handle.seek(0)
            handle.truncate()
            handle.write(str(os.getpid()))
            handle.flush()
            for stale in self._private.glob("draft-*"):
                stale.unlink()
        except BlockingIOError as error:
            handle.seek(0)
            holder = handle.read().strip()
            handle.close()
            raise WaterjarError(
                f"{self.path} is being written by process {holder or 'unknown'}: a run has one writer. "
                "Wait for it, stop it, or record to another path"
            ) from error
        except OSError as error:
            with contextlib.suppress(OSError):
                handle.close()
            raise self._unwritten(f"{PRIVATE}/lock", error) from error
        self._lock = handle
        _held.add(handle)

    def unlock(self) -> None:
        """Let the next writer in. The file stays: removing it would let two writers hold two locks."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._lock.truncate(0)
            self._lock.close()
            self._lock = None


_held: weakref.WeakSet[IO[str]] = weakref.WeakSet()


def _close_in_child() -> None:
    for handle in list(_held):
        handle.close()  # the parent's lock stays: it belongs to the file as the parent opened it


os.register_at_fork(after_in_child=_close_in_child)


class _Hasher(LocalStore):
    def put(self, key: str, data: bytes) -> str:
        return sha256(data)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
