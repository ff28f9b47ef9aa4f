"""One row per cell: seeds as small dots, their mean as a marker, its interval as a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from waterjar.view.style import labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_estimates(ax: Axes, part: pd.DataFrame, styles: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the rows of one metric (cell, seed, value, mean, low, high; censored if there is such a column).

    The i-th cell of `styles` stands at height i. Seeds stand a little apart, in the order of their numbers.
    """
    ax.grid(False, axis="y")
    ax.locator_params(axis="x", nbins=5)
    places = {cell: row for row, cell in enumerate(styles)}
    for name, of_cell in part.groupby("cell", sort=False):
        cell = str(name)
        row, style = places[cell], styles[cell]
        first = of_cell.iloc[0]
        spread = np.linspace(0.14, 0.32, len(of_cell)) if len(of_cell) > 1 else np.array([0.22])
        faces = [
            "none" if cut else style["color"] for cut in of_cell.get("censored", pd.Series(False, index=of_cell.index))
        ]
        ax.scatter(
            of_cell["value"], row + spread, s=11, marker=style["marker"], facecolors=faces, edgecolors=style["color"],
            linewidths=0.8, zorder=4,
        )  # fmt: skip
        if np.isfinite(first["mean"]):
            if np.isfinite(first["low"]):
                ax.plot([first["low"], first["high"]], [row, row], color=style["color"], linewidth=2.0, zorder=5)
            ax.plot(
                [first["mean"]], [row], linestyle="none", markersize=7, markeredgecolor="black", markeredgewidth=0.6,
                zorder=6, **style,
            )  # fmt: skip


def name_rows(ax: Axes, cells: Sequence[str], width: int = 28) -> None:
    """The names of the cells beside their rows, the first one on top."""
    shown = labels(cells, most=44, width=width)
    ax.set_yticks(range(len(cells)), [shown[cell] for cell in cells])
    ax.set_ylim(max(len(cells), 1) - 0.4, -0.6)
