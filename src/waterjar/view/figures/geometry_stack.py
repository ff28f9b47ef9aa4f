"""Manifold geometry over training: six panels, with the capacity found by simulation over the calculated one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from waterjar.run.reader import Run
from waterjar.run.study import Study
from waterjar.view.results import by_cell, curve_of, pick_layer, result_of, roots_in, stack
from waterjar.view.style import canvas, house_style, line_styles, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = ("capacity", "radius", "dimension", "center_alignment", "axis_alignment", "center_axis_alignment")


def geometry_stack(
    source: Run | Study | xr.Dataset,
    *,
    dataset: str = "",
    layer: str | None = None,
    over: str = "total_epoch",
    band: str = "interval",
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw the geometry of one layer (the last one by default); `settings` go to `geometry.measure`.

    Simulated capacity stands over capacity wherever it was measured: the mean over repeats, and as error bars their
    standard deviation, or of one repeat the interval of its trials.
    """
    result = result_of(source, "geometry", settings)
    with house_style():
        figure = canvas(figure, (6.4, 9.6))
        panels = stack(result, METRICS, figure, layer=layer, over=over, band=band)
        panels[0].set_title(" - ".join(part for part in ("Manifold Geometric Analysis", dataset) if part), pad=14)
        _simulated(panels[0], result, layer, over)
        figure.align_ylabels(panels)
        return stamp(figure, roots_in(result))


def _simulated(ax: Axes, result: xr.Dataset, layer: str | None, over: str) -> None:
    cells = list(by_cell(result))
    styles = line_styles([name for name, _ in cells])
    drawn = False
    for name, whole in cells:
        one = pick_layer(whole, layer)
        x, values, _ = curve_of(one, "simulated_capacity", over)
        there = np.isfinite(values).all(axis=0) if len(values) else np.zeros(0, bool)
        if not there.any():
            continue
        mean = values[:, there].mean(axis=0)
        if len(values) > 1:
            error = values[:, there].std(axis=0, ddof=1)
            bars = np.stack([error, error])
        else:
            low, high = (curve_of(one, f"simulated_capacity_{side}", over)[1] for side in ("low", "high"))
            below = mean - low[0, there] if len(low) else np.zeros(len(mean))
            above = high[0, there] - mean if len(high) else np.zeros(len(mean))
            bars = np.nan_to_num(np.stack([below, above]))  # a bound beyond N is open: no bar on that side
        colour = "black" if len(cells) == 1 else styles[name]["color"]
        label = None if drawn else "Simulated (Alg 1)"
        ax.errorbar(x[there], mean, bars, fmt="o", ms=4, mfc=colour, mec="black", ecolor=colour, label=label, zorder=5)
        drawn = True
    if drawn:
        handles, labels = ax.get_legend_handles_labels()
        at = labels.index("Simulated (Alg 1)")
        ax.legend([handles[at]], [labels[at]], loc="best")
