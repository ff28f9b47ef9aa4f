"""Where a run's bytes go: atomic puts, one root swap a commit, one writer at a time.

What a commit consists of reaches the disk before the root that speaks of it. Where waiting for that at every commit
would take more than 2 % of the time, the root that was last waited for is kept beside the present one (SYNCED): after
a power cut a run goes on from there.

An object store has neither rename nor process locks; a second class with these methods would serve it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from waterjar.errors import WaterjarError
from waterjar.run.disk import make_folder, replace_file, to_disk

ROOT = "zarr.json"
PRIVATE = ".waterjar"
"""Holds what is not data: the lock, files in the making, manifest and signature."""


MANIFEST = f"{PRIVATE}/manifest.sha256"
ROOT_HASH = f"{PRIVATE}/root.sha256"
SYNCED = f"{PRIVATE}/synced.json"
"""The last root that was on the disk with all that it speaks of, while a later one may not be."""
_LOCK = f"{PRIVATE}/lock"
OF_WRITER = frozenset(key.rpartition("/")[2] for key in (_LOCK, SYNCED, MANIFEST, ROOT_HASH))
"""What a writer keeps among the private files, beside its drafts; others are annotations, signatures ..."""

BUSY = "is being written by process"
"""What the error of a second writer says."""
_PAUSE = 50
"""Waiting for the disk is followed by this many times as long without: 2 % of the time."""
_AT_ONCE = 8
_TRIES = 10


LARGEST = 2**28
"""Bytes of a file that is not a chunk: a root, a manifest, a node."""


def read_file(folder: Path, key: str, limit: int = LARGEST) -> bytes:
    """A file of a run: a regular one of at most `limit` bytes, and no link on any level below the run's folder.

    Anything else (a pipe that never ends, a device, a file of somebody else's) is an OSError that says so.
    """
    place = os.fspath(folder)
    if "\0" in key:
        raise OSError(errno.EINVAL, "no file has a zero byte in its name", f"{place}/{key}")
    *folders, name = key.split("/")
    for part in folders:
        place = f"{place}/{part}"
        if stat.S_ISLNK(os.lstat(place).st_mode):
            raise OSError(errno.ELOOP, "it is behind a link: a run's files stand in its own folder", place)
    place = f"{place}/{name}"
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", place)
        if about.st_size > limit:
            raise OSError(errno.EFBIG, f"it has {about.st_size} bytes; at most {limit} were expected", place)
        try:
            return file.readall()[: limit + 1]
        except MemoryError as error:
            raise OSError(errno.ENOMEM, f"its {about.st_size} bytes do not fit into memory", place) from error


def sha256(data: bytes) -> str:
    """The checksum of a file."""
    return hashlib.sha256(data).hexdigest()


class LocalStore:
    """A directory on a POSIX file system."""

    def __init__(self, path: Path, *, sync: bool | None = None) -> None:
        """`sync`: wait for the disk at every commit, never, or (None) as often as costs 2 % of the time."""
        self.path = path
        self._private = path / PRIVATE
        self._sync = sync
        self._known: set[Path] = set()
        self._unsynced: dict[Path, None] = {}  # files and folders, in the order of their first change
        self._root_is_synced = False
        self._next_sync = 0.0
        self._lock: IO[str] | None = None

    def patch(self, key: str, offset: int, data: bytes) -> None:
        """Write into a file, at a place that no reader looks at yet."""
        try:
            descriptor = os.open(f"{self.path}/{key}", os.O_WRONLY)
            try:
                written = os.pwrite(descriptor, data, offset)
                if written != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(descriptor)
            self._unsynced[self.path / key] = None
        except OSError as error:
            raise self._unwritten(key, error) from error

    def put(self, key: str, data: bytes) -> str:
        """Write a file whole or not at all; returns its SHA-256."""
        try:
            target = self._place(key)
            # what replaces a file may not reach the disk after its name: the old contents would be gone, too
            now = self._sync is not False and target.exists()
            self._replace(target, data, sync=now)
        except OSError as error:
            raise self._unwritten(key, error) from error
        self._unsynced |= {target.parent: None} if now else {target: None, target.parent: None}
        return sha256(data)

    def put_after_all(self, key: str, data: bytes) -> None:
        """Write a file that is not on the disk before everything else is."""
        try:
            self._to_disk()
            target = self._place(key)
            self._replace(target, data, sync=self._sync is not False)
        except OSError as error:
            raise self._unwritten(key, error) from error
        self._unsynced[target.parent] = None

    def _place(self, key: str) -> Path:
        target = self.path / key
        if target.parent not in self._known:
            for folder in (one for one in (self._private, target.parent) if one not in self._known):
                self._unsynced |= dict.fromkeys(make_folder(folder, sync=False))
            self._known |= {self._private, target.parent}
        return target

    def _replace(self, target: Path, data: bytes, *, sync: bool) -> None:
        replace_file(self._private / f"draft-{os.getpid()}", target, data, sync=sync)

    def _unwritten(self, key: str, error: OSError) -> WaterjarError:
        return WaterjarError(
            f"could not write {self.path / key}: {error.strerror}. What was recorded before is intact and readable; "
            "make room or choose another place, then log this step again or resume"
        )

    @classmethod
    def hasher(cls) -> LocalStore:
        """A store that only says what a file would hash to."""
        return _Hasher(Path())

    def put_root(self, data: bytes, *, sync: bool = False) -> None:
        """Make everything put so far visible at once; `sync` also where it would not be waited for."""
        try:
            target = self._place(ROOT)
            if self._sync is False:
                self._replace(target, data, sync=False)
                self._unsynced.clear()
            elif sync or self._sync or time.monotonic() >= self._next_sync:
                began = time.monotonic()
                self._to_disk()
                self._replace(target, data, sync=True)
                to_disk(self.path)
                self._mark_synced(began)
            else:
                if self._root_is_synced:
                    self._replace(self.path / SYNCED, target.read_bytes(), sync=True)
                    to_disk(self._private)
                self._replace(target, data, sync=False)
                self._root_is_synced = False
        except OSError as error:
            raise self._unwritten(ROOT, error) from error

    def sync(self) -> None:
        """Wait until all that is visible is on the disk."""
        if self._sync is False or self._root_is_synced:
            return
        began = time.monotonic()
        try:
            self._to_disk()
            to_disk(self.path / ROOT)
            to_disk(self.path)
        except OSError as error:
            raise self._unwritten(ROOT, error) from error
        self._mark_synced(began)

    def _to_disk(self) -> None:
        """Wait for all that was written, in threads that end here: the disk takes many at once as quickly as one."""
        if self._sync is not False:
            paths = list(self._unsynced)
            try:
                with ThreadPoolExecutor(_AT_ONCE) as pool:
                    list(pool.map(_to_disk, (paths[i::_AT_ONCE] for i in range(min(_AT_ONCE, len(paths))))))
            except RuntimeError:  # none can be started any more: the process is ending, or has no memory for it
                _to_disk(paths)
        self._unsynced.clear()

    def _mark_synced(self, began: float) -> None:
        self._root_is_synced = True
        self.delete(SYNCED)
        now = time.monotonic()
        self._next_sync = now + _PAUSE * (now - began)

    def get(self, key: str) -> bytes:
        """Read a file."""
        try:
            return read_file(self.path, key)
        except OSError as error:
            raise WaterjarError(f"could not read {self.path / key}: {error.strerror}") from error

    def delete(self, key: str) -> None:
        """Remove a file that is no longer part of the run."""
        (self.path / key).unlink(missing_ok=True)
        self._unsynced[(self.path / key).parent] = None

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
        for tries in range(_TRIES, 0, -1):  # the one before may remove it with its run, while we open it and lock it
            if self._lock_once(may_be_gone=tries > 1):
                return

    def _lock_once(self, *, may_be_gone: bool) -> bool:
        try:
            self._unsynced |= dict.fromkeys(make_folder(self._private, sync=False))
            handle = (self.path / _LOCK).open("a+")
        except (OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError) and may_be_gone:
                return False
            why = error.strerror if isinstance(error, OSError) else error
            raise WaterjarError(f"could not write to {self.path}: {why}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle.fileno()).st_nlink == 0:
                if not may_be_gone:
                    raise BlockingIOError
                handle.close()
                return False
            handle.seek(0)
            handle.truncate()
            handle.write(str(os.getpid()))
            handle.flush()
            for stale in self._private.glob("draft-*"):
                stale.unlink()
        except BlockingIOError as error:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            way = ": a run has one writer. Wait for it, stop it, or record to another path"
            if _is_held_here(handle):
                way = (
                    ", which is this one: an earlier recorder is still open here. Go on with that one; or seal what it "
                    "has with its close(), and record to another path; or restart this process, after which a run is "
                    "resumed (without a step: begun anew). With `with Recorder(...) as recorder:` none is left open"
                )
            handle.close()
            raise WaterjarError(f"{self.path} {BUSY} {holder}{way}") from error
        except OSError as error:
            with contextlib.suppress(OSError):
                handle.close()
            raise self._unwritten(_LOCK, error) from error
        self._lock = handle
        _held.add(handle)
        return True

    @property
    def is_locked(self) -> bool:
        """Whether this is the only writer."""
        return self._lock is not None

    def unlock(self, *, remove: bool = False) -> None:
        """Let the next writer in; `remove`: without the file, of a run that is gone. Who has opened it looks again."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._lock.truncate(0)
                if remove:
                    (self.path / _LOCK).unlink()
            self._lock.close()
            self._lock = None


_held: weakref.WeakSet[IO[str]] = weakref.WeakSet()


def _is_held_here(handle: IO[str]) -> bool:
    """Whether the lock is that of a writer in this process; its number may be that of another machine's process."""
    about = os.fstat(handle.fileno())
    return any(os.path.samestat(os.fstat(one.fileno()), about) for one in list(_held) if not one.closed)


def _close_in_child() -> None:
    for handle in list(_held):
        handle.close()  # the parent's lock stays: it belongs to the file as the parent opened it


os.register_at_fork(after_in_child=_close_in_child)


def _to_disk(paths: Sequence[Path]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # removed since
            to_disk(path)


class _Hasher(LocalStore):
    def put(self, key: str, data: bytes) -> str:
        return sha256(data)
