"""What an accuracy costs: final accuracy against time or work, with intervals both ways."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from waterjar.diagnose.over_seeds import interval_words, over_seeds
from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.study import Diagnosis
from waterjar.errors import WaterjarError, given_as
from waterjar.view.curves import say
from waterjar.view.figures._series import axis_title, family_needs
from waterjar.view.results import Source, cell_order, diagnosis_of, roots_in
from waterjar.view.style import (
    axes,
    beside_legend,
    counted,
    figure_of,
    house_style,
    labels,
    marker_styles,
    stamp,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Cost against accuracy"
CAPTION = (
    "Each strategy at what it cost and what it reached, means with intervals both ways, small markers are seeds; up "
    "and to the left is better. Seconds are those of the machine that ran it, FLOPs are not."
)
NEEDS = ("cost", "continual|rigidity")
FINAL = ("average_accuracy", "patched_accuracy")
_KINDS = ("cost", "accuracy")
_UNITS = {"flops": "floating-point operations"}


def data(
    source: Source,
    *,
    cost: str = "seconds",
    accuracy: str | None = None,
    confidence: float | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """One row per cell and seed: cell, seed, cost and accuracy of the seed with their reasons, and of the cell
    cost_mean, cost_low, cost_high, cost_n, cost_interval (how they were made), accuracy_mean and so on; cost_metric
    and accuracy_metric name them.

    `cost` is a metric of the cost family; `accuracy` any metric, by default average_accuracy, or patched_accuracy where
    the first has no value. `confidence` is by default the level of each one's family. `settings` go to the families.
    """
    if find_metric(cost).family != "cost":
        raise WaterjarError(f"cost={cost}: expected a metric of the cost family, such as seconds or flops")
    needs = NEEDS if accuracy is None else family_needs([cost, accuracy], NEEDS)
    diagnosis = diagnosis_of(source, needs, settings)
    chosen = diagnosis.name_of(accuracy) if accuracy else _final_accuracy(diagnosis)
    table = _both(diagnosis.table([cost]), diagnosis.table([chosen]))
    levels = []
    for key, name in zip(_KINDS, (cost, chosen), strict=True):
        levels.append(diagnosis.confidence(diagnosis.declared(name).family) if confidence is None else confidence)
        bounding = diagnosis.declared(name).bounding
        of_cell = {
            cell: over_seeds(seeds[key].to_numpy(float), confidence=levels[-1], **bounding)
            for cell, seeds in table.groupby("cell", sort=False)
        }
        for column in ("mean", "low", "high", "n", "interval"):
            table[f"{key}_{column}"] = [getattr(of_cell[cell], column) for cell in table["cell"]]
    table = table.assign(cost_metric=cost, accuracy_metric=chosen)
    titles = {name: axis_title(diagnosis, name, _UNITS.get(name, "")) for name in (cost, chosen)}
    table.attrs = {"confidence": levels, "titles": titles}
    return table


def _final_accuracy(diagnosis: Diagnosis) -> str:
    for name in FINAL:
        metric = find_metric(name)
        result = diagnosis.results.get(metric.family)
        if result is not None and metric.scalar in result and bool(result[metric.scalar].notnull().any()):
            return name
    raise WaterjarError(f"neither of {' and '.join(FINAL)} has a value here: name a metric with {given_as('accuracy')}")


def _both(cost: pd.DataFrame, accuracy: pd.DataFrame) -> pd.DataFrame:
    """One row per cell and seed that has either, cells in the order of the study."""
    order = {name: i for i, name in enumerate(dict.fromkeys([*cost["cell"], *accuracy["cell"]]))}
    parts = []
    for key, part in zip(_KINDS, (cost, accuracy), strict=True):
        names = {"value": key, "reason": f"{key}_reason"}
        parts.append(part[["cell", "seed", "value", "reason"]].rename(columns=names))
    both = parts[0].merge(parts[1], on=["cell", "seed"], how="outer")
    both = both.sort_values(["cell", "seed"], key=lambda c: c.map(order) if c.name == "cell" else c, ignore_index=True)
    for key in _KINDS:
        both[f"{key}_reason"] = both[f"{key}_reason"].fillna("not_recorded").replace("present", "")
    return both


def cost_accuracy(
    source: Source,
    *,
    cost: str = "seconds",
    accuracy: str | None = None,
    confidence: float | None = None,
    ax: Axes | None = None,
    **settings: Any,
) -> Figure:
    """Draw accuracy over cost, one marker per cell; `settings` go to the families."""
    with house_style():
        table = data(source, cost=cost, accuracy=accuracy, confidence=confidence, **settings)
        cells = list(dict.fromkeys(table["cell"]))
        styles, shown_as = marker_styles(cell_order(source, cells)), labels(cells, most=44, width=30)
        ax = axes(ax, (6.4, beside_legend(shown_as.values(), 3.8)))
        for cell, part in table.groupby("cell", sort=False):
            _mark(ax, part, styles[cell], shown_as[cell])
        chosen = table["accuracy_metric"].iloc[0]
        for axis, name in ((ax.xaxis, cost), (ax.yaxis, chosen)):
            axis.set_label_text(table.attrs["titles"][name])
        if not (table["cost"].notna() & table["accuracy"].notna()).any():
            say(ax, f"no run has both {cost} and {chosen}")
        seeds = counted([*table["cost_n"], *table["accuracy_n"]], "seed")
        if ax.get_xlim()[0] < 0:  # no run costs less than nothing
            ax.set_xlim(left=0.0)
        made = interval_words([*table["cost_interval"], *table["accuracy_interval"]], table.attrs["confidence"])
        note = "\n".join(textwrap.wrap(f"mean and {made} of {seeds}", 32))
        if ax.containers:
            ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, title=note, alignment="left")
        return stamp(figure_of(ax), roots_in(source))


def _mark(ax: Axes, part: pd.DataFrame, style: dict[str, Any], label: str) -> None:
    first = part.iloc[0]
    ax.scatter(part["cost"], part["accuracy"], s=12, alpha=0.55, linewidths=0, **style)
    if not (np.isfinite(first["cost_mean"]) and np.isfinite(first["accuracy_mean"])):
        return
    bars: dict[str, Any] = {}
    for axis, key in (("xerr", "cost"), ("yerr", "accuracy")):
        mean, low, high = (first[f"{key}_{part}"] for part in ("mean", "low", "high"))
        bars[axis] = np.nan_to_num([[mean - low], [high - mean]])  # one seed has no interval
    ax.errorbar(
        first["cost_mean"], first["accuracy_mean"], fmt=style["marker"], color=style["color"], markersize=8,
        markeredgecolor="black", markeredgewidth=0.6, elinewidth=1.3, label=label, zorder=5, **bars,
    )  # fmt: skip
