"""How the repeats of a run are trained: one after the other, all at once, or in processes of their own.

| engine | what runs |
|---|---|
| loop | one repeat after the other, by plain autograd |
| vmap | repeats stacked, all at once or some MB of weights at a time: `torch.func.vmap`, or batched products |
| processes | as `loop`, the repeats shared out to worker processes |
| auto | whichever of these a short measurement finds quickest |

All of them train the same cohorts by the same rules; a repeat draws the same numbers in each. `loop` and `processes`
give the same bits, because to a repeat they are the same; `vmap` gives the same numbers to float tolerance.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from waterjar.errors import unknown_name
from waterjar.lab.binary.cohort import Cohort, cohorts_of_one
from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.binary.pupil import first_network
from waterjar.lab.binary.workers import ProcessCrew
from waterjar.lab.config import cores
from waterjar.lab.data import ImageData
from waterjar.lab.networks import Network

EngineName = Literal["auto", "loop", "vmap", "processes"]
ENGINES: tuple[str, ...] = get_args(EngineName)
STACKED_BYTES = 2**23
"""Weights that are trained at once: with what else a step touches they stay in the cache, and calls weigh little."""
_STARTING_A_WORKER = 5.0
"""Seconds: what a process takes to import torch and open the data, told generously."""


class Crew(Protocol):
    """The cohorts of a run, wherever they are."""

    def ask(self, request: str, *arguments: Any) -> list[Any]:
        """Call a method of every cohort; the answers in the order of the repeats."""
        ...

    def load(self, states: Sequence[Any]) -> None:
        """Give every cohort its state."""
        ...

    def peak_memory(self) -> int:
        """Largest resident memory of processes beside this one, in bytes, added up."""
        ...

    def close(self) -> None:
        """No more questions."""
        ...


class LocalCrew:
    """Cohorts in this process."""

    def __init__(self, cohorts: Sequence[Cohort]) -> None:
        self._cohorts = list(cohorts)

    def ask(self, request: str, *arguments: Any) -> list[Any]:
        """One cohort after the other: a cohort's weights stay in the cache over several batches."""
        return [getattr(cohort, request)(*arguments) for cohort in self._cohorts]

    def load(self, states: Sequence[Any]) -> None:
        """Give every cohort its state."""
        for cohort, state in zip(self._cohorts, states, strict=True):
            cohort.load_state(state)

    def peak_memory(self) -> int:
        """There are no other processes."""
        return 0

    def close(self) -> None:
        """Nothing to end."""


def hire(
    engine: str, config: BinaryConfig, data: ImageData, *, device: str, scratch: Path, workers: int | None = None
) -> Crew:
    """The crew of an engine (not `auto`). `scratch` is where processes find the images."""
    repeats = range(len(config.repeat_seeds))
    if engine == "processes":
        count = min(len(repeats), workers or cores())
        shares = [list(repeats[k::count]) for k in range(count)]
        return ProcessCrew(config, data, shares, device=device, scratch=scratch)
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    if engine == "vmap":
        network = first_network(config, (config.channels, *data.image_size), 0)
        return LocalCrew([Cohort(config, data, some, device) for some in stacks(config, network, device)])
    return LocalCrew(cohorts_of_one(config, data, repeats, device))


def choose(
    config: BinaryConfig, data: ImageData, *, device: str, workers: int | None = None, steps: int | None = None
) -> str:
    """The engine that trains a batch of all repeats in the least time, by a try of one repeat and of all at once.

    `steps` is how many batches it will be for, if not those of the config: starting processes must pay.
    """
    repeats = len(config.repeat_seeds)
    if repeats == 1:
        return "loop"
    alone = Cohort(config, data, [0], device)
    alone.begin_task(0)
    steps = steps or config.tasks.number * config.training.epochs * len(alone.bounds)
    one_by_one = repeats * _seconds(lambda: alone.train(0, 0, 1))
    times = {"loop": steps * one_by_one}
    stack = stacks(config, first_network(config, (config.channels, *data.image_size), 0), device)[0]
    together = Cohort(config, data, stack, device)
    together.begin_task(0)
    times["vmap"] = steps * _seconds(lambda: together.train(0, 0, 1)) * repeats / len(stack)
    count = min(repeats, workers or cores())
    if count > 1 and device == "cpu":
        times["processes"] = steps * one_by_one * -(-repeats // count) / repeats + _STARTING_A_WORKER
    return min(times, key=lambda name: times[name])


def stacks(config: BinaryConfig, network: Network, device: str) -> list[range]:
    """Which repeats are stacked for `vmap`: on a CPU as many as have their weights in its cache; elsewhere all.

    It is a function of the config alone, so that a run has the same bits on every CPU of a kind.
    """
    repeats = len(config.repeat_seeds)
    each = 4 * sum(weights.numel() for weights in network.parameters())
    most = max(2, round(STACKED_BYTES / each)) if device == "cpu" else repeats
    count = -(-repeats // most)
    ends = [round(repeats * k / count) for k in range(count + 1)]
    return [range(start, stop) for start, stop in itertools.pairwise(ends)]


def _seconds(step: Callable[[], object]) -> float:
    """Of one step: the least of three, after one that warms up."""
    found = []
    for _ in range(4):
        began = time.perf_counter()
        step()
        found.append(time.perf_counter() - began)
    return min(found[1:])
