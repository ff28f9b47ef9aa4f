"""Where training ended: the last value of every loss and accuracy that was recorded, seed by seed, and differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.diagnose.baseline import find_baselines
from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.over_seeds import OverSeeds, over_seeds, recorded_range
from waterjar.diagnose.result import NO_RUN, NOT_RECORDED, RUN_ENDED
from waterjar.errors import WaterjarError
from waterjar.run.schema import GROUPS, REASON, REASONS
from waterjar.stats.corrections import correct
from waterjar.stats.table import compare_many
from waterjar.view.report.leads._claims import Difference, Mean
from waterjar.view.report.model import Model

_FIRST = {"performance": ("accuracy", "macro_accuracy", "loss"), "train": ("loss", "accuracy"), "monitor": ()}
"""Group -> the variables of the schema that tell most; those that a study declares itself follow."""
_MOST = 12
"""Quantities that are listed."""
_ABSENT = (NOT_RECORDED, NO_RUN, RUN_ENDED)


class Quantity(NamedTuple):
    """Something that was recorded over training."""

    group: str
    variable: str
    eval_set: str
    direction: str
    units: str

    @property
    def words(self) -> str:
        """As a sentence names it: "loss on held_out", "training accuracy"."""
        name = self.variable.replace("_", " ")
        if self.group == "train":
            return f"training {name}"
        return f"{name} on {self.eval_set}" if self.eval_set else name


class Ends(NamedTuple):
    """The last values of a quantity, and how learners differ by them."""

    quantity: Quantity
    numbers: dict[str, OverSeeds]
    """Of every learner."""
    differences: list[Difference]

    @property
    def group(self) -> str:
        """Where it was recorded."""
        return self.quantity.group

    @property
    def words(self) -> str:
        """As a sentence names it."""
        return self.quantity.words

    @property
    def lower_is_better(self) -> bool:
        """As of a loss; what has no direction counts as if higher were better, and its words say higher and lower."""
        return self.quantity.direction == "lower"

    @property
    def means(self) -> list[Mean]:
        """The learners that have a value."""
        return [Mean(cell, one.mean, one.low, one.high, one.n) for cell, one in self.numbers.items() if one.n]


def quantities(model: Model) -> Iterator[Quantity]:
    """What was recorded along the steps of training and has one number per seed, what tells most first."""
    for group, first in _FIRST.items():
        found: dict[str, xr.DataArray] = {}
        sets: dict[str, None] = {}
        for one in model.recorded(group).values():
            able = {str(name): array for name, array in one.data_vars.items() if _is_course(array)}
            found |= {name: array for name, array in able.items() if not name.endswith(REASON)}
            sets |= dict.fromkeys(str(name) for name in one["eval_set"].values) if "eval_set" in one.coords else {}
        own = [name for name in found if name not in GROUPS[group]]
        for name in [*(name for name in first if name in found), *own]:
            about = found[name].attrs
            for eval_set in sets if "eval_set" in found[name].dims else [""]:
                yield Quantity(group, name, eval_set, about.get("direction", "none"), about.get("units", "1"))


def _is_course(array: xr.DataArray) -> bool:
    return set(array.dims) - {"eval_set"} == {"step", "repeat"} and array.dtype.kind in "iuf"


def ends_of(model: Model) -> list[Ends]:
    """Every quantity at the end, and learners beside their baseline, corrected over all that was evaluated."""
    rows, numbers, known = [], {}, list(quantities(model))[:_MOST]
    for place, one in enumerate(known):
        for name in model.names.values():
            values, reasons, seeds = last_values(model, name, one)
            if len(values):
                within = recorded_range(one.variable)
                found = over_seeds(values, reasons, model.diagnosis.analysis.confidence, within)
                numbers[place, name] = found
                rows += [
                    {"metric": str(place), "group": name, "seed": seed, "value": value}
                    for seed, value in zip(seeds, values, strict=True)
                ]
    tested = _differences(model, pd.DataFrame(rows), numbers, known)
    return [
        Ends(
            one,
            {name: found for (at, name), found in numbers.items() if at == place},
            [found for at, found in tested if at == place],
        )
        for place, one in enumerate(known)
        if any(at == place for at, _ in numbers)
    ]


def last_values(model: Model, cell: str, one: Quantity) -> tuple[np.ndarray, list[str], list[int]]:
    """(value, why it is missing, seed) of every repeat at its own last step; of a cell that has not recorded it, none.

    A loss that ended as NaN stays NaN: it is not the last good one.
    """
    steps = model.recorded(one.group).get(cell)
    if steps is None or one.variable not in steps:
        return np.empty(0), [], []
    pair = [steps[one.variable], reasons_of(steps, one.variable)]
    if one.eval_set:
        if one.eval_set not in steps["eval_set"].values:
            return np.empty(0), [], []
        pair = [array.sel(eval_set=one.eval_set) for array in pair]
    values, codes = (array.transpose("repeat", "step").values for array in pair)
    there = ~np.isin(codes, _ABSENT)
    last = np.where(there.any(axis=1), there.shape[1] - 1 - there[:, ::-1].argmax(axis=1), -1)
    at = np.arange(len(values)), last
    found = np.where(np.isfinite(values[at]), values[at], np.nan).astype(np.float64)
    reasons = [REASONS[code] if code else "not_a_number" for code in codes[at]]
    return found, reasons, [int(seed) for seed in steps["seed"].values]


def _differences(
    model: Model, rows: pd.DataFrame, numbers: dict[tuple[int, str], OverSeeds], known: list[Quantity]
) -> list[tuple[int, Difference]]:
    """(place of the quantity, difference) of what was evaluated; of training alone where nothing else was recorded.

    Where metrics over tasks were measured, learners are compared by these: one study has one set of p.
    """
    analysis = model.diagnosis.analysis
    if (
        {"continual", "rigidity"} & set(model.diagnosis.results)
        or rows.empty
        or analysis.tests is False
        or len(model.names) < 2
    ):
        return []
    groups = {one.group for one in known}
    main = next(group for group in ("performance", "monitor", "train") if group in groups)
    rows = rows[[known[int(place)].group == main for place in rows["metric"]]]
    try:
        bases, _ = find_baselines(model.study, model.baseline, analysis.rule)
    except WaterjarError:  # said where learners are compared
        return []
    how, parts = analysis.test_settings, []
    bounding = {str(place): {"within": recorded_range(one.variable)} for place, one in enumerate(known)}
    for base in dict.fromkeys(base for base in bases.values() if base is not None):
        members = [model.names[cell] for cell, other in bases.items() if other == base]
        block = rows[rows["group"].isin(members)][["metric", "group", "seed", "value"]]
        if model.names[base] in set(block["group"]):
            made = compare_many(
                block, baseline=model.names[base], paired=how.paired, test=how.test, alpha=how.alpha, bounding=bounding
            )
            parts.append(made.assign(baseline=model.names[base]))
    if not parts:
        return []
    kept = pd.concat(parts, ignore_index=True)
    dropped = ["p_corrected", "correction", "family", "family_size", "family_missing", "significant"]
    table = correct(kept.drop(columns=dropped, errors="ignore"), family=(), method=how.correction)
    found = []
    for line in table[~table["is_baseline"]].itertuples():
        place = int(line.metric)
        own, other = numbers.get((place, line.group)), numbers.get((place, line.baseline))
        if own is None or other is None or not line.n_compared:
            continue
        pair = (_mean(str(line.group), own), _mean(str(line.baseline), other))
        bounds = line.difference, line.difference_low, line.difference_high
        significant = bool(line.p_corrected <= how.alpha)
        found.append((place, Difference(*pair, *bounds, int(line.n_compared), line.p_corrected, significant)))
    return found


def _mean(cell: str, one: OverSeeds) -> Mean:
    return Mean(cell, one.mean, one.low, one.high, one.n)
