"""What a run cost: time, work and memory, beside its accuracy, so that learners are compared at what they cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.labelled import NOT_RECORDED, UNDEFINED, measure_runs, stamp, variable
from waterjar.diagnose.registry import Family, metric
from waterjar.run.reader import Run
from waterjar.run.study import Study

_SOURCE = "recorded by the training loop"
Recorded = Callable[[str], NDArray[np.float64] | None]
"""Name of a variable of /resources -> its values over steps, or None if it was not recorded."""


@metric(
    "seconds",
    family="cost",
    long_name="wall time of the whole run, evaluation included",
    formula="sum of seconds over steps",
    units="s",
    direction="lower",
    range=(0, np.inf),
    citation=_SOURCE,
    needs=("resources/seconds",),
)
def _seconds(recorded: Recorded) -> float | None:
    return _total(recorded("seconds"))


@metric(
    "images_per_second",
    family="cost",
    long_name="training images per second of wall time, evaluation included",
    formula="sum of images / sum of seconds",
    units="image/s",
    direction="higher",
    range=(0, np.inf),
    citation=_SOURCE,
    needs=("resources/images", "resources/seconds"),
)
def _images_per_second(recorded: Recorded) -> float | None:
    images, seconds = _total(recorded("images")), _total(recorded("seconds"))
    if images is None or seconds is None:
        return None
    return images / seconds if seconds > 0 else np.nan


@metric(
    "flops",
    family="cost",
    long_name="floating-point operations of training",
    formula="sum of flops over steps",
    units="1",
    direction="lower",
    range=(0, np.inf),
    citation=_SOURCE,
    needs=("resources/flops",),
)
def _flops(recorded: Recorded) -> float | None:
    return _total(recorded("flops"))


@metric(
    "peak_memory",
    family="cost",
    long_name="largest resident memory during the run",
    formula="max of peak_memory over steps",
    units="byte",
    direction="lower",
    range=(0, np.inf),
    citation=_SOURCE,
    needs=("resources/peak_memory",),
)
def _peak_memory(recorded: Recorded) -> float | None:
    return _largest(recorded("peak_memory"))


@metric(
    "peak_device_memory",
    family="cost",
    long_name="largest memory on the accelerator",
    formula="max of peak_device_memory over steps",
    units="byte",
    direction="lower",
    range=(0, np.inf),
    citation=_SOURCE,
    needs=("resources/peak_device_memory",),
)
def _peak_device_memory(recorded: Recorded) -> float | None:
    return _largest(recorded("peak_device_memory"))


@metric(
    "buffer_bytes",
    family="cost",
    long_name="memory that the learner holds beside its weights",
    formula="max of buffer_bytes over steps",
    units="byte",
    direction="lower",
    range=(0, np.inf),
    citation=_SOURCE,
    needs=("resources/buffer_bytes",),
)
def _buffer_bytes(recorded: Recorded) -> float | None:
    return _largest(recorded("buffer_bytes"))


def measure(source: Run | Study) -> xr.Dataset:
    """Cost per seed: of a run that trains several repeats at once, each has its share of time and work.

    Memory is not shared out: the repeats stand in it together.
    """
    return stamp(measure_runs(source, "resources", _of_run), FAMILY, {}, source)


def _of_run(run: Run) -> xr.Dataset:
    resources, n = run.load("resources"), len(run.seeds)

    def recorded(name: str) -> NDArray[np.float64] | None:
        return np.asarray(resources[name].values, np.float64) if name in resources else None

    found: dict[str, xr.Variable] = {}
    for name, declared in FAMILY.metrics.items():
        value = declared.compute(recorded)
        reason = NOT_RECORDED if value is None else UNDEFINED if np.isnan(value) else 0
        share = n if name in _SHARED_OUT else 1
        values = np.full(n, np.nan if value is None else value / share)
        found |= variable(name, ["repeat"], values, np.full(n, reason, np.uint8))
    return xr.Dataset(found, {"repeat": np.arange(n), "seed": ("repeat", run.seeds)})


def _total(values: NDArray[np.float64] | None) -> float | None:
    """Over steps; a missing step makes the total missing, it is not counted as nothing."""
    return None if values is None else float(values.sum())


def _largest(values: NDArray[np.float64] | None) -> float | None:
    return None if values is None or not values.size else float(values.max())


_SHARED_OUT = ("seconds", "flops")
FAMILY = Family("cost", "What it cost", "run", ("resources",), measure)
