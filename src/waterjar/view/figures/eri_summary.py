"""The rigidity index of every learner: AD, PD and SFR_rel with intervals, seeds as dots, censored ones hatched."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.over_seeds import interval_of, interval_words
from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.result import NO_RUN, NOT_RECORDED
from waterjar.run.schema import REASONS
from waterjar.view.curves import say
from waterjar.view.figures._rows import draw_estimates, name_rows
from waterjar.view.results import Source, by_cell, cell_order, result_of, roots_in
from waterjar.view.style import axis_end, canvas, counted, foot_note, house_style, marker_styles, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "The Einstellung Rigidity Index of each learner"
CAPTION = (
    "Each learner against the network that saw the last task alone: right of 0 is slower (AD), worse (PD), more "
    "reliant on the shortcut (SFR_rel); small dots are seeds. Hatched: some seeds never reached the threshold, so "
    "the delay within the budget is shown, which counts them."
)
NEEDS = ("rigidity",)
METRICS = ("ad", "pd", "sfr_rel")
_TITLES = {"ad": "adaptation delay", "pd": "performance deficit", "sfr_rel": "added shortcut reliance"}


def data(source: Source, **settings: Any) -> pd.DataFrame:
    """One row per metric, cell and seed: metric, cell, seed, value, reason, censored, mean, low, high, n, n_seeds,
    n_censored, measured_as, budget, confidence, pattern. The baseline itself is left out: it is 0 by definition.

    Where a seed of a cell is censored, `measured_as` is `ad_restricted` instead of `ad`, as in the verdict; `censored`
    is whether either side of the seed never reached the threshold. `settings` go to `rigidity.measure`.
    """
    result = result_of(source, "rigidity", settings)
    confidence = json.loads(result.attrs["settings"])["confidence"]
    rows: list[dict[str, Any]] = []
    for cell, one in by_cell(result):
        if str(one["pattern"].values) != "baseline":
            rows += [row for metric in METRICS for row in _rows(cell, one, metric)]
    columns = ["metric", "cell", "seed", "value", "reason", "censored", "mean", "low", "high", "interval", "n",
               "n_seeds", "n_censored", "measured_as", "budget", "confidence", "pattern"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).assign(confidence=confidence)


def _rows(cell: str, one: xr.Dataset, metric: str) -> list[dict[str, Any]]:
    measured = str(one["ad_judged_by"].values) if metric == "ad" else metric
    codes = np.atleast_1d(reasons_of(one, measured).values)
    cut = {
        side: np.atleast_1d(one[f"ad_censored_{side}"].values) == 1 if metric == "ad" else np.zeros(codes.size, bool)
        for side in ("learner", "baseline")
    }
    censored = (cut["learner"] | cut["baseline"]) & bool(str(one["baseline"].values))  # without one there is no AD
    ran = _ran(one)
    about = {
        "metric": metric,
        "cell": cell,
        **{key: float(one[f"{measured}_{key}"].values) for key in ("mean", "low", "high")},
        "interval": interval_of(find_metric(measured), int(one[f"{measured}_n"].values)),
        "n": int(one[f"{measured}_n"].values),
        "n_seeds": int(ran.sum()),
        "n_censored": int((censored & ran).sum()),
        "measured_as": measured,
        "budget": float(one["budget"].values),
        "pattern": str(one["pattern"].values),
    }
    return [
        {
            **about,
            "seed": int(seed),
            "value": float(np.atleast_1d(one[measured].values)[i]),
            "reason": "" if codes[i] == 0 else REASONS[codes[i]],
            "censored": bool(censored[i]),
        }
        for i, seed in enumerate(np.atleast_1d(one["seed"].values))
        if ran[i]
    ]


def _ran(one: xr.Dataset) -> NDArray[np.bool_]:
    """(repeat,): whether the cell has the seed: something of it was recorded."""
    codes = [np.atleast_1d(reasons_of(one, name).values) for name in ("patched_accuracy", "adaptation_epoch", "sfr")]
    return np.asarray((~np.isin(np.stack(codes), (NOT_RECORDED, NO_RUN))).any(axis=0))


def eri_summary(source: Source, *, figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw AD, PD and SFR_rel of every learner; `settings` go to `rigidity.measure`."""
    with house_style():
        table = data(source, **settings)
        cells = list(dict.fromkeys(table["cell"]))
        of_all = marker_styles(cell_order(source, cells))  # the baseline has its colour too, though no row here
        styles = {cell: of_all[cell] for cell in cells}
        figure = canvas(figure, (9.6, 0.48 * max(len(cells), 2) + 1.5))
        panels = figure.subplots(1, 3, sharey=True, squeeze=False)[0]
        for ax, metric in zip(panels, METRICS, strict=True):
            declared = find_metric(metric)
            part = table[table["metric"] == metric]
            draw_estimates(ax, part, styles)
            ax.axvline(0.0, color="black", linewidth=0.8, zorder=1)
            ax.set_xlabel(f"{declared.symbol}{axis_end(declared.units, declared.direction)}")
            ax.set_title(_TITLES[metric])
            if not part["mean"].notna().any():
                ax.set_xticks([])
                why = part.loc[(part["reason"] != "") & ~part["censored"], "reason"].value_counts()
                if len(why) or part.empty:
                    said = "; ".join(f"{n} of {len(part)} {reason}" for reason, n in why.items())
                    say(ax, said or "no learner beside a baseline")
        _mark_censored(panels[0], table[table["metric"] == "ad"])
        name_rows(panels[0], cells)
        foot_note(figure, _note(table))
        return stamp(figure, roots_in(source))


def _mark_censored(ax: Axes, part: pd.DataFrame) -> None:
    for row, (_, of_cell) in enumerate(part.groupby("cell", sort=False)):
        first = of_cell.iloc[0]
        if first["n_censored"]:
            ax.axhspan(row - 0.45, row + 0.45, fill=False, hatch="////", edgecolor="#bbbbbb", linewidth=0, zorder=0)
            text = f"{first['n_censored']} of {first['n_seeds']} seeds censored"
            if first["n"]:
                text += f"; within {first['budget']:g} epochs"
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}
            ax.text(0.99, row - 0.3, text, transform=ax.get_yaxis_transform(), ha="right", va="center", fontsize=6.5,
                    bbox=box, zorder=7)  # fmt: skip


def _note(table: pd.DataFrame) -> str:
    counts = set(table["n"]) - {0}
    if not counts:
        return "no seed has a value"
    level = interval_words(table["interval"], table["confidence"].iloc[0])
    alone = "; one seed has no interval" if 1 in counts else ""
    return f"mean and {level} of {counted(counts, 'seed')} (small; open where censored){alone}"
