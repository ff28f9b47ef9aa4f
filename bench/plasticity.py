"""Plasticity of 100 snapshots x 10 repeats of 2,000 samples x 512 units: ours beside a loop in torch, on one core.

The loop has one function per metric, as Plasticine's: float32, and the singular values computed anew for each of the
rank metrics. Both sides get the same arrays in memory; one line has both read them from the run, too, which costs as
much as a third of our time. Times are CPU seconds, one snapshot of ours after one of theirs; a line gives the median of
the ratios. Only `--snapshots` of the 100 are recorded and timed, what all would take is scaled up from them; the memory
is that of `measure` over the recorded ones, in a process of its own.

Features are those of a layer that learns: a signal of 40 directions that decays, noise, ReLU, a tenth of all units
dead. Plasticine does not have the textbook's stable rank: one line leaves it out. Of collapsed features the Gram matrix
is not accurate enough and we, too, make an SVD (in float64): the last line.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import waterjar
from waterjar.diagnose import plasticity
from waterjar.diagnose.representation import Representation
from waterjar.diagnose.snapshots import RunArrays

REPEATS, SAMPLES, UNITS, WHOLE = 10, 2000, 512, 100
PARAMETERS = 200_000
METRICS: tuple[Callable[..., object], ...] = (
    plasticity.dormant_units,
    plasticity.active_units,
    plasticity.stable_rank,
    plasticity.effective_rank,
    plasticity.spectral_stable_rank,
    plasticity.feature_norm,
    plasticity.feature_variance,
)


def dormant(features: Tensor) -> float:
    response = features.abs().mean(dim=0)
    return float((response / response.mean() <= 0.1).float().mean())


def active(features: Tensor) -> float:
    return float((features > 0).float().mean())


def cumulative_rank(features: Tensor) -> float:
    values = torch.linalg.svdvals(features)
    return float((torch.cumsum(values, 0) / values.sum() <= 0.99).sum() + 1)


def entropy_rank(features: Tensor) -> float:
    values = torch.linalg.svdvals(features)
    share = values / values.sum()
    share = share[share > 0]
    return float(torch.exp(-(share * share.log()).sum()))


def textbook_rank(features: Tensor) -> float:
    values = torch.linalg.svdvals(features)
    return float(features.square().sum() / values[0] ** 2)


def norm(features: Tensor) -> float:
    return float(features.norm(dim=1).mean())


def variance(features: Tensor) -> float:
    return float(features.var(dim=0, correction=0).mean())


LOOP = (dormant, active, cumulative_rank, entropy_rank, textbook_rank, norm, variance)


def learned(rng: np.random.Generator, step: int, *, collapsed: bool = False) -> NDArray[np.float32]:
    """Features (repeat, 1 eval set, sample, unit) that look like those of a layer after some training."""
    strength = np.exp(-np.arange(40) / (10.0 + step))[:, None]
    signal = rng.standard_normal((REPEATS, SAMPLES, 40)) @ (strength * rng.standard_normal((40, UNITS)))
    if collapsed:
        return signal[:, None].astype(np.float32)
    features = np.maximum(signal + 0.3 * rng.standard_normal(signal.shape), 0.0)
    features[:, :, :: UNITS // 51] = 0.0
    return features[:, None].astype(np.float32)


def record(path: Path, snapshots: int, *, collapsed: bool = False) -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((REPEATS, PARAMETERS)).astype(np.float32)
    with waterjar.Recorder(
        path, {}, seeds=list(range(REPEATS)), eval_sets=["test"], tasks=2, summary=False
    ) as recorder:
        for step in range(snapshots):
            weights += 0.01 * rng.standard_normal(weights.shape, dtype=np.float32)
            shot = {"features": {"penultimate": learned(rng, step, collapsed=collapsed)}, "weights": weights}
            task, epoch = divmod(step, math.ceil(snapshots / 2))
            recorder.log(epoch=epoch + (task > 0), train_task=task, train={"loss": np.zeros(REPEATS)}, snapshot=shot)


def ours(rows: NDArray[np.float32], skip: object) -> list[list[float]]:
    found = []
    for features in rows:
        shot = Representation.of(features.reshape(-1, UNITS))
        found.append([float(metric(shot)) for metric in METRICS if metric is not skip])  # type: ignore[arg-type]
    return found


def theirs(rows: NDArray[np.float32], skip: object) -> list[list[float]]:
    return [[metric(row.reshape(-1, UNITS)) for metric in LOOP if metric is not skip] for row in torch.from_numpy(rows)]


def race(
    path: Path,
    rounds: int,
    what: str,
    floor: float | None = None,
    skip: tuple[object, object] = (None, None),
    *,
    reading: bool = False,
) -> bool:
    run = waterjar.open_run(path)
    arrays, told = RunArrays(run), []
    lazy = run["features/penultimate"]["features"]
    for snapshot in (0, *range(rounds)):  # the first round fills caches of libraries, and is left out
        rows = lazy.isel(snapshot=snapshot).values
        start = time.process_time()
        key = "features/penultimate/features"
        mine = ours(arrays.row(key, snapshot, slice(0, REPEATS)) if reading else rows, skip[0])
        middle = time.process_time()
        other = theirs(lazy.isel(snapshot=snapshot).values if reading else rows, skip[1])
        told.append((middle - start, time.process_time() - middle))
        np.testing.assert_allclose(mine, other, rtol=2e-3)  # theirs is in float32
    ratio = statistics.median(b / a for a, b in told[1:])
    each = [WHOLE * statistics.median(seconds) for seconds in zip(*told[1:], strict=True)]
    mark = "" if floor is None else f", floor {floor:g}, {'OVER' if ratio >= floor else 'UNDER - missed'}"
    print(f"{what}: {each[0]:.0f} / {each[1]:.0f} CPU s for {WHOLE} snapshots: ratio {ratio:.2f}{mark}", flush=True)
    return floor is None or ratio >= floor


def peak(path: Path) -> float:
    """Peak memory in MB of `measure` in a process of its own, torch not imported."""
    code = (
        "import resource, sys, waterjar\n"
        "from waterjar.diagnose import plasticity\n"
        "plasticity.measure(waterjar.open_run(sys.argv[1]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    told = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True).stdout
    return int(told) / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snapshots", type=int, default=8, help="how many are recorded, and timed")
    parser.add_argument("--quick", action="store_true", help="three")
    given = parser.parse_args()
    snapshots = 3 if given.quick else given.snapshots
    torch.set_num_threads(1)
    size = f"{REPEATS} repeats, {SAMPLES} samples, {UNITS} units"
    with tempfile.TemporaryDirectory() as folder:
        run, collapsed = Path(folder, "run"), Path(folder, "collapsed")
        record(run, snapshots)
        fine = race(run, snapshots, f"all metrics of features ({size}) / torch loop", 5.0)
        race(run, snapshots, "the same, read from the run by both / torch loop", reading=True)
        race(run, snapshots, "without the textbook's stable rank / torch loop", skip=(METRICS[4], textbook_rank))
        record(collapsed, 2, collapsed=True)
        race(collapsed, 2, "collapsed features, by SVD / torch loop")
        megabytes = peak(run)
        held = megabytes < 1024
        print(
            f"peak memory of measure, {snapshots} snapshots: {megabytes:.0f} MB, limit 1024 MB{'' if held else ' OVER'}"
        )
    sys.exit(0 if fine and held else 1)


if __name__ == "__main__":
    main()
