"""Means with their intervals and the seeds behind them: one row per learner, a line at 0 or where it matters."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from waterjar.view.report.blocks import Key
from waterjar.view.report.charts.theme import QUIET, label_names, layout


def estimates_panel(
    rows: pd.DataFrame,
    keys: Mapping[str, Key],
    *,
    title: str,
    notes: Mapping[str, str],
    hollow: Collection[str] = (),
    zero: bool = True,
) -> dict[str, Any]:
    """A plotly figure: learners down, values across, whiskers for intervals, small dots for seeds.

    `rows` have cell, seed and value, and of the cell mean, low, high and n. `notes` stand beside the mean of a cell, or
    in its place; who is `hollow` is censored, or not significant.
    """
    cells = list(dict.fromkeys(rows["cell"]))
    labels = label_names(cells, 18)
    data: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    for row, cell in zip(reversed(range(len(cells))), cells, strict=True):
        of_cell = rows[rows["cell"] == cell]
        first, known, key = of_cell.iloc[0], of_cell[of_cell["value"].notna()], keys[cell]
        if len(known):
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "x": list(known["value"]),
                    "y": [row - 0.22] * len(known),
                    "text": [f"seed {seed}" for seed in known["seed"]],
                    "marker": {"color": key.colour, "size": 6, "opacity": 0.55, "symbol": "circle"},
                    "hovertemplate": "%{x:.4g}<extra>%{text}</extra>",
                    "legendgroup": key.group,
                }
            )
        alone = math.isnan(first["mean"])
        if not alone:
            data.append(_mean(first, key, row, labels[cell], cell in hollow))
        if notes.get(cell):
            said.append(
                {
                    "x": 0.5 if alone else 1,
                    "xref": "paper",
                    "y": row if alone else row + 0.38,
                    "text": notes[cell],
                    "showarrow": False,
                    "xanchor": "center" if alone else "right",
                    "font": {"size": 11, "color": QUIET},
                }
            )
    shapes = []
    if zero and data:
        line = {"color": QUIET, "width": 1, "dash": "dot"}
        shapes.append({"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": 0, "x1": 0, "line": line})
    made = layout(title=title, height=96 + 44 * len(cells), shapes=shapes, annotations=said)
    made["yaxis"] |= {
        "tickvals": list(reversed(range(len(cells)))),
        "ticktext": [labels[cell] for cell in cells],
        "range": [-0.6, len(cells) - 0.4],
        "fixedrange": True,
        "showgrid": False,
    }
    if not data:
        made["xaxis"] |= {"visible": False, "range": [-1, 1]}
    return {"data": data, "layout": made}


def _mean(of_cell: Any, key: Key, row: int, label: str, hollow: bool) -> dict[str, Any]:
    """A marker at the mean, with its interval if it has one."""
    mean, low, high = (float(of_cell[name]) for name in ("mean", "low", "high"))
    made: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": [mean],
        "y": [row],
        "name": label,
        "marker": {
            "color": key.colour,
            "size": 10,
            "symbol": key.symbol + ("-open" if hollow else ""),
            "line": {"width": 2, "color": key.colour},
        },
        "legendgroup": key.group,
    }
    n = int(of_cell["n"])
    if math.isnan(low) or math.isnan(high):
        made["hovertemplate"] = f"%{{x:.4g}}, no interval, n = {n}<extra>{label}</extra>"
        return made
    made["error_x"] = {
        "type": "data",
        "symmetric": False,
        "array": [high - mean],
        "arrayminus": [mean - low],
        "color": key.colour,
        "thickness": 2,
        "width": 5,
    }
    made["hovertemplate"] = f"%{{x:.4g}} [{low:.4g}, {high:.4g}], n = {n}<extra>{label}</extra>"
    return made
