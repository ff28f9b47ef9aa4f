"""Accuracy under shifts by their severity, and under attacks, of the collective beside its controls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.errors import WaterjarError
from waterjar.view.figures._collective import ESTIMATE, SHARE, bounds_note, estimates, measured, own_last, shown_name
from waterjar.view.figures._controls import WORDS, notes_on, weak_models
from waterjar.view.figures._heatmap import panel_grid
from waterjar.view.results import Source, by_cell, roots_in
from waterjar.view.style import (
    canvas,
    foot_note,
    house_style,
    labels,
    legend_outside,
    line_styles,
    marker_styles,
    stamp,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Accuracy under shifts and attacks"
CAPTION = (
    "Accuracy by the severity of each shift (0: clean), a line per model, with its interval; beside them accuracy "
    "under attacks. A model that is better when clean starts higher: whether it is more robust is told by what it "
    "retains at equal clean accuracy, not by which line is on top."
)
NEEDS = ("robustness",)
_CURVES, _TABLE, _CLEAN = "shifted_accuracy", "attacked_accuracy", "model_clean_accuracy"


def data(source: Source, **settings: Any) -> pd.DataFrame:
    """One row per cell, model and condition: cell, kind, ladder, condition, severity, eps, model, mean, low, high, n,
    reason, interval, bounds, confidence.

    `kind` is shift or attack, `condition` its name; a shift begins with severity 0, which is clean. Numbers are those
    of the last probe. Bounds are over seeds, of one seed over samples. `settings` go to `robustness.measure`.
    """
    result = measured(source, "robustness", settings)
    parts = [part.assign(cell=cell) for cell, one in by_cell(result) for part in _of_cell(one)]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if not len(table) or not table["mean"].notna().any():
        raise WaterjarError("no run was asked under shifts or attacks (probes/robustness): there is none to draw")
    return table[["cell", "kind", "ladder", "condition", "severity", "eps", "model", *ESTIMATE]]


def _of_cell(one: xr.Dataset) -> list[pd.DataFrame]:
    parts = []
    shifts = _table(one, _CURVES, ("model", "ladder", "shift", "severity"))
    if len(shifts):
        shifts = shifts.rename(columns={"shift": "condition"}).assign(kind="shift", eps="")
        clean = _table(one, _CLEAN, ("model",))
        for ladder, condition in shifts[["ladder", "condition"]].drop_duplicates().itertuples(index=False):
            of_shift = shifts[(shifts["ladder"] == ladder) & (shifts["condition"] == condition)]
            about = {"ladder": ladder, "condition": condition, "severity": 0, "kind": "shift", "eps": ""}
            parts += [clean.assign(**about)] if len(clean) else []
            parts.append(of_shift)
    attacks = _table(one, _TABLE, ("model", "attack", "eps"))
    if len(attacks):
        parts.append(attacks.rename(columns={"attack": "condition"}).assign(kind="attack", ladder="", severity=-1))
    return parts


def _table(one: xr.Dataset, name: str, dims: tuple[str, ...]) -> pd.DataFrame:
    """The estimates of a variable with its labels, of what was recorded."""
    if name not in one or not all(one.sizes[dim] for dim in dims):
        return pd.DataFrame()
    found = estimates(one, name, own_last(one, name), *dims, within=SHARE)
    places = np.unravel_index(np.arange(len(found)), [one.sizes[dim] for dim in dims])
    for dim, place in zip(dims, places, strict=True):
        found[dim] = one[dim].values[place]
    return found[found["n"] > 0].reset_index(drop=True)


def shift_severity(source: Source, *, figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw accuracy against severity, a panel per shift, and accuracy under attacks; rows of panels per learner.

    `settings` go to `robustness.measure`.
    """
    with house_style():
        table = data(source, **settings)
        jobs = {str(cell): _panels(whole) for cell, whole in table.groupby("cell", sort=False)}
        columns, rows_of = _layout([len(own) for own in jobs.values()])
        rows, _, size = panel_grid(columns * sum(rows_of), 2.45, 2.3, most=columns)
        figure = canvas(figure, (size[0], size[1] + 0.9))
        panels = iter(figure.subplots(rows, columns, squeeze=False))
        models = list(dict.fromkeys(table["model"]))
        styles, cells = _styles(models), labels(map(shown_name, jobs), most=26)
        for (cell, own), height in zip(jobs.items(), rows_of, strict=True):
            of_cell = [ax for _ in range(height) for ax in next(panels)]
            for place, (ax, ((kind, ladder, condition), part)) in enumerate(zip(of_cell, own, strict=False)):
                name = labels([condition.replace("_", " ")], most=18)[condition.replace("_", " ")]
                told = f"{name} ({labels([ladder], most=8)[ladder]})" if kind == "shift" else "attacks"
                ax.set_title(f"{'' if place else cells[shown_name(cell)]}\n{told}", fontsize=9)
                (_severities if kind == "shift" else _attacks)(ax, part, styles)
                ax.set_ylim(-0.03, 1.03)
                ax.set_ylabel("" if place % columns else "accuracy ↑")
            for ax in of_cell[len(own) :]:
                ax.set_visible(False)
        legend_outside(figure, _handles(models, styles), None, where="upper")
        notes = notes_on(weak_models(source, measured(source, "robustness", settings)))
        foot_note(figure, "\n".join([bounds_note(table) or "one seed, without an interval", *notes]))
        return stamp(figure, roots_in(source))


def _layout(counts: list[int]) -> tuple[int, list[int]]:
    """Columns, and how many rows each learner has to itself, of so many panels each.

    >>> _layout([7, 7]), _layout([1, 1]), _layout([3])
    ((4, [2, 2]), (1, [1, 1]), (3, [1]))
    """
    most = max(counts)
    columns = -(-most // -(-most // 5))
    return columns, [-(-n // columns) for n in counts]


def _styles(models: list[str]) -> dict[str, dict[str, Any]]:
    """A colour, a marker and a dash for each: without colour, too, they are told apart."""
    dashes = line_styles(models)
    return {model: {**style, **dashes[model]} for model, style in marker_styles(models).items()}


def _panels(whole: pd.DataFrame) -> list[tuple[tuple[str, str, str], pd.DataFrame]]:
    """A panel per shift, and one of all attacks."""
    shifts = whole[whole["kind"] == "shift"]
    made = [
        (("shift", str(ladder), str(condition)), part)
        for (ladder, condition), part in shifts.groupby(["ladder", "condition"], sort=False)
    ]
    attacks = whole[whole["kind"] == "attack"]
    return [*made, *([(("attack", "", ""), attacks)] if len(attacks) else [])]


def _handles(models: list[str], styles: dict[str, dict[str, Any]]) -> dict[str, Any]:
    from matplotlib.lines import Line2D  # noqa: PLC0415 - an extra

    shown = labels((WORDS.get(model, model) for model in models), most=28)
    return {shown[WORDS.get(model, model)]: Line2D([], [], markersize=5, **styles[model]) for model in models}


def _severities(ax: Axes, part: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> None:
    count = len(styles)
    ordered = part.sort_values("severity", kind="stable")
    for i, (model, rows) in enumerate(ordered.groupby("model", sort=False)):
        x = rows["severity"].to_numpy(float) + 0.09 * (i - (count - 1) / 2)
        ax.plot(x, rows["mean"], markersize=4, linewidth=1.3, **styles[str(model)])
        ax.vlines(x, rows["low"], rows["high"], color=styles[str(model)]["color"], linewidth=1.0)
    known = sorted(part["severity"].unique())
    ax.set_xticks(known, ["clean" if x == 0 else str(x) for x in known])
    ax.set_xlabel("severity")


def _attacks(ax: Axes, part: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> None:
    part = part.assign(what=[f"{line.condition} {line.eps}" for line in part.itertuples()])
    known = list(dict.fromkeys(part["what"]))
    for i, (model, rows) in enumerate(part.groupby("model", sort=False)):
        x = np.array([known.index(what) for what in rows["what"]]) + 0.18 * (i - (len(styles) - 1) / 2)
        ax.plot(x, rows["mean"], markersize=5, **{**styles[str(model)], "linestyle": "none"})
        ax.vlines(x, rows["low"], rows["high"], color=styles[str(model)]["color"], linewidth=1.0)
    shown = labels(known, most=16)
    ax.set_xticks(range(len(known)), [shown[name].replace("_", " ") for name in known], rotation=35, ha="right")
    ax.set_xlim(-0.6, len(known) - 0.4)
    ax.grid(False, axis="x")
