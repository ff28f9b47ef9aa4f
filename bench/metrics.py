"""Continual-learning metrics of 1,000 runs of 50 tasks x 50 epochs: in memory beside avalanche-lib, and from disk.

In memory, both sides get the same array (run, logged epoch, eval task) and give the same numbers: average accuracy,
forgetting and BWT. Theirs is a loop over runs around avalanche's `evaluation.functional.forgetting`, which is taken
where avalanche-lib is installed; ours is one call a metric. Rounds alternate; the line gives the median of the ratios.

From disk, a study of 200 cells x 5 seeds is measured, all metrics of the family, in a process of its own. Five runs are
recorded; the other cells are copies of them under another name, as their numbers do not matter to the clock.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import waterjar
from waterjar.diagnose import continual

TASKS, EPOCHS, SEEDS = 50, 50, 5
Floats = NDArray[np.float64]


def say(what: str, value: float, limit: float, unit: str = "x", *, floor: bool = True) -> bool:
    fine = value >= limit if floor else value <= limit
    word = "floor" if floor else "limit"
    print(f"{what}: {value:.3g} {unit}, {word} {limit:g} {unit}{'' if fine else '  MISSED'}", flush=True)
    return fine


def spent(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def functional_forgetting() -> Callable[[Floats, list[int]], Floats] | None:
    """avalanche's function, from its file: importing the package would bring torchvision along."""
    found = importlib.util.find_spec("avalanche")
    if found is None or not found.submodule_search_locations:
        return None
    file = Path(found.submodule_search_locations[0]) / "evaluation" / "functional.py"
    spec = importlib.util.spec_from_file_location("avalanche_functional", file)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[Floats, list[int]], Floats] = module.forgetting
    return function


def theirs(runs: Floats, forgetting: Callable[[Floats, list[int]], Floats]) -> Floats:
    """(3, run): average accuracy, mean forgetting, BWT, run by run."""
    ends = list(range(EPOCHS - 1, TASKS * EPOCHS, EPOCHS))
    found = []
    for accuracy in runs:
        forgot = forgetting(accuracy, ends)[-1, :-1].mean()
        found.append((accuracy[-1].mean(), forgot, -forgot))
    return np.array(found).T


def by_task(runs: Floats) -> Floats:
    """(run, time, eval) -> (run, train, eval, epoch), nothing copied."""
    return runs.reshape(-1, TASKS, EPOCHS, TASKS).swapaxes(-1, -2)


def ours(runs: Floats) -> Floats:
    """The same, of all runs at once."""
    R = continual.integrate(by_task(runs))
    forgot = continual.forgetting(R, "learned")[:, :-1].mean(-1)
    return np.stack([continual.average_accuracy(R), forgot, continual.backward_transfer(R)])


def everything(runs: Floats) -> None:
    """All metrics of the family on arrays; the first tasks' ends stand in for experts and step 0."""
    A, epochs = by_task(runs), np.arange(1.0, EPOCHS + 1)
    P = continual.above_chance(A, 0.1)
    R, ends = continual.integrate(P, epochs), continual.integrate(A)
    for of_matrix in (continual.remembering, continual.zero_shot):
        of_matrix(R)
    for of_ends in (continual.average_accuracy, continual.learning_accuracy, continual.backward_transfer):
        of_ends(ends)
    continual.forgetting(ends)
    continual.forward_transfer(R, R[:, 0])
    continual.forward_transfer_gem(ends, ends[:, 0])
    continual.intransigence(ends, ends[:, 0])
    continual.learning_time(P, epochs)
    continual.forgetting_rate(P, epochs)
    continual.max_dip(P)
    continual.average_anytime_accuracy(A, epochs)
    continual.worst_case_accuracy(A, epochs)  # min-ACC is a part of it


def in_memory(n: int, rounds: int) -> list[bool]:
    forgetting = functional_forgetting()
    runs = np.random.default_rng(0).random((n, TASKS * EPOCHS, TASKS))
    if forgetting is None:
        alone = spent(lambda: ours(runs))
        print(f"accuracy, forgetting, BWT of {n} runs: ours {alone:.3g} s; avalanche-lib is not installed")
        return []
    np.testing.assert_allclose(ours(runs[:10]), theirs(runs[:10], forgetting), atol=1e-12)
    times = [(spent(lambda: theirs(runs, forgetting)), spent(lambda: ours(runs))) for _ in range(rounds)]
    loop, one = (statistics.median(side) for side in zip(*times, strict=True))
    ratio = statistics.median(a / b for a, b in times)
    fine = say(f"accuracy, forgetting, BWT of {n} runs, avalanche {loop:.3g} s / ours {one:.3g} s", ratio, 20.0)
    whole = spent(lambda: everything(runs))
    print(f"all {len(continual.FAMILY.metrics)} metrics on whole curves: {whole:.3g} s, {loop / whole:.2g}x that loop")
    return [fine]


def make_study(folder: Path, n: int) -> Path:
    study = waterjar.create_study(folder / "study")
    sets = {f"task {j}": j for j in range(TASKS)}
    classes = [f"class {k}" for k in range(2 * TASKS)]
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        first = study / f"run-0000-{seed}"
        options: dict[str, Any] = {"seeds": [seed], "eval_sets": sets, "tasks": TASKS, "classes": classes}
        with waterjar.Recorder(first, {"learner": "l0"}, provenance=False, summary=False, **options) as recorder:
            for task in range(TASKS):
                for epoch in range(1, EPOCHS + 1):
                    recorder.log(train_task=task, epoch=epoch, performance={"accuracy": rng.random(TASKS)})
        for cell in range(1, n // SEEDS):
            copy = study / f"run-{cell:04d}-{seed}"
            shutil.copytree(first, copy)
            root = json.loads((copy / "zarr.json").read_text())
            names = {"cell_id": f"{cell:016x}", "run_id": f"{cell:08x}{seed:08x}", "config": {"learner": f"l{cell}"}}
            root["attributes"] |= names
            (copy / "zarr.json").write_text(json.dumps(root))
    return study


def peak_memory() -> float:
    """Peak resident memory of this process in GB; where /proc tells, without what the parent had when it forked."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**30  # macOS gives bytes


def measure_study(study: Path, n: int, answer: Connection) -> None:
    found: list[Any] = []
    seconds = spent(lambda: found.append(continual.measure(waterjar.open_study(study))))
    counted = int(found[0]["backward_transfer"].notnull().sum())
    answer.send((seconds, peak_memory(), counted == n))


def from_disk(folder: Path, n: int) -> list[bool]:
    study = make_study(folder, n)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=measure_study, args=(study, n, there))
    process.start()
    seconds, memory, complete = here.recv()
    process.join()
    if not complete:
        raise SystemExit("runs were lost on the way")
    return [
        say(f"{n} runs from disk, all metrics", seconds, 60.0, "s", floor=False),
        say(f"{n} runs from disk, peak memory", memory, 1.5, "GB", floor=False),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    n, rounds = (100, 3) if parser.parse_args().quick else (1000, 5)
    with tempfile.TemporaryDirectory() as folder:
        fine = from_disk(Path(folder), n)
    fine += in_memory(n, rounds)
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
