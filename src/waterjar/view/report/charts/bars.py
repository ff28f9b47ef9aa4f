"""Lying bars with whiskers: a row per name, a colour per kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from waterjar.view.report.blocks import Key
from waterjar.view.report.charts.theme import QUIET, escape, label_names, layout


def bars_panel(
    rows: pd.DataFrame,
    names: Sequence[str],
    keys: Mapping[str, Key],
    *,
    title: str,
    x: str,
    marks: bool = False,
    level: tuple[float, str] | None = None,
) -> dict[str, Any]:
    """A plotly figure of rows with name, kind, mean, low, high and n; `marks` are dots, which need no 0.

    `level` is the place and the colour of an upright line.
    """
    labels = label_names(names, 20)
    data: list[dict[str, Any]] = []
    kinds = [kind for kind in keys if kind in set(rows["kind"])]
    beside = len(kinds) if rows["name"].duplicated().any() else 1  # kinds that share a row stand one below the other
    for place, kind in enumerate(kinds):
        own = rows[(rows["kind"] == kind) & rows["mean"].notna()]
        key = keys[kind]
        shown = escape(key.label)
        shift = (place - (beside - 1) / 2) * (0.22 if marks else 0.7 / beside) if beside > 1 else 0.0
        at = [names.index(name) + shift for name in own["name"]]
        bars = {
            "type": "data", "symmetric": False, "array": list((own["high"] - own["mean"]).fillna(0.0)),
            "arrayminus": list((own["mean"] - own["low"]).fillna(0.0)), "thickness": 1.3, "width": 3,
            "color": key.colour if marks else QUIET,
        }  # fmt: skip
        told = [
            f"{line.mean:.4g}"
            + (f" [{line.low:.4g}, {line.high:.4g}]" if line.low == line.low else "")
            + f", n = {line.n}"
            for line in own.itertuples()
        ]
        trace: dict[str, Any] = {
            "x": list(own["mean"]), "y": at, "error_x": bars, "name": shown, "legendgroup": key.group,
            "customdata": told, "hovertemplate": f"%{{customdata}}<extra>{shown}</extra>",
        }  # fmt: skip
        if marks:
            look = {"color": key.colour, "size": 8, "symbol": key.symbol or "circle"}
            trace |= {"type": "scatter", "mode": "markers", "marker": look}
        else:
            trace |= {
                "type": "bar",
                "orientation": "h",
                "width": 0.7 / beside,
                "marker": {"color": key.colour},
            }
        data.append(trace)
    made = layout(title=title, x=x, height=100 + max(26, min(40, 600 // max(1, len(names)))) * len(names))
    step = max(1, -(-len(names) // 40))
    made["yaxis"] |= {
        "tickvals": list(range(0, len(names), step)), "ticktext": [labels[name] for name in names[::step]],
        "range": [len(names) - 0.4, -0.6], "fixedrange": True, "showgrid": False,
    }  # fmt: skip
    if level is not None:
        where, colour = level
        ends = {"x0": where, "x1": where, "yref": "paper", "y0": 0, "y1": 1}
        made["shapes"] = [{"type": "line", "layer": "below", "line": {"color": colour, "width": 1}, **ends}]
    return {"data": data, "layout": made}
