"""Any number that was recorded along training, as it stood at the end of each run: losses, returns, or others.

Of a study whose accuracies over tasks can be measured they stand beside metrics in tables, and are tested where they
are named. Of any other they are the metrics: `monitor/return`, `train/loss`, `performance/loss[held_out]`, with the
direction and units that were recorded with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.over_seeds import recorded_range
from waterjar.diagnose.registry import Direction, Metric
from waterjar.diagnose.result import NO_RUN, NOT_A_NUMBER, NOT_RECORDED, RUN_ENDED
from waterjar.errors import WaterjarError
from waterjar.run.schema import GROUPS, REASON, REASONS
from waterjar.run.study import Study

FAMILY = "recorded"
TITLE = "At the end of training"
_FIRST = {"performance": ("accuracy", "macro_accuracy", "loss"), "monitor": (), "train": ("loss", "accuracy")}
"""Group -> the variables of the schema that tell most; those that a study declares itself follow."""
_MEASURED = [("performance", name) for name in ("accuracy", "macro_accuracy", "task_accuracy")]
"""What metrics over tasks are made of."""
_MOST = 12
"""Quantities that are shown where nobody names any."""
_ABSENT = (NOT_RECORDED, NO_RUN, RUN_ENDED)


class Quantity(NamedTuple):
    """Something that was recorded over training."""

    group: str
    variable: str
    eval_set: str
    direction: str
    units: str

    @property
    def name(self) -> str:
        """By which tables and commands know it."""
        return f"{self.group}/{self.variable}" + (f"[{self.eval_set}]" if self.eval_set else "")

    @property
    def words(self) -> str:
        """As a sentence names it: "loss on held_out", "training accuracy"."""
        name = self.variable.replace("_", " ")
        if self.group == "train":
            return f"training {name}"
        return f"{name} on {self.eval_set}" if self.eval_set else name

    @property
    def metric(self) -> Metric:
        """As a metric: its last value."""
        dims = '("step", "eval_set", "repeat")' if self.eval_set else '("step", "repeat")'
        code = f'waterjar.Variable({dims}, "{self.variable}", direction="higher")'
        unsaid = (
            f"which way is better was not recorded: Recorder(..., variables={{'{self.group}/{self.variable}': {code}}})"
        )
        return Metric(
            name=self.name,
            family=FAMILY,
            long_name=f"{self.words}, at the last step of each run",
            formula="the last value that was logged",
            units=self.units,
            direction=cast(Direction, self.direction),
            range=recorded_range(self.variable),
            citation="recorded by the training loop",
            version=1,
            needs=(f"{self.group}/{self.variable}",),
            compute=last_values,
            input=xr.Dataset,
            unlike=unsaid if self.direction == "none" and self.variable not in GROUPS[self.group] else "",
        )


class Recorded:
    """What the runs of a study recorded along their steps; read when it is asked for."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._groups: dict[str, Mapping[str, xr.Dataset]] = {}
        self._apart: dict[str, WaterjarError] = {}

    def group(self, name: str) -> Mapping[str, xr.Dataset]:
        """Name of a cell -> a group of its runs; empty where no run has it, and where runs do not fit together."""
        if name not in self._groups:
            there = any(name in self.study.open(entry).nodes for entry in self.study.entries)
            try:
                self._groups[name] = self.study.load(name) if there else {}
            except WaterjarError as error:
                self._groups[name], self._apart[name] = {}, error
        return self._groups[name]

    @cached_property
    def quantities(self) -> dict[str, Quantity]:
        """Name -> what has one number per step and seed, what tells most first."""
        return {one.name: one for group in _FIRST for one in self._of_group(group)}

    def _of_group(self, group: str) -> Iterator[Quantity]:
        found: dict[str, xr.DataArray] = {}
        sets: dict[str, None] = {}
        for one in self.group(group).values():
            able = {str(name): array for name, array in one.data_vars.items() if _is_course(array)}
            found |= {name: array for name, array in able.items() if not name.endswith(REASON)}
            sets |= dict.fromkeys(str(name) for name in one["eval_set"].values) if "eval_set" in one.coords else {}
        own = [name for name in found if name not in GROUPS[group]]
        own.sort(key=lambda name: found[name].attrs.get("direction", "none") == "none")  # what can be better first
        first = [name for name in _FIRST[group] if name in found]
        for name in [*first, *own]:
            about = found[name].attrs
            for eval_set in sets if "eval_set" in found[name].dims else [""]:
                yield Quantity(group, name, eval_set, about.get("direction", "none"), about.get("units", "1"))

    @property
    def main(self) -> list[str]:
        """What learners are compared by: what was evaluated, else monitored; of training alone where that is all."""
        groups = [one.group for one in self.quantities.values()]
        first = groups[0] if groups else ""
        return [one.name for one in self.quantities.values() if one.group == first][:_MOST]

    @property
    def beside(self) -> list[str]:
        """What stands beside metrics over tasks: all but the accuracies that these are made of."""
        every = self.quantities.values()
        return [one.name for one in every if (one.group, one.variable) not in _MEASURED][:_MOST]

    def name_of(self, word: str) -> str:
        """The name of the quantity that a word stands for: a name, or what one alone has; any other word as it is.

        `return` is `monitor/return`, `performance/loss` its only evaluation set. What several have is an error.
        """
        if word in self.quantities:
            return word
        able = [
            name
            for name, one in self.quantities.items()
            if word in (one.variable, f"{one.group}/{one.variable}", one.words)
        ]
        if not able and (word.partition("/")[0] in self._apart):
            raise self._apart[word.partition("/")[0]]
        if len(able) > 1:
            raise WaterjarError(f"{word} is {', '.join(able[:-1])} or {able[-1]}: name one")
        return able[0] if able else word

    def last(self, name: str, cell: str) -> tuple[np.ndarray, list[str], list[int]]:
        """See `last_values`; of a cell that has not recorded it, none."""
        one = self.quantities[name]
        steps = self.group(one.group).get(cell)
        known = steps is not None and one.variable in steps
        if steps is None or not known or (one.eval_set and one.eval_set not in steps["eval_set"].values):
            return np.empty(0), [], []
        return last_values(steps, one)


def _is_course(array: xr.DataArray) -> bool:
    return set(array.dims) - {"eval_set"} == {"step", "repeat"} and array.dtype.kind in "iuf"


def last_values(steps: xr.Dataset, one: Quantity) -> tuple[np.ndarray, list[str], list[int]]:
    """(value, why it is missing, seed) of every repeat at its own last step.

    A loss that ended as NaN stays NaN: it is not the last good one.
    """
    pair = [steps[one.variable], reasons_of(steps, one.variable)]
    if one.eval_set:
        pair = [array.sel(eval_set=one.eval_set) for array in pair]
    values, codes = (array.transpose("repeat", "step").values for array in pair)
    there = ~np.isin(codes, _ABSENT)
    last = np.where(there.any(axis=1), there.shape[1] - 1 - there[:, ::-1].argmax(axis=1), -1)
    at = np.arange(len(values)), last
    found = np.where(np.isfinite(values[at]), values[at], np.nan).astype(np.float64)
    why = np.where(codes[at] > 0, codes[at], NOT_A_NUMBER)
    reasons = [REASONS[code] for code in np.where(np.isnan(found), why, 0)]
    return found, reasons, [int(seed) for seed in steps["seed"].values]
