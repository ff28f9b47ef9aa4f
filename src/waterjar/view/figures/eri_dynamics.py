"""How the rigidity index comes about: accuracies with and without the shortcut, and AD, PD and SFR as epochs pass."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from waterjar.diagnose.over_seeds import band_words, mean_table
from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.result import NEVER_REACHED
from waterjar.diagnose.rigidity.dynamics import dynamics
from waterjar.run.schema import REASONS
from waterjar.stats.intervals import UNBOUNDED
from waterjar.view.curves import draw_curve, say
from waterjar.view.results import Source, cell_order, diagnosis_of, roots_in
from waterjar.view.short_names import short
from waterjar.view.style import (
    GREY,
    axis_end,
    canvas,
    counted,
    drawn,
    house_style,
    labels,
    legend_outside,
    line_styles,
    stamp,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Dynamics of the Einstellung Rigidity Index"
CAPTION = (
    "Above, per learner, accuracy on the shortcut classes with the shortcut and with it masked, the baseline's in "
    "grey; triangles mark where seeds reach tau, a vertical line their mean if all do. Below, as epochs pass: the "
    "delay AD so far, the deficit PD (both at equal epochs, where tables compare the ends of each one's own training), "
    "and the reliance SFR."
)
NEEDS = ("rigidity",)
PANELS = ("ad", "pd", "sfr")
_MEAN = "mean crossing"
_THIN, _THICK = 0.8, 1.8
"""Lines of the baseline and of the learner, which are told apart without colour, too."""
_RANGES = {"accuracy": (0.0, 1.0), "sfr": (-1.0, 1.0)}
"""What cannot be left; the others are differences to the baseline."""


def data(source: Source, *, band: str = "interval", **settings: Any) -> pd.DataFrame:
    """Rows of four kinds, told apart by `panel`, with cell, effective_epoch, mean, low, high, n, reason over seeds:

    `accuracy` (quantity `patched` or `masked`), `ad` (mean over seeds of min(E, L) - min(E of the baseline, L), L the
    epoch), `pd`, `sfr`; and `crossing`, one row per seed and side (quantity `learner` or `baseline`), whose
    effective_epoch is that at which `threshold` is reached, NaN and `censored` where it never is. Curves are trailing
    means over `window` evaluations, by which crossings are found. `settings` go to `rigidity.measure`.
    """
    diagnosis = diagnosis_of(source, NEEDS, settings)
    result, how = diagnosis.results["rigidity"], diagnosis.settings("rigidity")
    names = {str(cell): str(name) for cell, name in zip(result["cell_id"].values, result["cell"].values, strict=True)}
    parts, confidence = [], diagnosis.confidence("rigidity")
    for one in dynamics(diagnosis.study, result):
        cell = {"cell": names[one.cell], "baseline": one.baseline}
        for course in one.courses:
            about = {"panel": course.panel, **cell, "quantity": course.quantity, "effective_epoch": course.epochs}
            within = _RANGES.get(course.panel, UNBOUNDED)
            means = mean_table(course.values, course.codes, band=band, within=within, confidence=confidence)
            parts.append(pd.DataFrame(about).join(means))
        for side, found in one.crossings.items():
            why = ["" if code == 0 else REASONS[code] for code in found.reason]
            about = {"panel": "crossing", **cell, "quantity": side, "seed": one.seeds, "effective_epoch": found.epoch}
            known = {"threshold": how["threshold"], "censored": found.reason == NEVER_REACHED, "reason": why}
            parts.append(pd.DataFrame({**about, **known}))
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    first = ["panel", "cell", "baseline", "quantity", "seed", "effective_epoch"]
    table = table[[*first, *(column for column in table.columns if column not in first)]]
    table.attrs = {**{key: how[key] for key in ("threshold", "window", "variable")}, "confidence": confidence}
    return table


def eri_dynamics(source: Source, *, band: str = "interval", figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw accuracies per learner, and AD, PD and SFR over effective epochs; `settings` go to `rigidity.measure`."""
    with house_style():
        table = data(source, band=band, **settings)
        cells = list(dict.fromkeys(table["cell"]))
        base = {cell: part["baseline"].iloc[0] for cell, part in table.groupby("cell", sort=False)}
        learners = [cell for cell in cells if base[cell] != cell] or cells
        columns = 2 if len(learners) == 4 else min(3, len(learners))
        rows = -(-len(learners) // columns)
        figure = canvas(figure, (9.6, 2.3 * rows + 2.6 + 0.9))
        grid = figure.add_gridspec(rows + 1, 6)
        span = 6 // columns
        styles, shown_as = line_styles(cell_order(source, cells)), labels(cells, most=26)
        first: Axes | None = None
        for i, cell in enumerate(learners):
            row, column = divmod(i, columns)
            ax = figure.add_subplot(grid[row, column * span : (column + 1) * span], sharex=first, sharey=first)
            first = first or ax
            _accuracies(ax, table, cell, base[cell], styles[cell]["color"], table.attrs["threshold"])
            ax.set_title(shown_as[cell])
            ax.set_ylim(-0.03, 1.03)
            if column == 0:
                ax.set_ylabel(table.attrs["variable"].replace("_", " ") + " ↑")
            if i + columns >= len(learners):
                ax.set_xlabel("effective epoch")
        below: Axes | None = None
        for i, panel in enumerate(PANELS):
            ax = figure.add_subplot(grid[rows, 2 * i : 2 * i + 2], sharex=below)
            below = below or ax
            _over_time(ax, table, panel, [c for c in cells if panel == "sfr" or c in learners], styles, shown_as)
            cut = sorted({min(two) for cell in learners if (two := _unequal(table, cell, base[cell]))})
            if cut and panel != "sfr":  # SFR needs no baseline, and goes on to the end
                ends = " or ".join(f"{epoch:g}" for epoch in cut)
                ax.set_title(f"at equal epochs, to epoch {ends}", fontsize=7)
        _legends(figure, table, base, len(cells) > 1, band)
        return stamp(figure, roots_in(source))


def _accuracies(ax: Axes, table: pd.DataFrame, cell: str, baseline: str, colour: str, threshold: float) -> None:
    curves = table[table["panel"] == "accuracy"]
    sides = [(cell, colour)] if baseline in ("", cell) else [(baseline, GREY), (cell, colour)]
    for name, hue in sides:
        width = _THIN if hue == GREY else _THICK
        for quantity, line in (("patched", "-"), ("masked", "--")):
            part = curves[(curves["cell"] == name) & (curves["quantity"] == quantity)]
            style = {"color": hue, "linestyle": line, "linewidth": width}
            draw_curve(ax, part["effective_epoch"].to_numpy(float), part, style)
    ax.axhline(threshold, color="black", linestyle=":", linewidth=1.0)
    crossings = table[(table["panel"] == "crossing") & (table["cell"] == cell)]
    lengths = _unequal(table, cell, baseline)
    said = [f"trained {lengths[0]:g} epochs, baseline {lengths[1]:g}"] if lengths else []
    own = curves[curves["cell"] == cell]
    if not own["mean"].notna().any():
        why = list(dict.fromkeys(own.loc[own["reason"] != "", "reason"]))
        said.insert(0, f"no accuracy: {'; '.join(why[:2]).replace('_', ' ') or 'not recorded'}")
    for quantity, face, edge, who in (("baseline", "white", "#555555", "baseline: "), ("learner", colour, "black", "")):
        part = crossings[crossings["quantity"] == quantity]
        reached = part["effective_epoch"].dropna()
        if len(reached):
            ax.plot(
                reached, [threshold] * len(reached), linestyle="none", marker="v", markersize=6, markeredgewidth=0.8,
                markerfacecolor=face, markeredgecolor=edge, zorder=6, clip_on=False, gid=f"crossing {quantity}",
            )  # fmt: skip
        if len(part) and len(reached) == len(part):
            hue = edge if quantity == "baseline" else colour
            ax.axvline(reached.mean(), color=hue, linewidth=0.8, alpha=0.7, gid=f"{_MEAN} {quantity}")
        never = int(part["censored"].sum())
        if never:
            said.append(f"{who}τ never reached in {never} of {len(part)} seeds")
    if said:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        ax.text(
            0.98, 0.97, "\n".join(said), transform=ax.transAxes, ha="right", va="top", fontsize=7, bbox=box, zorder=7
        )  # fmt: skip


def _unequal(table: pd.DataFrame, cell: str, baseline: str) -> tuple[float, float] | None:
    """Epochs of learner and baseline, as recorded, where they were trained for different lengths; else nothing."""
    curves = table[table["panel"] == "accuracy"]
    own, theirs = (float(curves.loc[curves["cell"] == name, "effective_epoch"].max()) for name in (cell, baseline))
    return (own, theirs) if own > 0 and theirs > 0 and not math.isclose(own, theirs, rel_tol=1e-9) else None


def _over_time(
    ax: Axes, table: pd.DataFrame, panel: str, cells: list[str], styles: dict[str, Any], shown_as: dict[str, str]
) -> None:
    of_panel = table[table["panel"] == panel]
    for cell in cells:
        part = of_panel[of_panel["cell"] == cell]
        if part["mean"].notna().any():
            draw_curve(ax, part["effective_epoch"].to_numpy(float), part, styles[cell], shown_as[cell])
    if not of_panel["mean"].notna().any():
        why = list(dict.fromkeys(of_panel.loc[of_panel["reason"] != "", "reason"]))
        say(ax, f"no {panel.upper()}: {'; '.join(why[:2])}" if why else f"no {panel.upper()}: no baseline")
        ax.set_yticks([])
    else:
        ax.axhline(0.0, color="black", linewidth=0.8)
    declared = find_metric(panel)
    words = f"{declared.symbol} so far" if panel == "ad" else declared.symbol
    ax.set_ylabel(words + axis_end(declared.units, declared.direction))
    ax.set_xlabel("effective epoch")


def _legends(figure: Figure, table: pd.DataFrame, base: dict[str, str], several: bool, band: str) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415 - an extra

    named = dict.fromkeys(name for name in base.values() if name)
    black: dict[str, Any]
    none: dict[str, Any]
    black, none = {"color": "black"}, {"linestyle": "none", "marker": "v", "markeredgecolor": "black"}
    entries = [
        (Line2D([], [], **black), "shortcut visible"),
        (Line2D([], [], linestyle="--", **black), "shortcut masked"),
        (Line2D([], [], linestyle=":", linewidth=1.0, **black), f"τ = {table.attrs['threshold']:g}"),
        (Line2D([], [], markerfacecolor="black", **none), "a seed reaches τ"),
    ]
    if named:
        told = " or ".join(drawn(name) for name in short(named, 24).values()) if len(named) < 3 else "baseline"
        entries.insert(
            2, (Line2D([], [], color=GREY, linewidth=_THIN), f"baseline: {told}" if told != "baseline" else told)
        )
        entries.append((Line2D([], [], markerfacecolor="white", **none), "a seed of the baseline does"))
    if any(str(line.get_gid()).startswith(_MEAN) for ax in figure.axes for line in ax.lines):
        upright = Line2D([], [], linestyle="none", marker="|", markersize=11, markeredgewidth=0.8, **black)
        entries.append((upright, "mean epoch, where all seeds do"))
    legend_outside(figure, {label: line for line, label in entries}, None, where="upper")
    handles: dict[str, Any] = {}
    for ax in figure.axes:
        handles |= {label: line for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    counts = {int(n) for n in table.loc[table["mean"].notna(), "n"]}
    note = f"trailing mean over {table.attrs['window']} evaluations"
    if counts and max(counts) > 1:
        words = band_words(band, table["interval"].dropna(), table.attrs["confidence"])
        note += f"; mean and {words} of {counted(counts, 'seed')}"
    legend_outside(figure, handles if several else {}, note)
