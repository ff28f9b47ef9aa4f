"""What recording costs: time inside the recorder against 1 s epochs, memory, and opening a large study.

Each line: what, measured, the limit, and their ratio (below 1 is within the limit). Beside the budget stands the
peer in the same run: xarray's own append of the same arrays.
"""

from __future__ import annotations

import argparse
import gc
import resource
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

import waterjar
from waterjar.run.disk import write_file

EVAL_SETS = [f"set {i}" for i in range(10)]
VARIABLES = ["accuracy", "macro_accuracy", "top5_accuracy", "loss", "task_accuracy", "task_macro_accuracy"]


def report(what: str, measured: float, limit: float, unit: str) -> bool:
    ok = measured <= limit
    sys.stdout.write(
        f"{what}: {measured:.3g} {unit}, limit {limit:g} {unit}, ratio {measured / limit:.2f}{'' if ok else '  OVER'}\n"
    )
    sys.stdout.flush()
    return ok


def spent(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def seven_arrays(recorder: waterjar.Recorder, step: int, rng: np.random.Generator, **more: object) -> None:
    performance = {name: rng.random(10) for name in VARIABLES}
    recorder.log(epoch=step, performance=performance, train={"loss": rng.random()}, **more)  # type: ignore[arg-type]


def log_share(folder: Path, epochs: int) -> float:
    """Time inside log() of 7 arrays, as a share of 1 s epochs (a mean over enough steps to fill chunks)."""
    rng = np.random.default_rng(0)
    with waterjar.Recorder(folder / "log", {}, eval_sets=EVAL_SETS, summary=False) as recorder:
        times = [spent(lambda step=step: seven_arrays(recorder, step, rng)) for step in range(epochs)]  # type: ignore[misc]
    return 100 * statistics.fmean(times)


def waiting_shares(folder: Path, epochs: int) -> tuple[float, float]:
    """What waiting for the disk adds to log() of 7 arrays, and to a checkpoint of 5 MB, as shares of 1 s epochs."""
    rng = np.random.default_rng(0)
    checkpoint = rng.bytes(5_000_000)
    logs: dict[bool, list[float]] = {True: [], False: []}
    files: dict[bool, list[float]] = {True: [], False: []}
    recorders = {
        sync: waterjar.Recorder(folder / f"sync {sync}", {}, eval_sets=EVAL_SETS, storage={"sync": sync}, summary=False)
        for sync in (True, False)
    }
    for step in range(epochs):
        for sync, recorder in recorders.items():
            logs[sync].append(spent(lambda r=recorder, s=step: seven_arrays(r, s, rng)))  # type: ignore[misc]
            files[sync].append(spent(lambda s=sync: write_file(folder / f"checkpoint {s}", checkpoint, sync=s)))  # type: ignore[misc]
    for recorder in recorders.values():
        recorder.close()
    added = [100 * (statistics.median(times[True]) - statistics.median(times[False])) for times in (logs, files)]
    return added[0], added[1]


def append_share(folder: Path, epochs: int) -> float:
    """The same 7 arrays through xarray's append."""
    rng = np.random.default_rng(0)
    times = []
    for step in range(epochs):
        dims = ("step", "eval_set", "repeat")
        data = {name: (dims, rng.random((1, 10, 1))) for name in VARIABLES}
        dataset = xr.Dataset({**data, "train_loss": (("step", "repeat"), rng.random((1, 1)))}, {"step": [step]})
        append = {"append_dim": "step"} if step else {}
        times.append(spent(lambda d=dataset, a=append: d.to_zarr(folder / "append", zarr_format=3, **a)))  # type: ignore[misc]
    return 100 * statistics.fmean(times)


def snapshot_share(folder: Path, epochs: int) -> tuple[float, float]:
    """Time inside log() with a snapshot of 1,000 x 512 features and 1e6 weights; growth of resident memory in MB."""
    rng = np.random.default_rng(0)
    features = np.maximum(rng.standard_normal((1, 1000, 512), dtype=np.float32), 0)
    weights = rng.standard_normal(1_000_000, dtype=np.float32)
    times = []
    before = 0.0
    with waterjar.Recorder(
        folder / "snap", {}, eval_sets=EVAL_SETS, probe_sets=EVAL_SETS[:1], summary=False
    ) as recorder:
        for step in range(epochs):
            shot = {"features": {"penultimate": features + np.float32(step)}, "weights": weights + np.float32(step)}
            times.append(spent(lambda s=step, shot=shot: seven_arrays(recorder, s, rng, snapshot=shot)))  # type: ignore[misc]
            if step == 20:  # buffers are in place
                gc.collect()
                before = resident()
        grown = resident() - before
    shutil.rmtree(folder / "snap")
    return 100 * statistics.fmean(times), grown


def resident() -> float:
    """Resident memory in MB, now where the system tells, else the peak."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def study_seconds(folder: Path, runs: int, steps: int) -> tuple[float, float, float]:
    """Seconds to open a study and load its performance: first time, with the index, and by plain xarray for 20 runs."""
    rng = np.random.default_rng(0)
    study = waterjar.create_study(folder / "study")
    first = study / "run-0000"
    for number in range(runs):
        path = study / f"run-{number:04d}"
        config = {"learner": f"l{number // 5}"}
        with waterjar.Recorder(
            path, config, seeds=[number % 5], eval_sets=EVAL_SETS, provenance=False, summary=False
        ) as recorder:
            for step in range(steps):
                seven_arrays(recorder, step, rng)
    times = []
    for _ in range(2):
        start = time.perf_counter()
        loaded = waterjar.open_study(study).load("performance")
        times.append(time.perf_counter() - start)
        assert sum(data.sizes["repeat"] for data in loaded.values()) == runs
    plain = statistics.median(
        spent(lambda: xr.open_datatree(first, engine="zarr")["performance"].to_dataset().load()) for _ in range(20)
    )
    return times[0], times[1], plain * runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    part = 10 if parser.parse_args().quick else 1
    warnings.simplefilter("ignore")
    folder = Path(tempfile.mkdtemp())
    try:
        share = log_share(folder, 1000 // part)
        fine = [report("log() of 7 arrays, share of 1 s epochs", share, 1.0, "%")]
        waits = waiting_shares(folder, 200 // part)
        fine.append(report("waiting for the disk at every log(), share of 1 s epochs", waits[0], 2.0, "%"))
        fine.append(report("waiting for a checkpoint of 5 MB", waits[1], 2.0, "%"))
        peer = append_share(folder, 200 // part)
        sys.stdout.write(f"xarray append of the same / log(): {peer / share:.1f}x\n")
        shots, grown = snapshot_share(folder, 1000 // part)
        fine.append(report("log() with 1,000 x 512 features and 1e6 weights", shots, 5.0, "%"))
        fine.append(report(f"resident memory grown over {1000 // part} snapshots", grown, 50.0, "MB"))
        cold, warm, plain = study_seconds(folder, 1000 // part, 20)
        fine.append(report(f"open and load performance of {1000 // part} runs, no index", cold, 5.0, "s"))
        fine.append(report("the same with the index", warm, 5.0, "s"))
        sys.stdout.write(f"plain xarray (from 20 openings) / ours: {plain / warm:.0f}x\n")
    finally:
        shutil.rmtree(folder)
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
