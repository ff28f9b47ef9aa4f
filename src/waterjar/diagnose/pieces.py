"""Long measurements: many independent pieces, on any executor, watched, and kept piece by piece so that they resume."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from waterjar.diagnose.array_file import packed, read_whole
from waterjar.errors import WaterjarError
from waterjar.run.disk import write_file

Arrays = dict[str, NDArray[Any]]
"""What one piece of work comes to."""


class Executor(Protocol):
    """What is needed of an executor: those of concurrent.futures have it, so does dask's."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Start a call some time; the future has `result()` and `cancel()`."""
        ...


class Parts:
    """Pieces kept on disk, one file each, under names made of what they were made from."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> Arrays | None:
        """A piece, if it is there and whole."""
        return read_whole(self._folder / _file(name))

    def put(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep a piece; a full disk only means that it is not kept."""
        with contextlib.suppress(WaterjarError):
            write_file(self._folder / _file(name), packed(arrays), sync=False)

    def clear(self) -> None:
        """Remove all: the whole is kept elsewhere now."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _file(name: str) -> str:
    return f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.npz"


@dataclass(frozen=True)
class PieceRunner:
    """How a long measurement runs; without one, piece after piece in this process."""

    executor: Executor | None = None
    watch: Callable[[int, int], None] | None = None
    """Called with how many pieces are done and how many there are."""
    parts: Parts | None = None

    def run(
        self, function: Callable[..., Arrays], pieces: Mapping[str, Sequence[Any]], ahead: int = 64
    ) -> Iterator[tuple[str, Arrays]]:
        """(name, function(*arguments)) of every piece, in order. At most `ahead` are under way at a time.

        A piece that is kept is not computed again. Stopped, what is done stays kept.
        """
        waiting: list[tuple[str, Any]] = []
        todo = iter(pieces.items())
        done = 0
        try:
            while True:
                while len(waiting) < (ahead if self.executor is not None else 1):
                    name, arguments = next(todo, (None, ()))
                    if name is None:
                        break
                    kept = self.parts.get(name) if self.parts is not None else None
                    if kept is None and self.executor is not None:
                        waiting.append((name, self.executor.submit(function, *arguments)))
                    else:
                        waiting.append((name, kept if kept is not None else function(*arguments)))
                        if kept is None and self.parts is not None:
                            self.parts.put(name, waiting[-1][1])
                if not waiting:
                    return
                name, found = waiting.pop(0)
                if not isinstance(found, dict):
                    found = found.result()
                    if self.parts is not None:
                        self.parts.put(name, found)
                done += 1
                if self.watch is not None:
                    self.watch(done, len(pieces))
                yield name, found
        finally:
            for _, future in waiting:
                if not isinstance(future, dict):
                    future.cancel()
