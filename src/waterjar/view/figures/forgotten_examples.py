"""Which samples are forgotten: examples sorted by how often, and by when they were learned, a line per learner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.result import NEVER_REACHED, Codes, Floats
from waterjar.errors import WaterjarError
from waterjar.view.results import Source, by_cell, cell_order, repeats_of, result_of, roots_in
from waterjar.view.style import (
    axis_end,
    canvas,
    counted,
    foot_note,
    house_style,
    labels,
    legend_outside,
    line_styles,
    stamp,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Which examples are forgotten"
CAPTION = (
    "Examples of each learner, sorted: left by how often they were forgotten, right by the epoch at which they were "
    "learned. A line ends where examples begin that were never learned; the legend counts those that no seed learned, "
    "and those that none forgot."
)
NEEDS = ("examples",)
METRICS = ("forgetting_events", "first_learned")
_NAMED = 3
"""Examples of a level that are named."""


def data(source: Source, **settings: Any) -> pd.DataFrame:
    """One row per metric, cell and level, in the order of the line: metric, cell, value, examples, first, last, names,
    n, never, unforgettable, total.

    A level is a value that `examples` examples have, at the places `first` to `last` of the sorted line; `names` has a
    few of them. The value of an example is its mean over those of `n` seeds that learned it, of the epoch the median
    over all; where seeds were asked other examples, each is sorted by itself, and the value is the mean by place.
    `never` and `unforgettable` count examples that no seed ever learned, and that none forgot. Examples are those of
    the judged sets whose task was trained. `settings` go to `examples.measure`.
    """
    result = result_of(source, "examples", settings)
    parts = [_levels(one, cell, metric) for metric in METRICS for cell, one in by_cell(result)]
    columns = ["metric", "cell", "value", "examples", "first", "last", "names", "n", "never", "unforgettable", "total"]
    known = [part for part in parts if len(part)]
    if not known:
        raise WaterjarError("no example was looked at after its task was trained: there is none to sort")
    return pd.concat(known, ignore_index=True)[columns]


def sorted_examples(one: xr.Dataset, metric: str) -> pd.DataFrame:
    """The examples of a cell in the order of the line: example, value (NaN: never learned), learned_by (seeds), n."""
    judged = one["example_judged"].values.astype(bool)
    values, codes, seeds = repeats_of(one.isel(example=judged), metric, "example")
    able = ((codes == 0) | (codes == NEVER_REACHED)).all(1)  # seeds that ended early, or are broken, tell nothing
    if not len(seeds) or not able.any():
        able = (codes == 0).any(1)
    values, codes = values[able], codes[able]
    told = ((codes == 0) | (codes == NEVER_REACHED)).all(0) if len(values) else np.zeros(int(judged.sum()), np.bool_)
    values, codes = values[:, told], codes[:, told]
    names = one["example"].values[judged][told].astype(str)
    descending = metric == METRICS[0]
    if not bool(one["same_examples"]):
        order = np.argsort(np.where(codes > 0, np.inf, -values if descending else values), axis=1, kind="stable")
        values, codes = np.take_along_axis(values, order, 1), np.take_along_axis(codes, order, 1)
        names = np.full(len(names), "", object)
    value = _mean(values, codes) if descending else _median(values, codes)
    place = np.argsort(np.where(np.isnan(value), np.inf, -value if descending else value), kind="stable")
    found = {"example": names[place], "value": value[place], "learned_by": (codes == 0).sum(0)[place]}
    return pd.DataFrame({**found, "n": len(values)})


def _mean(values: Floats, codes: Codes) -> Floats:
    count = (codes == 0).sum(0)
    sums = np.where(codes == 0, values, 0.0).sum(0)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


def _median(values: Floats, codes: Codes) -> Floats:
    """Over seeds, the lower one of two; a seed that never learned the example is later than all others."""
    if not len(values):
        return np.empty(0)
    later = np.sort(np.where(codes > 0, np.inf, values), axis=0)[(len(values) - 1) // 2]
    return np.where(np.isinf(later), np.nan, later)


def _levels(one: xr.Dataset, cell: str, metric: str) -> pd.DataFrame:
    rows = sorted_examples(one, metric)
    there = rows[rows["value"].notna()].reset_index(drop=True)
    events = rows if metric == METRICS[0] else sorted_examples(one, METRICS[0])
    made = []
    for _, level in there.groupby(there["value"].ne(there["value"].shift()).cumsum(), sort=False):
        names = ", ".join(name for name in level["example"].iloc[:_NAMED] if name)
        at = (int(level.index[0]) + 1, int(level.index[-1]) + 1)
        made.append((metric, cell, float(level["value"].iloc[0]), len(level), *at, names, int(level["n"].max())))
    found = pd.DataFrame(made, columns=["metric", "cell", "value", "examples", "first", "last", "names", "n"])
    never, kept = int(events["value"].isna().sum()), int((events["value"] == 0).sum())
    return found.assign(never=never, unforgettable=kept, total=len(rows))


def forgotten_examples(source: Source, *, figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw sorted examples, a line per learner: forgetting events, and the epoch of learning.

    `settings` go to `examples.measure`.
    """
    with house_style():
        table = data(source, **settings)
        order = cell_order(source, table["cell"])
        figure = canvas(figure, (7.2, 3.8))
        panels = figure.subplots(1, 2)
        styles, names = line_styles(order), labels(order, most=24)
        handles: dict[str, Any] = {}
        for ax, metric in zip(panels, METRICS, strict=True):
            for cell in order:
                part = table[(table["metric"] == metric) & (table["cell"] == cell)]
                if len(part):
                    line = _line(ax, part, styles[cell])
                    about = part.iloc[0]
                    handles.setdefault(f"{names[cell]}: {_counts(about)}", line)
            _dress(ax, metric)
        legend_outside(figure, handles, None, where="upper")
        n = counted(set(table["n"]), "seed") if len(table) else "no seed"
        foot_note(
            figure,
            f"of an example, left: mean over those of {n} that learned it; right: median over seeds, which ends where "
            "most seeds never learned it; never learned: by no seed, never forgotten: by none",
        )
        return stamp(figure, roots_in(source))


def _counts(about: pd.Series[Any]) -> str:
    return f"{about['never']} never learned, {about['unforgettable']} never forgotten, of {about['total']}"


def _line(ax: Axes, part: pd.DataFrame, style: dict[str, Any]) -> Any:
    """A step for every level, from its first example to its last."""
    x = np.column_stack([part["first"] - 1, part["last"]]).ravel()
    (line,) = ax.plot(x, np.repeat(part["value"].to_numpy(float), 2), **style)
    return line


def _dress(ax: Axes, metric: str) -> None:
    declared = find_metric(metric)
    ax.set_title("how often forgotten" if metric == METRICS[0] else "when learned")
    ax.set_xlabel("examples, the most forgotten first" if metric == METRICS[0] else "examples, the first learned first")
    ax.set_ylabel(metric.replace("_", " ") + axis_end(declared.units, declared.direction))
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
