"""What a study needs of whatever runs its calls, and what is the same in all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any, Literal, Protocol

from waterjar.errors import WaterjarError


class Future(Protocol):
    """What is needed of a future."""

    def done(self) -> bool:
        """Whether it has ended."""
        ...

    def result(self) -> Any:
        """What the call returned."""
        ...

    def exception(self) -> BaseException | None:
        """What ended it, if it failed."""
        ...

    def cancel(self) -> Any:
        """Do not start it any more."""
        ...


class Pool(Protocol):
    """Runs calls, each in a process that may be lost; results come in during `attend`.

    A call whose worker is lost ends with a `LostWorkerError`. Whether it is taken up again is not the pool's business:
    see `attempts`.
    """

    runs_a_machine: int
    """Calls that may share the cores of one machine."""
    stopped: str
    """What became of calls under way when `stop` ended them, as a clause for a person; empty if that goes without."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future:
        """Start a call some time."""
        ...

    def attend(self, seconds: float) -> None:
        """Hand out calls and take in results, for so long at most."""
        ...

    def stop(self) -> None:
        """End what is under way, cleanly if it can be, and what was started for it."""
        ...


@dataclasses.dataclass(frozen=True)
class Needs:
    """What a study asks of a pool."""

    workers: int
    """Calls at a time, where the executor's own settings do not say."""
    folder: Path
    """For files of the executor; on a file system that all workers see under this name."""
    calls: int
    """How many there will be, not counting those that are taken up again."""
    threads: int = 1
    """Cores of one call."""
    device: str = "cpu"
    """As in `resources.device`."""


class LostWorkerError(WaterjarError):
    """The process behind a call is gone, whatever became of it. `cause` is what is known: SIGKILL, exit code 3 ..."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


Told = tuple[Literal["returned", "raised", "lost"], Any]
"""What became of a call on another machine, in words: errors of every kind do not travel."""


def told(fn: Callable[..., Any], args: tuple[Any, ...]) -> Told:
    """Make a call, and tell what became of it."""
    try:
        return "returned", fn(*args)
    except LostWorkerError as error:
        return "lost", error.cause
    except Exception as error:  # noqa: BLE001 - told, not passed over
        return "raised", reason(error)


def settle(future: futures.Future[Any], what: Told) -> None:
    """End a future with what was told of its call."""
    kind, found = what
    if kind == "returned":
        future.set_result(found)
    else:
        future.set_exception(LostWorkerError(found) if kind == "lost" else WaterjarError(found))


def reason(error: BaseException) -> str:
    """An error in one sentence; ours speak for themselves.

    >>> reason(WaterjarError("no room")), reason(KeyError("x"))
    ('no room', "KeyError: 'x'")
    """
    return str(error) if isinstance(error, WaterjarError) else f"{type(error).__name__}: {error}"
