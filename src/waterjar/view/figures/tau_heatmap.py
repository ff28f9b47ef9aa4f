"""How much of the adaptation delay is the choice of the threshold: AD over a grid of tau, learner by learner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.result import NO_RUN, NOT_RECORDED
from waterjar.run.schema import REASONS
from waterjar.view.curves import say
from waterjar.view.figures._heatmap import hatch, write_in
from waterjar.view.figures._rows import name_rows
from waterjar.view.results import Source, by_cell, result_of, roots_in
from waterjar.view.style import axes, figure_of, house_style, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Adaptation delay over thresholds"
CAPTION = (
    "AD in epochs for every threshold tau (columns) and learner (rows): orange is slower than the baseline, purple "
    "quicker. White and hatched where a seed of either side never reached tau: the mean of the n of m others would "
    "flatter, so it has a number and no colour."
)
NEEDS = ("rigidity",)


def data(source: Source, **settings: Any) -> pd.DataFrame:
    """One row per cell and threshold: cell, threshold, mean over the seeds that reached it on both sides, n of them,
    n_seeds, n_censored, reason. The baseline itself is left out. `settings` go to `rigidity.measure`.
    """
    result = result_of(source, "rigidity", settings)
    rows = []
    for cell, one in by_cell(result):
        if str(one["pattern"].values) == "baseline":
            continue
        codes = reasons_of(one, "ad_by_threshold").transpose("repeat", "threshold").values
        of_mean = reasons_of(one, "ad_by_threshold_mean").values
        for i, threshold in enumerate(one["threshold"].values):
            why = codes[:, i]
            counts = {"n": int((why == 0).sum()), "n_seeds": int((~np.isin(why, (NOT_RECORDED, NO_RUN))).sum())}
            rows.append({
                "cell": cell, "threshold": float(threshold), "mean": float(one["ad_by_threshold_mean"].values[i]),
                **counts, "n_censored": int(one["ad_by_threshold_n_censored"].values[i]),
                "reason": "" if of_mean[i] == 0 else REASONS[of_mean[i]],
            })  # fmt: skip
    return pd.DataFrame(rows, columns=["cell", "threshold", "mean", "n", "n_seeds", "n_censored", "reason"])


def tau_heatmap(source: Source, *, ax: Axes | None = None, **settings: Any) -> Figure:
    """Draw AD over the grid of thresholds; `settings` go to `rigidity.measure` (thresholds=[...] for another grid)."""
    with house_style():
        table = data(source, **settings)
        cells = list(dict.fromkeys(table["cell"]))
        levels = sorted(set(table["threshold"]))
        ax = axes(ax, (0.55 * max(len(levels), 6) + 2.4, 0.45 * max(len(cells), 2) + 1.5))
        figure = figure_of(ax)
        ax.grid(False)
        ax.set_xlabel("threshold τ (accuracy to reach)")
        if not cells or not table["mean"].notna().any():
            why = ", ".join(dict.fromkeys(table.loc[table["reason"] != "", "reason"]))
            say(ax, f"no AD at any threshold: {why}" if cells else "no learner beside a baseline")
            ax.set_xticks([])
            ax.set_yticks([])
            return stamp(figure, roots_in(source))
        picture = _squares(ax, table, cells, levels)
        if ((table["n"] > 0) & (table["n"] < table["n_seeds"])).any():
            ax.set_xlabel(ax.get_xlabel() + "\nhatched: mean of the n/m seeds that reach τ")
        figure.colorbar(picture, ax=ax, label="AD (epoch), mean over seeds", shrink=0.9, pad=0.02)
        return stamp(figure, roots_in(source))


def _squares(ax: Axes, table: pd.DataFrame, cells: list[str], levels: list[float]) -> Any:
    grid = {
        column: table.pivot(index="cell", columns="threshold", values=column).reindex(index=cells, columns=levels)
        for column in ("mean", "n", "n_seeds", "n_censored")
    }
    mean, reached, ran = (grid[column].to_numpy(float) for column in ("mean", "n", "n_seeds"))
    incomplete = (reached < ran) | (grid["n_censored"].to_numpy(float) > 0) | np.isnan(mean)
    coloured = np.where(incomplete, np.nan, mean)  # colour speaks only where every seed has a value
    most = float(np.nanmax(np.abs(coloured), initial=0.0)) or 1.0
    picture = ax.imshow(coloured, cmap="PuOr_r", vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    hatch(ax, incomplete)
    texts = np.full(mean.shape, "", object)
    for i, j in np.ndindex(mean.shape):
        n, seeds = int(grid["n"].iat[i, j]), int(grid["n_seeds"].iat[i, j])
        texts[i, j] = f"{mean[i, j]:.1f}" + (f"\n{n}/{seeds}" if n < seeds else "") if n else "–"
    if len(levels) <= 16:
        write_in(ax, picture, texts, box=incomplete)
    name_rows(ax, cells)
    ax.set_ylim(len(cells) - 0.5, -0.5)
    step = -(-len(levels) // 16)
    ax.set_xticks(range(0, len(levels), step), [f"{level:g}" for level in levels[::step]])
    return picture
