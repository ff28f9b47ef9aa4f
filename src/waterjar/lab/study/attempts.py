"""How often a run is tried, on whatever executor: the one place that says when it is set aside.

Every attempt leaves word in a file beside the run: when it begins, with the step that is recorded by then, and how it
ended. An attempt of which nothing more is heard was lost with its worker. So it does not matter who takes a run up
again, the study or the executor by itself (a dask scheduler does, and Slurm may): whoever begins it counts.

A run is set aside when it has raised MOST times, or lost MOST workers in a row without a new recorded step. Being told
to stop (SIGTERM, when a cluster wants its machine back) counts as neither.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, get_args

from waterjar.errors import WaterjarError
from waterjar.lab import stopping
from waterjar.lab.study.executors import LostWorkerError, reason
from waterjar.run.root import read_root
from waterjar.run.store import BUSY, ROOT, LocalStore, read_file

MOST = 3
"""Failures of one kind, with which a run is set aside."""
FOLDER = ".waterjar/attempts"
"""In the study's folder."""
DONE: Final = "done"
INTERRUPTED: Final = "interrupted"
"""What an attempt that did not fail comes to."""

Kind = Literal["began", "done", "interrupted", "raised", "lost", "busy"]
_LARGEST = 2**22  # bytes of the file of one run
_LONGEST = 2000  # characters of a reason
_WAIT = 60.0  # seconds for a worker that was given up to let go of its run


@dataclasses.dataclass(frozen=True)
class Event:
    """A begin or an end of an attempt."""

    kind: Kind
    step: int
    """The last recorded one by then; -1 if there is none."""
    why: str = ""


@dataclasses.dataclass
class Record:
    """What the events of a run come to."""

    began: int = 0
    raises: list[str] = dataclasses.field(default_factory=list)
    losses: list[str] = dataclasses.field(default_factory=list)
    """Causes, as far as they are known, of the workers lost in a row without a new recorded step."""
    busy: int = 0
    """Times in a row that another process wrote the run, without a new recorded step."""
    lost: int = 0
    """Workers lost altogether."""

    @property
    def set_aside(self) -> str | None:
        """Why it is not tried again; None if it may be."""
        if len(self.raises) >= MOST:
            same = len(set(self.raises)) == 1
            said = self.raises[0] if same else "; ".join(f"({n}) {why}" for n, why in enumerate(self.raises, 1))
            return f"{said} (raised {len(self.raises)} times, so it was set aside)"
        if len(self.losses) >= MOST:
            return _post_mortem(self.losses)
        return None


def record(events: list[Event]) -> Record:
    """Add up the events of a run, in their order.

    >>> record([Event("began", -1), Event("lost", -1, "SIGKILL"), Event("began", 4), Event("began", 4)]).losses
    ['']
    """
    found = Record()
    best, under_way = events[0].step if events else -1, False
    for event in events:
        new = event.step > best
        if new:
            best, found.busy = event.step, 0
            found.losses.clear()
        unheard = event.kind == "began" and under_way
        if event.kind == "lost" or unheard:
            found.lost += 1
            found.losses += [] if new else [event.why if event.kind == "lost" else ""]
        if event.kind == "began":
            found.began += 1
        elif event.kind == "raised":
            found.raises.append(event.why)
        elif event.kind == "busy":
            found.busy += 1
        under_way = event.kind == "began"
    return found


class Attempts:
    """The attempts at one run by one study under way; those of other times, in the same file, are not counted."""

    def __init__(self, run: Path, session: str) -> None:
        self._run = run
        self._session = session
        self._folder = run.parent / FOLDER
        self._file = f"{run.name}.jsonl"

    def events(self) -> list[Event]:
        """What has left word so far. What is no word of ours, such as half a line, is none."""
        try:
            text = read_file(self._folder, self._file, _LARGEST).decode(errors="replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise WaterjarError(f"could not read {self._folder / self._file}: {error.strerror}") from error
        found = (_event(line, self._session) for line in text.splitlines())
        return [event for event in found if event is not None]

    def note(self, kind: Kind, why: str = "") -> None:
        """Leave word."""
        word = {"session": self._session, "kind": kind, "step": step_of(self._run), "why": why[:_LONGEST]}
        line = json.dumps({**word, "host": socket.gethostname(), "pid": os.getpid()}) + "\n"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            place = os.open(self._folder / self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            try:
                os.write(place, line.encode())  # at once, so that words of two processes do not mix
            finally:
                os.close(place)
        except OSError as error:
            raise WaterjarError(f"could not write {self._folder / self._file}: {error.strerror}") from error

    def note_end(self, error: BaseException) -> None:
        """Leave word of what ended an attempt."""
        if isinstance(error, LostWorkerError):
            self.note("lost", error.cause)
        else:
            self.note("busy" if BUSY in str(error) else "raised", reason(error))

    def forget(self) -> None:
        """Remove the file: the run is complete."""
        (self._folder / self._file).unlink(missing_ok=True)


def _event(line: str, session: str) -> Event | None:
    try:
        word = json.loads(line)
        kind, step, why = word["kind"], word["step"], word["why"]
        known = word["session"] == session and kind in get_args(Kind) and type(step) is int and isinstance(why, str)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return Event(kind, step, why) if known else None


def step_of(run: Path) -> int:
    """The last recorded step of a run; -1 if there is none, or none that can be read."""
    try:
        return int(read_root(run)["attributes"]["progress"]["step"]) if (run / ROOT).exists() else -1
    except (WaterjarError, LookupError, TypeError, ValueError):
        return -1


def attempt(session: str, run: str, fn: Callable[..., Any], *args: Any) -> str:
    """What a worker does with a run: `fn`, and word of how it began and ended. Returns DONE or INTERRUPTED.

    A run that was taken up again may still be under the lock of a worker that is given up but not gone yet (its parent
    or its network is): it is waited for, so that no run is ever computed twice at a time.
    """
    attempts = Attempts(Path(run), session)
    before = attempts.events()
    if record([*before, Event("began", step_of(Path(run)))]).set_aside:  # the executor has taken it up by itself
        attempts.note("lost")
        raise LostWorkerError("")
    attempts.note("began")
    try:
        if before:
            _wait_until_free(Path(run))
        fn(*args)
    except KeyboardInterrupt:
        if not stopping.requested():  # Ctrl-C, where the study itself computes
            raise
        attempts.note(INTERRUPTED)
        return INTERRUPTED
    except Exception as error:
        if stopping.requested():  # such as that of a helper process, which was told to stop as well
            attempts.note(INTERRUPTED, reason(error))
            return INTERRUPTED
        attempts.note_end(error)
        raise
    attempts.note(DONE)
    return DONE


def _wait_until_free(run: Path) -> None:
    """Wait until nobody writes a run; the error of a lock that is held for too long."""
    end = time.monotonic() + _WAIT
    while (run / ROOT).exists():
        store = LocalStore(run)
        try:
            store.lock()
        except WaterjarError as error:
            if BUSY not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.2)
        else:
            store.unlock()
            return


def _post_mortem(causes: list[str]) -> str:
    known = ", ".join(dict.fromkeys(cause for cause in causes if cause)) or "nothing more is known"
    text = f"its worker was lost {len(causes)} times ({known}) without a new recorded step, so it was set aside"
    if "SIGKILL" in known:
        return (
            f"{text}. Most likely the machine ran out of memory: run fewer at a time (--workers 1), or make the run "
            "smaller (training.batch_size, the network's width, buffer_size, recording.samples)"
        )
    if "SIG" in known or "exit code" in known:
        return f"{text}. That is a crash of compiled code, of torch or a driver, not of the run's settings"
    return text
