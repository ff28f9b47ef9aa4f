"""Numbers in a grid: colour for the eye, the number itself in the cell, a hatch of words where there is none."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from waterjar.view.report.charts.theme import BOUNDARY, escape, layout

# One hue from pale to deep: read by lightness alone, and kind to printers.
SEQUENTIAL = ("#F2F6FA", "#CFE0EE", "#9FC3DF", "#629FCB", "#2F76AC", "#0F4C81", "#08305A")
# From vermilion over grey to blue: both ends stay apart with every common colour-vision deficiency.
DIVERGING = ("#B24700", "#D98C5F", "#ECECEC", "#6FA8CF", "#005A8E")
MOST_TICKS = 24


def matrix_panel(
    values: Sequence[Sequence[float]],
    columns: Sequence[str],
    rows: Sequence[str],
    *,
    title: str,
    x: str,
    y: str,
    texts: Sequence[Sequence[str]] | None = None,
    hover: Sequence[Sequence[str]] | None = None,
    limits: tuple[float, float] | None = None,
    diverging: bool = False,
    square: bool = False,
    bar: str = "",
    height: int | None = None,
    boundary: Sequence[float] = (),
    escaped: bool = False,
    hatched: Collection[tuple[int, int]] = (),
) -> dict[str, Any]:
    """A plotly figure of values (row, column); `texts` stand in the cells, `hover` says more. Cells (row, column)
    in `hatched` have lines across.

    Names are escaped here, unless they are `escaped` already.
    """
    columns, rows = (list(names) if escaped else [escape(name) for name in names] for names in (columns, rows))
    colours = DIVERGING if diverging else SEQUENTIAL
    scale = [[i / (len(colours) - 1), colour] for i, colour in enumerate(colours)]
    trace: dict[str, Any] = {
        "type": "heatmap",
        "z": [list(line) for line in values],
        "x": list(range(len(columns))),
        "y": list(range(len(rows))),
        "colorscale": scale,
        "hoverongaps": True,
        "xgap": 1,
        "ygap": 1,
        "colorbar": {"thickness": 12, "title": {"text": bar, "side": "right"}, "len": 0.9},
        "showscale": bool(bar),
        "customdata": hover or texts or [[f"{value:.4g}" for value in line] for line in values],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    if limits is not None:
        trace |= {"zmin": limits[0], "zmax": limits[1]}
    made = layout(title=title, x=x, y=y, height=height or 110 + 34 * len(rows))
    made["xaxis"] |= _ticks(columns) | {"showgrid": False, "range": [-0.5, len(columns) - 0.5]}
    made["xaxis"] |= {"ticklabeloverflow": "allow"}  # else plotly leaves out a label that leaves the picture
    if len(columns) > 6 and max(map(len, columns)) > 3:
        made["xaxis"] |= {"tickangle": -40}  # to the left, where rows have their names
    made["yaxis"] |= _ticks(rows) | {"showgrid": False, "range": [len(rows) - 0.5, -0.5]}
    if square:
        made["yaxis"] |= {"scaleanchor": "x", "constrain": "domain"}
        made["xaxis"] |= {"constrain": "domain"}
    if texts is not None:
        made["annotations"] = _texts(values, texts, limits, diverging)
    made["shapes"] = [_line(at, axis, len(columns) - 0.5) for at in boundary for axis in "xy"]
    made["shapes"] += [stroke for row, column in sorted(hatched) for stroke in _hatch(row, column)]
    return {"data": [trace], "layout": made}


def _ticks(names: Sequence[str]) -> dict[str, Any]:
    step = max(1, -(-len(names) // MOST_TICKS))
    shown = range(0, len(names), step)
    return {"tickvals": list(shown), "ticktext": [names[i] for i in shown]}


def _line(at: float, axis: str, end: float) -> dict[str, Any]:
    other = "y" if axis == "x" else "x"
    line = {"color": BOUNDARY, "width": 1.5, "dash": "dash"}
    return {"type": "line", f"{axis}0": at, f"{axis}1": at, f"{other}0": -0.5, f"{other}1": end, "line": line}


def _hatch(row: int, column: int) -> list[dict[str, Any]]:
    """Three strokes across a cell, under its text; plotly has no hatch for heatmaps."""
    made = []
    for shift in (-0.5, 0.0, 0.5):
        left, right = max(-0.5, shift - 0.5), min(0.5, shift + 0.5)
        ends = {"x0": column + left, "x1": column + right, "y0": row + shift - left, "y1": row + shift - right}
        line = {"color": "rgba(90, 90, 90, 0.75)", "width": 1.2}
        made.append({"type": "line", **ends, "line": line})
    return made


def _texts(
    values: Sequence[Sequence[float]],
    texts: Sequence[Sequence[str]],
    limits: tuple[float, float] | None,
    diverging: bool,
) -> list[dict[str, Any]]:
    """A text per cell, dark on light colours and light on dark ones; without a number it has the page's colour."""
    known = [value for line in values for value in line if not math.isnan(value)]
    low, high = limits or (min(known, default=0.0), max(known, default=1.0))
    made = []
    for i, line in enumerate(texts):
        for j, text in enumerate(line):
            note: dict[str, Any] = {"x": j, "y": i, "text": escape(text), "showarrow": False, "font": {"size": 11}}
            value = values[i][j]
            if not math.isnan(value):
                share = (value - low) / (high - low) if high > low else 0.5
                bright = abs(share - 0.5) < 0.3 if diverging else share < 0.5
                note["font"]["color"] = "#111111" if bright else "#FFFFFF"
            made.append(note)
    return made
