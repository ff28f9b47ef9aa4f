"""What a run cost: time, work and memory, beside its accuracy, so that learners are compared at what they cost."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.measuring import Loaded, Unit
from waterjar.diagnose.registry import Family, metric
from waterjar.diagnose.result import NOT_RECORDED, Result
from waterjar.diagnose.settings import settings_of
from waterjar.run.reader import Run
from waterjar.run.study import Study

_SOURCE = "recorded by the training loop"


@dataclass(frozen=True)
class ResourceUse:
    """What one run recorded of its resources, by variable, over steps."""

    recorded: dict[str, NDArray[np.float64]]
    repeats: int

    def total(self, name: str) -> float | None:
        """Over steps; a missing step makes the total missing, it is not counted as nothing."""
        return float(self.recorded[name].sum()) if name in self.recorded else None

    def largest(self, name: str) -> float | None:
        """Over steps; None where nothing was recorded."""
        values = self.recorded.get(name, np.empty(0))
        return float(values.max()) if values.size else None

    def each(self, value: float | None, *, shared: bool = False) -> Result:
        """A number of the whole run for every repeat; what the repeats share is their part of it."""
        if value is None:
            return Result.of(np.full(self.repeats, np.nan), NOT_RECORDED)
        return Result.of(np.full(self.repeats, value / self.repeats if shared else value))


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
def _seconds(resources: ResourceUse) -> Result:
    return resources.each(resources.total("seconds"), shared=True)


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
    made_of=("seconds",),
)
def _images_per_second(resources: ResourceUse) -> Result:
    images, seconds = resources.total("images"), resources.total("seconds")
    if images is None or seconds is None:
        return resources.each(None)
    return resources.each(images / seconds if seconds > 0 else np.nan)


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
def _flops(resources: ResourceUse) -> Result:
    return resources.each(resources.total("flops"), shared=True)


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
def _peak_memory(resources: ResourceUse) -> Result:
    return resources.each(resources.largest("peak_memory"))


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
def _peak_device_memory(resources: ResourceUse) -> Result:
    return resources.each(resources.largest("peak_device_memory"))


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
def _buffer_bytes(resources: ResourceUse) -> Result:
    return resources.each(resources.largest("buffer_bytes"))


class _Run(Loaded):
    def inputs(self, wanted: Collection[type]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """The resources of the run, which all its repeats have in common."""
        (run,) = self.unit.runs
        arrays = {str(name): np.asarray(array.values, np.float64) for name, array in run.load("resources").items()}
        yield ResourceUse(arrays, len(run.seeds)), ()


def _load(unit: Unit, settings: Any) -> Loaded:
    return _Run(unit)


@settings_of("cost")
def measure(source: Run | Study) -> xr.Dataset:
    """Cost per seed: of a run that trains several repeats at once, each has its share of time and work.

    Memory is not shared out: the repeats stand in it together.
    """
    raise AssertionError


FAMILY = Family("cost", "What it cost", "run", ("resources",), {ResourceUse: ("repeat",)}, _load, measure)
