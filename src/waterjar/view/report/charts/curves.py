"""Lines over training with a band around each, a panel per metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from waterjar.view.curves import CUT, panel_limits, stops, task_starts
from waterjar.view.report.blocks import Key
from waterjar.view.report.charts.theme import IN_LEGEND, boundaries, fade, label_names, layout
from waterjar.view.short_names import short


@dataclass(frozen=True)
class Curve:
    """One line: x, its mean, its band (NaN for none), and of how many seeds."""

    name: str
    x: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    n: int
    dash: str = ""
    """Where a name has several lines in a panel, the one that tells them apart."""
    note: str = ""


def curve(rows: pd.DataFrame, name: str, x: str, *, dash: str = "", note: str = "") -> Curve:
    """A line out of rows with the columns x, mean, low, high and n."""
    rows = rows.sort_values(x, kind="stable")
    n = int(rows["n"].max()) if len(rows) else 0
    place, mean, low, high = (rows[column].tolist() for column in (x, "mean", "low", "high"))
    return Curve(name, place, mean, low, high, n=n, dash=dash, note=note)


def curves_panel(
    curves: Sequence[Curve],
    keys: Mapping[str, Key],
    *,
    title: str,
    x: str,
    y: str = "",
    starts: Sequence[tuple[float, str]] = (),
    height: int = 280,
    level: float | None = None,
    marks: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A plotly figure with one line and band per curve; `starts` are where tasks begin, `level` a dotted line."""
    labels = label_names(curve.name for curve in curves)
    data: list[dict[str, Any]] = []
    for one in curves:
        key = keys[one.name]
        data += _band(one, key)
        label = labels[one.name] + (f" · {one.note}" if one.note else "")
        few = int(np.isfinite(np.asarray(one.mean, float)).sum()) < 3
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if few else "lines",
                "name": label,
                "legendgroup": key.group,
                "x": list(one.x),
                "y": list(one.mean),
                "line": {"color": key.colour, "width": 2, "dash": one.dash or key.dash},
                "marker": {"color": key.colour, "symbol": key.symbol, "size": 7},
                "customdata": [
                    f" [{a:.4g}, {b:.4g}]" if math.isfinite(a) else "" for a, b in zip(one.low, one.high, strict=True)
                ],
                "hovertemplate": f"%{{y:.4g}}%{{customdata}}, n = {one.n}<br>at %{{x:.4g}}<extra>{label}</extra>",
                "connectgaps": False,
            }
        )
    data += [dict(mark) for mark in marks]
    ends = [x for one in curves for x in one.x if math.isfinite(x)]
    shapes, notes = boundaries(starts, max(ends, default=None))
    if level is not None:
        line = {"color": "#6B7280", "width": 1, "dash": "dot"}
        shapes.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level, "line": line})
    made = layout(title=title, x=x, y=y, height=height, shapes=shapes, annotations=notes)
    limits = _limits(curves)
    if limits is not None:
        made["yaxis"]["range"] = list(limits)
    if notes and title:
        made["margin"]["t"] = 52 + max(note["yshift"] for note in notes)
    return {"data": data, "layout": made}


def _limits(curves: Sequence[Curve]) -> tuple[float, float] | None:
    """As `panel_limits`, of all lines of a panel."""
    ends = {end: [value for one in curves for value in getattr(one, end)] for end in ("mean", "low", "high")}
    return panel_limits(pd.DataFrame(ends))


def _band(one: Curve, key: Key) -> list[dict[str, Any]]:
    """A polygon per unbroken stretch: plotly would fill over gaps; of a lone point its whisker."""
    made: list[dict[str, Any]] = []
    quiet = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "legendgroup": key.group, "showlegend": False}
    stretch: list[tuple[float, float, float]] = []
    for point in [*zip(one.x, one.low, one.high, strict=True), (math.nan,) * 3]:
        if all(map(math.isfinite, point)):
            stretch.append(point)
            continue
        if len(stretch) == 1:
            x, low, high = stretch[0]
            made.append({**quiet, "x": [x, x], "y": [low, high], "line": {"width": 1.5, "color": key.colour}})
        elif stretch:
            made.append(
                {
                    **quiet,
                    "x": [x for x, _, _ in stretch] + [x for x, _, _ in reversed(stretch)],
                    "y": [high for _, _, high in stretch] + [low for _, low, _ in reversed(stretch)],
                    "fill": "toself",
                    "fillcolor": fade(key.colour),
                    "line": {"width": 0, "color": fade(key.colour)},
                }
            )
        stretch = []
    return made


def panels_over(
    frame: pd.DataFrame,
    by: str,
    keys: Mapping[str, Key],
    *,
    over: str,
    titles: Mapping[str, str],
    y: str = "",
) -> tuple[dict[str, Any], ...]:
    """A panel per value of the column `by`, a line per cell; tasks are parted as in the cell that has most of them.

    What no cell has a value of has no panel; the page says at its end what is missing, and why.
    """
    known = frame[frame["mean"].notna().groupby(frame[by]).transform("any")]
    frame = known if len(known) else frame
    longest = max(
        (part for _, part in frame.groupby("cell", sort=False)), key=lambda part: part["train_task"].nunique()
    )
    first = longest[longest[by] == longest[by].iloc[0]].sort_values(over, kind="stable")
    starts = task_starts(first[over].to_numpy(float), first["train_task"].tolist())
    made = []
    for value, part in frame.groupby(by, sort=False):
        curves = [curve(rows, str(cell), over) for cell, rows in part.groupby("cell", sort=False)]
        shown = starts if len(starts) > 1 else ()
        title = titles[str(value)]
        made.append(curves_panel(curves, keys, title=title, x=over.replace("_", " "), y=y, starts=shown))
    return tuple(made)


def early(frame: pd.DataFrame, over: str) -> list[str]:
    """Sentences about lines that end before the others, and about bands that are cut, for a caption."""
    told = stops(frame, over)
    said = [f"Lines that end early: {'; '.join(told)}."] if told else []
    cut = any(panel_limits(part) is not None for _, part in frame.groupby("metric", sort=False))
    return [*said, *([f"{CUT[:1].upper()}{CUT[1:]}."] if cut else [])]


def last_values(frame: pd.DataFrame, by: str, over: str, most: int = 4) -> str:
    """Where every line ends, in words: what a chart of curves tells readers who cannot see it."""
    parts, shown = [], short(frame["cell"].unique(), IN_LEGEND)
    for value, part in list(frame.groupby(by, sort=False))[:most]:
        ends = []
        for cell, rows in part.groupby("cell", sort=False):
            known = rows[rows["mean"].notna()].sort_values(over, kind="stable")
            ends.append(
                f"{shown[str(cell)]} {known['mean'].iloc[-1]:.3g}" if len(known) else f"{shown[str(cell)]} none"
            )
        parts.append(f"{str(value).replace('_', ' ')}: {', '.join(ends)}")
    return "Last values. " + "; ".join(parts) + "."
