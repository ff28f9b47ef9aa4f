"""Repeats in processes of their own. A worker has some groups of one repeat each, and answers what it is asked.

Workers are spawned, have one thread each, open the images memory-mapped (all share one copy), and end by themselves
when whoever started them is gone.
"""

from __future__ import annotations

import io
import multiprocessing
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from waterjar.errors import WaterjarError
from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.binary.repeat_group import groups_of_one
from waterjar.lab.data import ImageData, from_cache, to_cache
from waterjar.lab.memory import PeakMemory

_END = "end"
_LOAD = "load"
_MEMORY = "peak memory"


class ProcessEngine:
    """Worker processes, seen from the one that records. `shares` are the repeats of each worker."""

    def __init__(
        self, config: BinaryConfig, data: ImageData, shares: Sequence[Sequence[int]], *, device: str, scratch: Path
    ) -> None:
        cache = to_cache(data, scratch)
        context = multiprocessing.get_context("spawn")
        self._shares = [list(share) for share in shares]
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        for share in self._shares:
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_worker, args=(theirs, cache, config.model_dump(mode="json"), share, device), daemon=True
            )
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)
        self._gather()  # wait until all are ready

    def ask(self, request: str, *arguments: Any) -> list[Any]:
        """All workers at once; the answers in the order of the repeats."""
        for worker in range(len(self._pipes)):
            self._send(worker, (request, arguments))
        return self._gather()

    def load(self, states: Sequence[Any]) -> None:
        """Give every group its state."""
        for worker, share in enumerate(self._shares):
            self._send(worker, (_LOAD, (_to_bytes([states[repeat] for repeat in share]),)))
        self._gather()

    def peak_memory(self) -> int:
        """Of all workers, added up."""
        return sum(self.ask(_MEMORY)[share[0]] for share in self._shares)

    def close(self) -> None:
        """Let them end; one that does not is ended."""
        for pipe in self._pipes:
            try:
                pipe.send((_END, ()))
            except OSError:  # it is gone already
                continue
        for process in self._processes:
            process.join(timeout=10)
            if process.is_alive():
                process.kill()
                process.join()

    def _send(self, worker: int, message: tuple[str, tuple[Any, ...]]) -> None:
        try:
            self._pipes[worker].send(message)
        except OSError as error:
            raise self._lost(worker) from error

    def _gather(self) -> list[Any]:
        found: dict[int, Any] = {}
        faults: list[str] = []
        for worker, share in enumerate(self._shares):
            try:
                kind, content = self._pipes[worker].recv()
            except (EOFError, OSError) as error:
                raise self._lost(worker) from error
            if kind == "fault":
                faults.append(content)
                continue
            answers = _from_bytes(content) if kind == "bytes" else content
            found |= dict(zip(share, answers, strict=True))
        if faults:
            raise WaterjarError(faults[0])
        return [found[repeat] for repeat in sorted(found)]

    def _lost(self, worker: int) -> WaterjarError:
        process = self._processes[worker]
        process.join(timeout=5)
        return WaterjarError(
            f"the worker process of repeats {self._shares[worker]} is gone (exit code {process.exitcode}; "
            "-9 is often a lack of memory): the same command goes on from the last checkpoint, fewer workers need less"
        )


def _worker(*how: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # they reach whoever asks, too, who then closes the pipe
        signal.signal(number, signal.SIG_IGN)
    serve(*how)


def serve(pipe: Connection, cache: Path, config: dict[str, Any], share: list[int], device: str) -> None:
    """What a worker does, until it is told to end or its pipe closes."""
    torch.set_num_threads(1)
    memory = PeakMemory()
    try:
        data = from_cache(cache)
        groups = groups_of_one(BinaryConfig.model_validate(config), data, share, device)
        pipe.send(("done", share))
        while True:
            request, arguments = pipe.recv()
            if request == _END:
                return
            if request == _LOAD:
                for group, state in zip(groups, _from_bytes(arguments[0]), strict=True):
                    group.load_state(state)
                pipe.send(("done", share))
            elif request == _MEMORY:
                pipe.send(("done", [memory.largest() or 0] * len(share)))
            else:
                answers = [getattr(group, request)(*arguments) for group in groups]
                pipe.send(("bytes", _to_bytes(answers)) if request == "state" else ("done", answers))
    except WaterjarError as error:
        pipe.send(("fault", str(error)))
    except (EOFError, BrokenPipeError, ConnectionResetError):  # whoever asked is gone
        return


def _to_bytes(states: list[Any]) -> bytes:
    """Tensors as bytes: sent as they are, torch would pass them through shared files, of which there are few."""
    buffer = io.BytesIO()
    torch.save(states, buffer)
    return buffer.getvalue()


def _from_bytes(content: bytes) -> list[Any]:
    found: list[Any] = torch.load(io.BytesIO(content), weights_only=True)
    return found
