"""Where training ended: the last value of every loss and accuracy that was recorded, seed by seed, and differences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from waterjar.diagnose.over_seeds import OverSeeds, over_seeds
from waterjar.diagnose.recorded import Quantity
from waterjar.errors import WaterjarError
from waterjar.view.report.leads._claims import OVER_TASKS, Difference, Mean, left_out, means_of
from waterjar.view.report.model import Model

_MOST = 12
"""Variables of a group, and evaluation sets of a variable, that are listed."""


class Ends(NamedTuple):
    """The last values of a quantity, and how learners differ by them."""

    quantity: Quantity
    numbers: dict[str, OverSeeds]
    """Of every learner."""
    differences: list[Difference]
    tests: int = 0
    """Over how many tests their p is corrected."""

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

    @property
    def without(self) -> list[str]:
        """The learners that recorded it and end without a value."""
        return [cell for cell, one in self.numbers.items() if not one.n]


def quantities(model: Model) -> Iterable[Quantity]:
    """What was recorded along the steps of training and has one number per seed, what tells most first.

    None where runs do not fit together: the first screen says which, and about what.
    """
    return model.diagnosis.recorded.quantities.values()


def ends_of(model: Model) -> list[Ends]:
    """Every quantity at the end, and learners beside their baseline, corrected over all that was evaluated."""
    known = [one for one in quantities(model) if _is_listed(model, one)]
    shown = dict(zip(model.study.cell_names.values(), model.names.values(), strict=True))
    level, found = model.diagnosis.analysis.confidence, []
    against = _differences(model)
    for one in known:
        numbers: dict[str, OverSeeds] = {}
        seeds: dict[str, set[int]] = {}
        for cell, name in shown.items():
            values, reasons, own = model.diagnosis.recorded.last(one.name, cell)
            seeds[name] = {seed for seed, value in zip(own, values, strict=True) if not math.isnan(value)}
            if len(values):
                numbers[name] = over_seeds(values, reasons, level, **one.metric.bounding)
        if numbers:
            found.append(Ends(one, numbers, *_of_quantity(model, against, one, numbers, seeds)))
    return found


def _is_listed(model: Model, one: Quantity) -> bool:
    """Whether it is among the first of its kind: many evaluation sets of accuracy do not crowd out the losses."""
    group = [other for other in quantities(model) if other.group == one.group]
    variables = list(dict.fromkeys(other.variable for other in group))[:_MOST]
    sets = [other.eval_set for other in group if other.variable == one.variable][:_MOST]
    return one.variable in variables and one.eval_set in sets


def _of_quantity(
    model: Model, table: pd.DataFrame, one: Quantity, numbers: dict[str, OverSeeds], seeds: dict[str, set[int]]
) -> tuple[list[Difference], int]:
    """The differences of learners by a quantity, and over how many tests they were corrected."""
    found = []
    rows = table[table["metric"] == one.name] if len(table) else table
    for line in rows.itertuples():
        own, other = numbers.get(line.group), numbers.get(line.baseline)
        if not line.is_baseline and own is not None and other is not None and line.n_compared:
            pair = (_mean(str(line.group), own), _mean(str(line.baseline), other))
            bounds = line.difference, line.difference_low, line.difference_high
            sure_of = int(line.n_compared), line.p_corrected, bool(line.significant)
            lone = left_out(model, *((str(name), seeds[str(name)]) for name in (line.group, line.baseline)))
            found.append(Difference(*pair, *bounds, *sure_of, paired=model.paired, left_out=lone))
    return found, int(rows["family_size"].max()) if found else 0


def tests_of(model: Model) -> int:
    """Over how many tests the first screen's p is corrected: those of last values, else those of `waterjar compare`."""
    if model.diagnosis.analysis.tests is False:
        return 0
    table, _ = model.compared
    of_ends = max((one.tests for one in ends_of(model)), default=0)
    return of_ends or (int(table["family_size"].max()) if len(table) else 0)


def _differences(model: Model) -> pd.DataFrame:
    """Learners compared, as `waterjar compare` does; where a study names its families, by what was recorded alone.

    Where metrics over tasks have values, learners are compared by these: one study has one set of p.
    """
    found = model.diagnosis
    if found.ends:
        return model.compared[0]
    by_tasks = "rigidity" in found.results or any(means_of(model, name) for name in OVER_TASKS)
    if by_tasks or found.analysis.tests is False or len(model.names) < 2:
        return pd.DataFrame()
    try:
        return model.compared_by(found.recorded.main)
    except WaterjarError:  # no baseline: said where learners are compared
        return pd.DataFrame()


def _mean(cell: str, one: OverSeeds) -> Mean:
    return Mean(cell, one.mean, one.low, one.high, one.n)
