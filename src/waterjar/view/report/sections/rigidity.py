"""The Einstellung Rigidity Index: how it comes about, how it depends on the threshold, and its controls."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import xarray as xr

from waterjar.diagnose.over_seeds import interval_words
from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.rigidity import pattern as patterns
from waterjar.diagnose.rigidity.injection import injected
from waterjar.diagnose.rigidity.remarks import EPOCHS_TRAINED, epochs_trained
from waterjar.view import figures
from waterjar.view.numbers import label
from waterjar.view.report.blocks import Block, Chart, Items, Text
from waterjar.view.report.charts.curves import Curve, curve, curves_panel, last_values
from waterjar.view.report.charts.matrix import matrix_panel
from waterjar.view.report.charts.theme import label_names
from waterjar.view.report.leads.rigidity import SHORT
from waterjar.view.report.measured import metric_table
from waterjar.view.report.model import Model

TITLE = "Rigidity"
ORDER = 20
_TABLE = (
    "ad", "ad_restricted", "pd", "sfr_rel", "sfr", "patched_accuracy", "masked_accuracy", "masked_gap",
    "reliance_share", "cue_gain", "random_mask_damage",
    "mask_damage", "cue_conflict", "t1_accuracy", "nonshortcut_accuracy", "worst_group_accuracy",
)  # fmt: skip
_READING = (
    (SHORT[patterns.CLASSICAL], "AD > 0, PD > 0, SFR_rel > 0: the old solution is in the way."),
    (SHORT[patterns.SHORTCUT], "AD < 0, PD < 0, SFR_rel > 0: quick and good by the numbers, because of the shortcut."),
    (SHORT[patterns.SLOW], "AD > 0, PD > 0, SFR_rel not above 0: the past costs, the shortcut plays no part."),
    (SHORT[patterns.BENIGN], "upper bounds of PD and SFR_rel below the margin: nothing worth naming."),
    (SHORT[patterns.INCONCLUSIVE], "intervals are too wide for any of these: more seeds would tell."),
    (SHORT[patterns.FLOOR], "masked, neither learner nor baseline is above chance: SFR_rel is -PD by arithmetic."),
    (
        SHORT[patterns.FLOOR_UNKNOWN],
        "masked, neither is shown to be above chance, nor both to be at it: too few images, or seeds.",
    ),
    (SHORT[patterns.UNLEARNED], "neither learner nor baseline is above guessing: there is nothing to compare."),
)


def blocks(model: Model) -> list[Block]:
    """How patterns are read, the dynamics, the grid of thresholds, and the controls; nothing without an index."""
    result = model.diagnosis.results.get("rigidity")
    if result is None:
        return []
    trained = epochs_trained(result)
    return [
        Text(
            "The index is a triplet, taken on the classes that carry the shortcut and always beside the baseline, seed "
            "by seed: AD, how many epochs later a learner adapts; PD, how much lower it ends; SFR_rel, how much more "
            "it loses when the shortcut is masked. A pattern is named only where intervals are clear of 0, and benign "
            "transfer only where upper bounds lie below the margin:"
        ),
        Items(_READING),
        *_dynamics(model, bool(trained)),
        *_thresholds(model),
        *metric_table(
            model,
            "rigidity",
            "The index, the accuracies behind it, and controls",
            _TABLE,
            _CONTROLS,
            others=False,
            last={EPOCHS_TRAINED: trained} if trained else {},
        ),
        *_notes(model, result),
    ]


_ENDS = (
    " Learners and baselines were trained for different lengths: a curve ends where training did. AD and PD are drawn "
    "at equal epochs, as far as the shorter one goes; tables and verdicts compare the ends of each one's own training."
)
_CONTROLS = (
    "Masks do damage of their own: random mask damage is that of an "
    "equal area elsewhere, mask damage that on classes without the shortcut, and cue gain compares with the clean "
    "image."
)


def _notes(model: Model, result: xr.Dataset) -> list[Block]:
    notes = zip(*(result[key].values for key in ("cell", "baseline_note", "order_note")), strict=True)
    said = [(str(name), str(note)) for name, *of_cell in notes for note in of_cell if note]
    made: list[Block] = [Text("About baselines and tasks:"), Items(tuple(said))] if said else []
    cells = [str(cell) for cell in result["cell_id"].values]
    told = injected(result, sum(len(entry.seeds) for entry in model.study.entries if entry.cell_id in cells))
    return [*made, Text(told[:1].upper() + told[1:] + ".")]


def _dynamics(model: Model, unequal: bool) -> list[Block]:
    frame = model.figure_data("eri_dynamics")
    if frame.empty:
        return []
    about = figures.describe("eri_dynamics")
    over = "effective_epoch"
    curves = frame[frame["panel"].isin(("accuracy", "ad", "pd", "sfr"))]
    panels = []
    level = float(frame["threshold"].dropna().iloc[0]) if frame["threshold"].notna().any() else None
    for quantity, words in (("patched", "shortcut visible"), ("masked", "shortcut masked")):
        part = curves[(curves["panel"] == "accuracy") & (curves["quantity"] == quantity)]
        lines = _lines(part, over)
        marks = _crossings(frame, model, level) if quantity == "patched" and level is not None else []
        tau = level if quantity == "patched" else None
        title = f"Accuracy ↑, {words}"
        panels.append(curves_panel(lines, model.keys, title=title, x="effective epoch", level=tau, marks=marks))
    for panel, title in (
        ("ad", "AD, at most this many epochs"),
        ("pd", label(find_metric("pd"))),
        ("sfr", label(find_metric("sfr"))),
    ):
        part = curves[(curves["panel"] == panel) & curves["mean"].notna()]
        if len(part):
            lines = _lines(part, over)
            panels.append(curves_panel(lines, model.keys, title=title, x="effective epoch", level=0.0))
    return [
        Chart(
            name="eri_dynamics",
            title=about.title,
            panels=tuple(panels),
            frame=frame,
            caption="Accuracy on the shortcut classes with the shortcut visible and masked, and what follows from it "
            "as epochs of the last task pass. Lines are means over seeds of trailing means, bands their "
            f"{interval_words(frame['interval'].dropna(), frame.attrs['confidence'])}; "
            "the dotted line is the threshold, and a triangle marks where a seed reaches it." + _ENDS * unequal,
            alt=f"Lines over effective epochs. {last_values(curves, 'quantity', over, 5)}",
            keys=tuple(model.keys.values()),
            figure="eri_dynamics",
        )
    ]


def _lines(part: pd.DataFrame, over: str) -> list[Curve]:
    return [curve(rows, str(cell), over) for cell, rows in part.groupby("cell", sort=False)]


def _crossings(frame: pd.DataFrame, model: Model, level: float) -> list[dict[str, Any]]:
    """A triangle where a seed reaches the threshold."""
    found = frame[(frame["panel"] == "crossing") & (frame["quantity"] == "learner") & frame["effective_epoch"].notna()]
    made = []
    for cell, rows in found.groupby("cell", sort=False):
        key = model.keys[str(cell)]
        made.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": list(rows["effective_epoch"]),
                "y": [level] * len(rows),
                "text": [f"seed {int(seed)}" for seed in rows["seed"]],
                "marker": {"symbol": "triangle-down", "size": 11, "color": key.colour, "line": {"width": 1}},
                "legendgroup": key.group,
                "hovertemplate": "reaches it at epoch %{x:.3g}<extra>%{text}</extra>",
            }
        )
    return made


def _thresholds(model: Model) -> list[Block]:
    frame = model.figure_data("tau_heatmap")
    if frame.empty:
        return []
    about = figures.describe("tau_heatmap")
    if not frame["mean"].notna().any():
        if not frame["n_censored"].any():
            return [Text("AD has no value at any threshold: the accuracies it is made from have none.")]
        low, high = frame["threshold"].min(), frame["threshold"].max()
        return [Text(f"At no threshold from {low:g} to {high:g} did a learner and its baseline both get there: no AD.")]
    return [
        Chart(
            name="tau_heatmap",
            title=about.title,
            panels=(_heatmap(frame),),
            frame=frame,
            caption="AD in epochs for every threshold τ (across) and learner (down): orange is later than the "
            "baseline, blue earlier. * : some seed never reached τ on one of the sides, and the number is that of the "
            "other seeds alone; never: no seed did.",
            alt=_alt(frame),
            wide=True,
            figure="tau_heatmap",
        )
    ]


def _heatmap(frame: pd.DataFrame) -> dict[str, Any]:
    labels = label_names(frame["cell"].unique(), 18)
    grid = frame.pivot(index="cell", columns="threshold", values="mean").reindex(list(labels))
    censored = frame.pivot(index="cell", columns="threshold", values="n_censored").reindex(list(labels))
    seeds = frame.pivot(index="cell", columns="threshold", values="n_seeds").reindex(list(labels))
    texts, hover = [], []
    for i in range(len(grid)):
        line, more = [], []
        for j in range(grid.shape[1]):
            value, gone, all_seeds = float(grid.iat[i, j]), int(censored.iat[i, j]), int(seeds.iat[i, j])
            known = "" if math.isnan(value) else number_short(value)
            line.append(f"{known}{'*' * bool(gone)}" if known else "never" if gone else "–")
            unknown = "no seed reached it on both sides" if gone else "no value"
            told = unknown if not known else f"AD {value:.3g} epochs, n = {all_seeds - gone}"
            more.append(f"τ = {grid.columns[j]:g}: {told}; {gone} of {all_seeds} seeds censored")
        texts.append(line)
        hover.append(more)
    reach = max((abs(value) for value in frame["mean"].dropna()), default=0.0) or 1.0
    return matrix_panel(
        (-grid).to_numpy().tolist(),
        [f"{tau:g}" for tau in grid.columns],
        list(labels.values()),
        title="",
        x="threshold τ",
        y="",
        texts=texts,
        hover=hover,
        limits=(-reach, reach),
        diverging=True,
        escaped=True,
    )


def number_short(value: float) -> str:
    """A delay in a cell of a heatmap: with its sign, to a tenth of an epoch."""
    return f"{value:+.1f}".replace("-", "−")


def _alt(frame: pd.DataFrame) -> str:
    parts = []
    for cell, rows in frame.groupby("cell", sort=False):
        known = rows[rows["mean"].notna()]
        if len(known):
            parts.append(f"{cell}: {known['mean'].min():.2g} to {known['mean'].max():.2g} epochs")
        else:
            parts.append(f"{cell}: never reached by both")
    return "A grid of delays, thresholds across and learners down. " + "; ".join(parts) + "."
