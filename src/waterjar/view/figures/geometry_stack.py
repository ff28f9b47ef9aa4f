"""Manifold geometry over training: six panels, with the capacity found by simulation over the calculated one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.diagnose.over_seeds import mean_table
from waterjar.diagnose.training_order import visit_names_of
from waterjar.view.figures._stack import draw_stack, title_with_dataset
from waterjar.view.results import (
    Source,
    by_cell,
    cell_order,
    level_of,
    pick_layer,
    repeats_of,
    result_of,
    roots_in,
    snapshot_table,
)
from waterjar.view.style import canvas, house_style, line_styles, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Manifold geometry over training"
CAPTION = (
    "How well the classes can be told apart by a plane: higher capacity, and smaller radius, dimension and "
    "alignments, mean better untangled classes. Dots with error bars are capacity found by simulation (measure with "
    "simulate_every), which should agree with the line."
)
NEEDS = ("geometry",)
METRICS = ("capacity", "radius", "dimension", "center_alignment", "axis_alignment", "center_axis_alignment")
SIMULATED = "simulated_capacity"


def data(
    source: Source,
    *,
    layer: str | None = None,
    over: str = "total_epoch",
    band: str = "interval",
    confidence: float | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """One row per metric, cell and snapshot: metric, cell, layer, snapshot, train_task, `over`, mean, low, high, n,
    reason. Simulated capacity, where it was measured, has its standard deviation over repeats as bounds, and of one
    repeat the interval of its trials (a bound that is NaN is open). `settings` go to `geometry.measure`.
    """
    level = level_of(source, "geometry") if confidence is None else confidence
    result = result_of(source, "geometry", settings)
    table = snapshot_table(result, METRICS, layer=layer, over=over, band=band, confidence=level)
    found = pd.concat([table, _simulated(result, layer, over)], ignore_index=True)
    found.attrs = table.attrs
    return found


def _simulated(result: xr.Dataset, layer: str | None, over: str) -> pd.DataFrame:
    parts = []
    for cell, whole in by_cell(result):
        one, chosen = pick_layer(whole, layer)
        if not chosen:
            continue
        values, codes, _ = repeats_of(one, SIMULATED, "snapshot")
        there = np.isfinite(values).any(axis=0)
        if not there.any():
            continue
        found = mean_table(values, codes, band="std")
        if len(values) == 1:
            for side in ("low", "high"):
                bound = repeats_of(one, f"{SIMULATED}_{side}", "snapshot")[0]
                found[side] = bound[0] if len(bound) else np.nan
        about = {
            "metric": SIMULATED,
            "cell": cell,
            "layer": chosen,
            "snapshot": one["snapshot"].values,
            "train_task": visit_names_of(one),
            over: one[over].values.astype(float),
        }
        parts.append(pd.DataFrame(about).join(found)[there])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def geometry_stack(
    source: Source,
    *,
    dataset: str | None = None,
    layer: str | None = None,
    over: str = "total_epoch",
    band: str = "interval",
    confidence: float | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw the geometry of one layer (the last one by default); `settings` go to `geometry.measure`.

    `dataset` stands in the title; by default it is what the runs' settings say.
    """
    with house_style():
        table = data(source, layer=layer, over=over, band=band, confidence=confidence, **settings)
        figure = canvas(figure, (6.4, 9.6))
        order = cell_order(source, table["cell"])

        def simulated(ax: Axes) -> None:
            _draw_simulated(ax, table, order, over)

        panels = draw_stack(figure, table, METRICS, order, over=over, band=band, also=simulated)
        panels[0].set_title(title_with_dataset("Manifold Geometric Analysis", source, dataset), pad=14)
        figure.align_ylabels(panels)
        return stamp(figure, roots_in(source))


def _draw_simulated(ax: Axes, table: pd.DataFrame, order: list[str], over: str) -> None:
    cells = list(dict.fromkeys(table["cell"]))
    styles = line_styles(order)
    points = table[(table["metric"] == SIMULATED) & table["mean"].notna()]
    label = "Simulated (Alg 1)"
    for cell, part in points.groupby("cell", sort=False):
        mean = part["mean"].to_numpy()
        # one repeat without an interval, or a bound beyond the number of units, has no bar on that side
        bars = np.nan_to_num(np.stack([mean - part["low"].to_numpy(), part["high"].to_numpy() - mean]))
        colour = "black" if len(cells) == 1 else styles[cell]["color"]
        ax.errorbar(
            part[over], mean, bars, fmt="o", ms=4, mfc=colour, mec="black", ecolor=colour, label=label, zorder=5
        )
