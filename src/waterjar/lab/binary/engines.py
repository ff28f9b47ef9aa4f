"""How the repeats of a run are trained: one after the other, all at once, or in processes of their own.

| engine | what runs |
|---|---|
| loop | one repeat after the other, by plain autograd |
| vmap | repeats stacked, all at once or some MB of weights at a time: `torch.func.vmap`, or batched products |
| processes | as `loop`, the repeats shared out to worker processes |
| auto | on a CPU `loop`, or `processes` where there are cores and it pays; elsewhere `vmap` |

All of them train the same groups by the same rules; a repeat draws the same numbers in each. `loop` and `processes`
give the same bits, because to a repeat they are the same; `vmap` gives the same numbers to float tolerance, and a run
of it has an identity of its own. `auto` is a rule over what is declared, so that its bits never hang on a stopwatch or
on the number of cores. On one core `vmap` takes 1.5 to 5.7 times as long as `loop` for the CNN and hardly less for
perceptrons; it gains where layers and batches are tiny (2.7 times at 32 units and batches of 16).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from waterjar.errors import unknown_name
from waterjar.lab import networks
from waterjar.lab.binary.class_tasks import draw_tasks
from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.binary.learner import first_network
from waterjar.lab.binary.repeat_group import RepeatGroup, groups_of_one
from waterjar.lab.binary.workers import ProcessEngine
from waterjar.lab.config import cores
from waterjar.lab.data import ImageData
from waterjar.lab.loop import BACKWARD_COST
from waterjar.lab.networks import Network

EngineName = Literal["auto", "loop", "vmap", "processes"]
ENGINES: tuple[str, ...] = get_args(EngineName)
STACKED_BYTES = 2**23
"""Weights that are trained at once: with what else a step touches they stay in the cache, and calls weigh little."""
_STARTING_A_WORKER = 5.0
"""Seconds: what a process takes to import torch and open the data, told generously."""
_CALLS, _FLOPS = 2e-4, 2e10
"""Of a core: seconds for what a batch of a network costs whatever its size, and operations per second, about."""


class Engine(Protocol):
    """The groups of a run, wherever they are."""

    def ask(self, request: str, *arguments: Any) -> list[Any]:
        """Call a method of every group; the answers in the order of the repeats."""
        ...

    def load(self, states: Sequence[Any]) -> None:
        """Give every group its state."""
        ...

    def peak_memory(self) -> int:
        """Largest resident memory of processes beside this one, in bytes, added up."""
        ...

    def close(self) -> None:
        """No more questions."""
        ...


class LocalEngine:
    """Groups in this process."""

    def __init__(self, groups: Sequence[RepeatGroup]) -> None:
        self._groups = list(groups)

    def ask(self, request: str, *arguments: Any) -> list[Any]:
        """One group after the other: a group's weights stay in the cache over several batches."""
        return [getattr(group, request)(*arguments) for group in self._groups]

    def load(self, states: Sequence[Any]) -> None:
        """Give every group its state."""
        for group, state in zip(self._groups, states, strict=True):
            group.load_state(state)

    def peak_memory(self) -> int:
        """There are no other processes."""
        return 0

    def close(self) -> None:
        """Nothing to end."""


def start(
    engine: str, config: BinaryConfig, data: ImageData, *, device: str, scratch: Path, workers: int | None = None
) -> Engine:
    """Start an engine by its name (not `auto`). `scratch` is where processes find the images."""
    repeats = range(len(config.repeat_seeds))
    if engine == "processes":
        count = min(len(repeats), workers or cores())
        shares = [list(repeats[k::count]) for k in range(count)]
        return ProcessEngine(config, data, shares, device=device, scratch=scratch)
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    if engine == "vmap":
        network = first_network(config, (config.channels, *data.image_size), 0)
        return LocalEngine([RepeatGroup(config, data, some, device) for some in stacks(config, network, device)])
    return LocalEngine(groups_of_one(config, data, repeats, device))


def is_stacked(engine: str, repeats: int, device: str) -> bool:
    """Whether repeats go through one call together, which rounds otherwise than one at a time: it identifies a run.

    >>> is_stacked("vmap", 3, "cpu"), is_stacked("auto", 3, "cpu"), is_stacked("auto", 3, "cuda")
    (True, False, True)
    """
    return repeats > 1 and (engine == "vmap" or (engine == "auto" and device != "cpu"))


def choose(config: BinaryConfig, data: ImageData, *, device: str, workers: int | None = None) -> str:
    """The engine that `auto` stands for. How many cores there are decides between two that give the same bits."""
    repeats = len(config.repeat_seeds)
    if is_stacked("auto", repeats, device):
        return "vmap"
    count = min(repeats, workers or cores())
    spared = _seconds(config, data) * (repeats - -(-repeats // max(1, count)))
    return "processes" if device == "cpu" and spared > _STARTING_A_WORKER else "loop"


def _seconds(config: BinaryConfig, data: ImageData) -> float:
    """What the training of one repeat takes on a core, about, by the operations that it needs."""
    network = first_network(config, (config.channels, *data.image_size), 0)
    taught = 1 + config.experts + config.random_baseline + config.multitask
    epochs, n_train = config.tasks.number * config.training.epochs, draw_tasks(data, config).n_train
    batches = -(-n_train // config.training.batch_size)
    return taught * epochs * (batches * _CALLS + n_train * BACKWARD_COST * networks.flops(network) / _FLOPS)


def processes_a_run(runs: int) -> int:
    """Processes that the repeats of one run may be shared out to, when so many runs go on at a time."""
    return max(1, cores() // runs)


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
