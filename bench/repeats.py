"""Repeats at once: a training step of R networks, ours by its best engine, beside the same step in JAX (vmap + jit).

The seed authors' CNN (convolutions 16-32-64, each with ReLU and a max pool of 3, two dense layers of 64) and a
perceptron (256, 256) on 28x28 grey images, batches of 128, two classes, one core and one thread on both sides. A step
is what training does with a batch that is there: forward, backward, update by SGD, loss and number of right answers;
ours also takes the norm of the gradient of every eighth batch. Both begin with the same weights and images, and must
end with the same loss.

Rounds alternate between the two processes; a line gives the median of their ratios, in images per CPU second. Ours is
`loop` or `vmap`, whichever a try finds quicker; the rule of `engine="auto"` comes from such tries. The rounds of
`--quick` are too short for numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np
import torch
from numpy.typing import NDArray

from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.binary.engines import stacks
from waterjar.lab.binary.learner import first_network, rule_of
from waterjar.lab.binary.pixels import Pixels
from waterjar.lab.binary.repeat_group import traced
from waterjar.lab.learning.learner import Learner
from waterjar.lab.learning.options import Batch
from waterjar.lab.learning.weights import aligned_rows

BATCH, SIDE, RATE = 128, 28, 0.01


class Job(NamedTuple):
    """What both sides train."""

    network: str
    repeats: int
    steps: int
    """In a round."""


def config_of(job: Job) -> BinaryConfig:
    return BinaryConfig.model_validate(
        {
            "data": "bench",
            "channels": 1,
            "tasks": {"number": 1},
            "training": {"batch_size": BATCH, "lr_features": RATE, "lr_readout": RATE},
            "network": job.network,
            "repeats": job.repeats,
        }
    )


def images_of(job: Job) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """(repeat, batch, height, width, channel), (repeat, batch)."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(job.repeats, BATCH, SIDE, SIDE, 1)).astype(np.float32)
    return images, rng.integers(0, 2, (job.repeats, BATCH))


def ours(job: Job, lap: Callable[[float], None]) -> None:
    """`Learner.observe`, as the groups of either engine call it."""
    config = config_of(job)
    images, labels = images_of(job)
    inputs, targets = torch.from_numpy(images).movedim(-1, -3), torch.from_numpy(labels)
    structure = first_network(config, (1, SIDE, SIDE), 0)
    pixels = Pixels(np.zeros((1, SIDE, SIDE, 3), np.uint8), ((0.5,), (0.25,)), 1)
    rows = np.zeros((job.repeats, BATCH), np.int64)
    size = sum(parameter.numel() for parameter in structure.parameters())
    space = aligned_rows(job.repeats, size, torch.device("cpu"))

    def crew(groups: list[slice]) -> list[tuple[Learner, Batch]]:
        return [
            (
                Learner(
                    rule_of(config),
                    [first_network(config, (1, SIDE, SIDE), seed) for seed in range(some.start, some.stop)],
                    seeds=range(some.stop - some.start),
                    images=pixels,
                    space=space[: some.stop - some.start],
                ),
                Batch(inputs[some], targets[some], labels[some], rows[some]),
            )
            for some in groups
        ]

    def train(learners: list[tuple[Learner, Batch]], steps: int) -> float:
        told = []
        for learner, shown in learners:  # as the trainer does: several batches of one repeat, then of the next
            seen = [(learner.observe(shown, 0, 0, batch), shown.labels) for batch in range(steps)]
            told.append(traced(seen)[-1])
        return float(np.concatenate(told)[:, 0].mean()) / BATCH

    def seconds(groups: list[slice]) -> float:
        learners = crew(groups)
        train(learners, 1)
        began = time.process_time()
        train(learners, job.steps)
        return time.process_time() - began

    engines = {
        "vmap": [slice(some.start, some.stop) for some in stacks(config, structure, "cpu")],
        "loop": [slice(k, k + 1) for k in range(job.repeats)],
    }
    tried = {name: min(seconds(groups) for _ in range(3)) for name, groups in engines.items()}
    best = min(tried, key=lambda name: tried[name])
    print(f"{job.network}, R = {job.repeats}: ours is {best}", file=sys.stderr, flush=True)
    learners = crew(engines[best])
    loss = train(learners, job.steps)
    while True:
        lap(loss)
        loss = train(learners, job.steps)


def jax_vmap(job: Job, lap: Callable[[float], None]) -> None:
    """The same networks as functions of their weights, in the layout that XLA likes on a CPU (NHWC)."""
    jax, lax, jnp = (importlib.import_module(name) for name in ("jax", "jax.lax", "jax.numpy"))

    config = config_of(job)
    networks = [first_network(config, (1, SIDE, SIDE), seed) for seed in range(job.repeats)]
    names = [name for name, _ in networks[0].named_parameters()]

    def stacked(name: str) -> Any:
        values = np.stack([dict(network.named_parameters())[name].detach().numpy() for network in networks])
        return jnp.asarray(values.transpose(0, 3, 4, 2, 1) if values.ndim == 5 else values)  # HWIO

    weights = {name: stacked(name) for name in names}
    layers = [name.removesuffix(".weight") for name in names if name.endswith(".weight")]

    def logits(own: dict[str, Any], x: Any) -> Any:
        for layer in layers:
            weight, bias = own[f"{layer}.weight"], own[f"{layer}.bias"]
            if weight.ndim == 4:
                how = ("NHWC", "HWIO", "NHWC")
                x = lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=how) + bias
                x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 3, 3, 1), "VALID")
            else:
                x = x.reshape(x.shape[0], -1) @ weight.T + bias
            x = x if layer == "head" else jax.nn.relu(x)
        return x

    def objective(own: dict[str, Any], x: Any, y: Any) -> Any:
        found = logits(own, x)
        logs = jax.nn.log_softmax(found)
        return -jnp.take_along_axis(logs, y[:, None], 1).mean(), (found.argmax(1) == y).sum()

    def step(own: dict[str, Any], x: Any, y: Any) -> Any:
        told, gradients = jax.value_and_grad(objective, has_aux=True)(own, x, y)
        return jax.tree.map(lambda w, g: w - RATE * g, own, gradients), told

    together = jax.jit(jax.vmap(step), donate_argnums=0)
    images, labels = (jnp.asarray(part) for part in images_of(job))
    loss = 0.0
    while True:
        for _ in range(job.steps):
            weights, (losses, _) = together(weights, images, labels)
        loss = float(losses.mean())
        jax.block_until_ready(weights)
        lap(loss)


Contestant = Callable[[Job, Callable[[float], None]], None]
"""Trains a round, tells the loss of its last step, and again after every round."""


def process(run: Contestant, job: Job, pipe: Connection) -> None:
    """What a side's process does: tell the CPU seconds of each round, then wait for the next one to be called."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    began = time.process_time()

    def lap(loss: float) -> None:
        nonlocal began
        pipe.send((time.process_time() - began, loss))
        if pipe.recv() == "stop":
            sys.exit()
        began = time.process_time()

    try:
        run(job, lap)
    except ImportError as error:
        pipe.send(str(error))


class Side:
    """A side at work, seen from outside."""

    def __init__(self, run: Contestant, job: Job) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(name=run.__name__, target=process, args=(run, job, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def report(self) -> tuple[float, float] | str:
        """CPU seconds and loss of the round; at first of one that also compiles, or why the side cannot start."""
        try:
            return self._pipe.recv()  # type: ignore[no-any-return]
        except EOFError:
            sys.exit(f"{self.process.name} broke off: its error stands above")

    def round(self) -> tuple[float, float]:
        self._pipe.send("go")
        told = self.report()
        assert not isinstance(told, str)
        return told

    def stop(self) -> None:
        with contextlib.suppress(BrokenPipeError):  # it is gone already
            self._pipe.send("stop")
        self.process.join()


def compare(job: Job, rounds: int, floor: float) -> bool:
    what = f"{job.network}, R = {job.repeats} / jax vmap"
    sides = [Side(ours, job), Side(jax_vmap, job)]
    try:
        ready = [side.report() for side in sides]
        if isinstance(ready[1], str):
            print(f"{what}: not measured ({ready[1]})", flush=True)
            return True
        told = [(sides[0].round(), sides[1].round()) for _ in range(rounds)]
    finally:
        for side in sides:
            side.stop()
    losses = told[-1][0][1], told[-1][1][1]
    if abs(losses[0] - losses[1]) > 1e-3 * max(losses):
        sys.exit(f"{what}: losses {losses[0]:.6f} and {losses[1]:.6f} differ: the two do not train the same")
    images = job.steps * job.repeats * BATCH
    speeds = " / ".join(f"{images / statistics.median(s for s, _ in side):,.0f}" for side in zip(*told, strict=True))
    ratio = statistics.median(theirs[0] / mine[0] for mine, theirs in told)
    over = ratio >= floor
    mark = "OVER" if over else "UNDER - missed"
    print(f"{what}: {speeds} images per CPU second: ratio {ratio:.2f}, floor {floor:g}, {mark}", flush=True)
    return over


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few and short rounds")
    parser.add_argument("--only", choices=("cnn", "mlp"), help="one of the two networks")
    asked = parser.parse_args()
    quick = asked.quick
    print(f"one core, batch {BATCH}, {SIDE}x{SIDE}, load {os.getloadavg()[0]:.1f}", flush=True)
    fine = []
    for repeats in (8, 32):
        if asked.only != "mlp":
            fine.append(compare(Job("cnn", repeats, 1 if quick else 2), 2 if quick else 5, 2.5))
        if asked.only != "cnn":
            fine.append(compare(Job("mlp", repeats, 2 if quick else 12), 3 if quick else 9, 1.0))
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
