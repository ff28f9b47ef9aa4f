"""Means with their intervals and the seeds behind them: one row per learner, a line at 0 or where it matters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from waterjar.view.report.blocks import Key
from waterjar.view.report.charts.theme import QUIET, label_names, layout, numbers


@dataclass(frozen=True)
class Spot:
    """One learner's mean, interval, seeds, and a word that stands where there is no mean."""

    name: str
    mean: float
    low: float
    high: float
    n: int
    seeds: Sequence[tuple[int, float]] = ()
    note: str = ""
    """Said beside the mean: `3 of 3 never reached`, stars."""
    open: bool = False
    """Censored, or not significant: drawn hollow."""


def seeds_of(rows: pd.DataFrame) -> list[tuple[int, float]]:
    """(seed, value) of rows with these columns, without those that have no value."""
    known = rows[rows["value"].notna()]
    return [(int(seed), float(value)) for seed, value in zip(known["seed"], known["value"], strict=True)]


def estimates_panel(
    spots: Sequence[Spot],
    keys: Mapping[str, Key],
    *,
    title: str,
    x: str = "",
    zero: bool = True,
    height: int | None = None,
) -> dict[str, Any]:
    """A plotly figure: learners down, values across, whiskers for intervals, small dots for seeds."""
    labels = label_names((spot.name for spot in spots), 18)
    rows = {spot.name: len(spots) - 1 - i for i, spot in enumerate(spots)}
    data: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for spot in spots:
        key, row = keys[spot.name], rows[spot.name]
        if spot.seeds:
            data.append(_seeds(spot, key, row))
        if not math.isnan(spot.mean):
            data.append(_mean(spot, key, row, labels[spot.name]))
        if spot.note:
            notes.append(_note(spot, row))
    shapes = []
    if zero and data:
        line = {"color": QUIET, "width": 1, "dash": "dot"}
        shapes.append({"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": 0, "x1": 0, "line": line})
    made = layout(title=title, x=x, height=height or 96 + 34 * len(spots), shapes=shapes, annotations=notes)
    made["yaxis"] |= {
        "tickvals": list(rows.values()),
        "ticktext": [labels[spot.name] for spot in spots],
        "range": [-0.6, len(spots) - 0.4],
        "fixedrange": True,
        "showgrid": False,
    }
    if not data:
        made["xaxis"] |= {"visible": False, "range": [-1, 1]}
    return {"data": data, "layout": made}


def _seeds(spot: Spot, key: Key, row: int) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": numbers(value for _, value in spot.seeds),
        "y": [row - 0.22] * len(spot.seeds),
        "text": [f"seed {seed}" for seed, _ in spot.seeds],
        "marker": {"color": key.colour, "size": 6, "opacity": 0.55, "symbol": "circle"},
        "hovertemplate": "%{x:.4g}<extra>%{text}</extra>",
        "legendgroup": key.group,
    }


def _mean(spot: Spot, key: Key, row: int, label: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": [spot.mean],
        "y": [row],
        "name": label,
        "marker": {
            "color": key.colour,
            "size": 10,
            "symbol": key.symbol + ("-open" if spot.open else ""),
            "line": {"width": 2, "color": key.colour},
        },
        "legendgroup": key.group,
    }
    if math.isnan(spot.low) or math.isnan(spot.high):
        made["hovertemplate"] = f"%{{x:.4g}}, no interval, n = {spot.n}<extra>{label}</extra>"
        return made
    made["error_x"] = {
        "type": "data",
        "symmetric": False,
        "array": [spot.high - spot.mean],
        "arrayminus": [spot.mean - spot.low],
        "color": key.colour,
        "thickness": 2,
        "width": 5,
    }
    bounds = f"[{spot.low:.4g}, {spot.high:.4g}]"
    made["hovertemplate"] = f"%{{x:.4g}} {bounds}, n = {spot.n}<extra>{label}</extra>"
    return made


def _note(spot: Spot, row: int) -> dict[str, Any]:
    alone = math.isnan(spot.mean)
    return {
        "x": 0.5 if alone else 1,
        "xref": "paper",
        "y": row if alone else row + 0.32,
        "text": spot.note,
        "showarrow": False,
        "xanchor": "center" if alone else "right",
        "font": {"size": 11, "color": QUIET},
    }
