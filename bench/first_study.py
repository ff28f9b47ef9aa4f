"""What `diagnose` of a first study costs: 6 runs of 51 snapshots, in CPU seconds on one core, cold and from the cache.

The study is the one a new user makes: ten classes of 8 x 8 pictures split into five tasks, an MLP 64-100-100-10, naive
and with replay, three seeds, ten epochs a task. Each run has a snapshot of both hidden layers on 200 probe samples and
of all weights at every epoch and before the first one. Pictures are prototypes and noise, so nothing is downloaded.

And once more with momentum: three units of four die, classes nearly collapse, and geometry is at its hardest.

Three measurements of each, in processes of their own: with kernels that are compiled and nothing cached (a first one,
not shown, compiles them if need be), and again from the cache. The share of each family is CPU time between its first
and its last sign of life.

    OMP_NUM_THREADS=1 python bench/first_study.py [--study DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import numpy as np

CLASSES, TASKS, EPOCHS, SEEDS = 10, 5, 10, (0, 1, 2)
TRAIN, TEST, PROBE = 140, 40, 40
"""Pictures a class to learn from and to test with; probe samples a task."""
MOMENTA = {"plain": 0.0, "momentum": 0.9}
WANTED = {"cold": 15.0, "cached": 2.0}
"""CPU seconds that each may take."""


def pictures(a_class: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    prototypes = np.random.default_rng(0).random((CLASSES, 64))
    labels = np.repeat(np.arange(CLASSES), a_class)
    noisy = prototypes[labels] + 0.35 * rng.standard_normal((len(labels), 64))
    return noisy.clip(0, 1).astype(np.float32), labels


def record(place: Path, momentum: float) -> None:
    """Train and record the six runs."""
    for method in ("naive", "replay"):
        for seed in SEEDS:
            record_run(place / f"{method}-{seed}", method, seed, momentum)


def record_run(path: Path, method: str, seed: int, momentum: float) -> None:
    import torch  # noqa: PLC0415 - what measures must not have it

    import waterjar  # noqa: PLC0415

    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    x, y = (torch.from_numpy(part) for part in pictures(TRAIN, np.random.default_rng(1)))
    x_test, y_test = (torch.from_numpy(part) for part in pictures(TEST, np.random.default_rng(2)))
    names = [f"digits{2 * k}{2 * k + 1}" for k in range(TASKS)]
    tests = [torch.isin(y_test, torch.tensor([2 * k, 2 * k + 1])) for k in range(TASKS)]
    probes = [part.nonzero().ravel()[:: 2 * TEST // PROBE][:PROBE] for part in tests]
    first, second, head = torch.nn.Linear(64, 100), torch.nn.Linear(100, 100), torch.nn.Linear(100, CLASSES)
    network = torch.nn.Sequential(first, torch.nn.ReLU(), second, torch.nn.ReLU(), head)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05, momentum=momentum)
    memory: list[int] = []

    def values() -> tuple[dict[str, dict[str, float]], dict[str, object]]:
        with torch.no_grad():
            right = (network(x_test).argmax(1) == y_test).double()
            performance = {"accuracy": {name: float(right[t].mean()) for name, t in zip(names, tests, strict=True)}}
            hidden = [network[:2](x_test), network[:4](x_test)]
            features = {
                f"hidden{i}": {name: h[p].numpy()[None] for name, p in zip(names, probes, strict=True)}
                for i, h in enumerate(hidden)
            }
        return performance, {"features": features, "weights": network.state_dict()}

    with waterjar.Recorder(
        path,
        {"method": method, "seed": seed},
        eval_sets={name: k for k, name in enumerate(names)},
        tasks=names,
        classes=[str(c) for c in range(CLASSES)],
        eval_sizes=dict.fromkeys(names, 2 * TEST),
        provenance=False,
    ) as recorder:
        recorder.once("probe_samples", label={name: y_test[p].numpy() for name, p in zip(names, probes, strict=True)})
        performance, snapshot = values()
        recorder.log(epoch=0, train_task=0, performance=performance, snapshot=snapshot)
        for task in range(TASKS):
            own = torch.isin(y, torch.tensor([2 * task, 2 * task + 1])).nonzero().ravel().numpy()
            for epoch in range(1, EPOCHS + 1):
                for batch in np.array_split(rng.permutation(own), len(own) // 20):
                    shown = np.concatenate([batch, rng.choice(memory, 20)]) if memory else batch
                    optimiser.zero_grad()
                    loss = torch.nn.functional.cross_entropy(network(x[shown]), y[shown])
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimiser.step()
                performance, snapshot = values()
                recorder.log(
                    epoch=epoch,
                    train_task=task,
                    performance=performance,
                    train={"loss": float(loss.detach())},
                    snapshot=snapshot,
                )
            if method == "replay":
                memory += rng.choice(own, 40, replace=False).tolist()


def measure(place: Path) -> None:
    """Print the CPU seconds of `waterjar diagnose`, imports included, and of its families, as JSON."""
    import concurrent.futures  # noqa: PLC0415 - imports are part of what is measured

    from waterjar.diagnose.study import diagnose  # noqa: PLC0415
    from waterjar.run.study import open_study  # noqa: PLC0415

    began: dict[str, float] = {}
    spent: dict[str, float] = {}

    def watch(family: str, done: float, total: int) -> None:
        now = time.process_time()
        spent[family] = now - began.setdefault(family, now)

    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        found = diagnose(open_study(place), watch=watch, executor=threads)
    shapes = {family: len(result.data_vars) for family, result in found.results.items()}
    print(json.dumps({"cpu": time.process_time(), "families": spent, "variables": shapes, "over": found.passed_over}))


def timed(place: Path) -> dict[str, Any]:
    """The same in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", str(place)], check=True, capture_output=True, text=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def lines(place: Path) -> Iterator[tuple[str, bool]]:
    """What is told, line by line, and whether it is as wanted."""
    shutil.rmtree(place / ".waterjar", ignore_errors=True)
    timed(place)
    shutil.rmtree(place / ".waterjar", ignore_errors=True)
    for name, wanted in WANTED.items():
        found = timed(place)
        families = sorted(found["families"].items(), key=lambda item: -item[1])
        shares = ", ".join(f"{family} {seconds:.2f}" for family, seconds in families if seconds >= 0.005)
        yield f"{name}: {found['cpu']:.2f} s of CPU (wanted: {wanted:g}): {shares}", found["cpu"] <= wanted
    yield f"not measured: {', '.join(found['over']) or 'nothing'}", True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, help="where the studies are or go; by default a folder that is deleted")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure is not None:
        measure(given.measure)
        return
    with tempfile.TemporaryDirectory() as folder:
        met = True
        for name, momentum in MOMENTA.items():
            place = (given.study or Path(folder)) / name
            if not place.exists():
                began = time.process_time()
                record(place, momentum)
                print(f"{name}, recorded: {time.process_time() - began:.2f} s of CPU")
            for line, held in lines(place):
                print(f"{name}, {line}")
                met &= held
    sys.exit(not met)


if __name__ == "__main__":
    main()
