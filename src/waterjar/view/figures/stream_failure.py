"""What is left when streams fail: accuracy with all of them, without each, and with a random half."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.errors import WaterjarError
from waterjar.view.figures._collective import (
    ESTIMATE,
    SHARE,
    bounds_note,
    draw_row,
    estimates,
    measured,
    own_last,
    shown_name,
)
from waterjar.view.figures._heatmap import panel_grid
from waterjar.view.results import Source, by_cell, roots_in
from waterjar.view.style import COLOURS, canvas, foot_note, house_style, labels, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "When streams fail"
CAPTION = (
    "Accuracy of the collective with all streams (blue, and the line), without each of them, and with a random half "
    "(over many draws); of one seed the interval is over samples, of the half over which streams are gone. The farther "
    "left of the line, the more that stream is missed."
)
NEEDS = ("robustness",)
ALL, WITHOUT, HALF = "all", "without_", "half_streams"
_NAME = "failure_accuracy"


def data(source: Source, **settings: Any) -> pd.DataFrame:
    """One row per cell and failure: cell, failure, stream, mean, low, high, n, reason, interval, bounds, confidence,
    lost.

    `failure` is all, without_<stream> or half_streams, `lost` the mean accuracy less than with all. Numbers are those
    of the last probe. Bounds are over seeds; of one seed over samples, of the half over draws. `settings` go to
    `robustness.measure`.
    """
    result = measured(source, "robustness", settings)
    parts = [part.assign(cell=cell) for cell, one in by_cell(result) if len(part := _of_cell(one))]
    if not parts:
        raise WaterjarError("no stream was made to fail (probes/stream_failure): there is none to draw")
    return pd.concat(parts, ignore_index=True)[["cell", "failure", "stream", *ESTIMATE, "lost"]]


def _of_cell(one: xr.Dataset) -> pd.DataFrame:
    if _NAME not in one or not one.sizes.get("failure", 0):
        return pd.DataFrame()
    names = [str(name) for name in one["failure"].values]
    found = estimates(one, _NAME, own_last(one, _NAME), "failure", within=SHARE)
    found = found.assign(
        failure=names, stream=[n.removeprefix(WITHOUT) if n.startswith(WITHOUT) else "" for n in names]
    )
    found = found[found["n"] > 0].reset_index(drop=True)
    whole = found.loc[found["failure"] == ALL, "mean"]
    return found.assign(lost=(float(whole.iloc[0]) if len(whole) else np.nan) - found["mean"])


def stream_failure(source: Source, *, figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw what is left of accuracy when streams fail, a panel per learner.

    `settings` go to `robustness.measure`.
    """
    with house_style():
        table = data(source, **settings)
        cells = list(dict.fromkeys(table["cell"]))
        most = int(table.groupby("cell")["failure"].size().max())
        rows, columns, _ = panel_grid(len(cells), 3.4, 2.0)
        height = max(1.9, 0.8 + (0.26 if most <= 16 else 0.17) * most)
        figure = canvas(figure, (max(5.0, 3.4 * columns + 0.3), height * rows + 0.5))
        panels = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
        titles = labels(map(shown_name, cells), most=22)
        for ax, cell in zip(panels, cells, strict=False):
            _panel(ax, table[table["cell"] == cell])
            ax.set_title(titles[shown_name(cell)])
        for ax in panels[len(cells) :]:
            ax.set_visible(False)
        _reach(panels[0], table)
        words = bounds_note(table) or "one seed, without an interval"
        note = "; the half: over draws of which streams are gone" if (table["bounds"] == "samples").any() else ""
        foot_note(figure, words + note)
        return stamp(figure, roots_in(source))


def _panel(ax: Axes, part: pd.DataFrame) -> None:
    shown = labels(part["stream"], most=20)
    ticks = []
    for place, line in enumerate(part.itertuples()):
        style: dict[str, Any] = {"color": COLOURS[1], "marker": "s"}
        name = f"without {shown[line.stream]}"
        if line.failure == ALL:
            style, name = {"color": COLOURS[0], "marker": "o"}, "all streams"
            ax.axvline(line.mean, color=COLOURS[0], linewidth=0.9, alpha=0.6, zorder=1)
        elif line.failure == HALF:
            style, name = {"color": "black", "marker": "D"}, "a random half"
        elif not line.stream:
            name = labels([line.failure], most=24)[line.failure]
        draw_row(ax, place, line, style, size=6 if len(part) <= 16 else 4)
        ticks.append(name)
    ax.set_yticks(range(len(part)), ticks, fontsize=8 if len(part) <= 16 else 6)
    ax.set_ylim(len(part) - 0.4, -0.6)
    ax.grid(False, axis="y")
    ax.set_xlabel("accuracy ↑")
    ax.tick_params(labelbottom=True)


def _reach(ax: Axes, table: pd.DataFrame) -> None:
    """From 0 to 1, unless all lies in less than half of that."""
    known = table[["mean", "low", "high"]].to_numpy(float)
    low, high = (float(bound(known)) for bound in (np.nanmin, np.nanmax)) if np.isfinite(known).any() else (0.0, 1.0)
    if high - low > 0.5:
        low, high = 0.0, 1.0
    room = max(0.02, 0.08 * (high - low))
    ax.set_xlim(low - room, high + room)
