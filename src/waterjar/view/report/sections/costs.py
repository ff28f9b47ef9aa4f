"""What it cost, beside what it brought."""

from __future__ import annotations

from typing import Any

import pandas as pd

from waterjar.diagnose.over_seeds import interval_words
from waterjar.diagnose.registry import find_metric
from waterjar.view import figures
from waterjar.view.numbers import estimate, label, one_line
from waterjar.view.report.blocks import Block, Chart, Key
from waterjar.view.report.charts.theme import label_names, layout
from waterjar.view.report.measured import metric_table
from waterjar.view.report.model import Model

TITLE = "Costs"
ORDER = 90
_COSTS = ("seconds", "flops")


def blocks(model: Model) -> list[Block]:
    """Cost against accuracy, a panel per kind of cost that was recorded, and the table; nothing where none was."""
    if "cost" not in model.diagnosis.results:
        return []
    table = metric_table(model, "cost", "Cost of a run")
    panels, frames = [], []
    for cost in _COSTS:
        frame = model.figure_data("cost_accuracy", cost=cost)
        if len(frame) and frame["cost"].notna().any() and frame["accuracy"].notna().any():
            panels.append(_panel(frame, model))
            frames.append(frame)
    if not panels:
        return table
    about = figures.describe("cost_accuracy")
    whole = pd.concat(frames, ignore_index=True)
    made = [*whole["cost_interval"], *whole["accuracy_interval"]]
    return [
        Chart(
            name="cost_accuracy",
            title=about.title,
            panels=tuple(panels),
            frame=whole,
            caption=f"{about.caption} Intervals: {interval_words(made, frames[0].attrs['confidence'])}.",
            alt=_alt(whole),
            keys=tuple(model.keys.values()),
            figure="cost_accuracy",
        ),
        *table,
    ]


def _panel(frame: pd.DataFrame, model: Model) -> dict[str, Any]:
    labels = label_names(frame["cell"].unique())
    data: list[dict[str, Any]] = []
    for cell, rows in frame.groupby("cell", sort=False):
        data += _points(rows, model.keys[str(cell)], labels[str(cell)])
    x, y = (label(find_metric(str(frame[column].iloc[0]))) for column in ("cost_metric", "accuracy_metric"))
    made = layout(x=x, y=y, height=320)
    made["xaxis"]["rangemode"] = "tozero"
    return {"data": data, "layout": made}


def _points(rows: pd.DataFrame, key: Key, name: str) -> list[dict[str, Any]]:
    first = rows.iloc[0]
    seeds = {
        "type": "scatter",
        "mode": "markers",
        "x": list(rows["cost"]),
        "y": list(rows["accuracy"]),
        "text": [f"seed {seed}" for seed in rows["seed"]],
        "marker": {"color": key.colour, "size": 6, "opacity": 0.5, "symbol": key.symbol},
        "hovertemplate": f"%{{x:.4g}}, %{{y:.4g}}<extra>{name}, %{{text}}</extra>",
        "legendgroup": key.group,
    }
    mean = {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [first["cost_mean"]],
        "y": [first["accuracy_mean"]],
        "marker": {"color": key.colour, "size": 11, "symbol": key.symbol},
        "error_x": _bars(first, "cost", key),
        "error_y": _bars(first, "accuracy", key),
        "hovertemplate": f"mean of {int(first['cost_n'])} seeds: %{{x:.4g}}, %{{y:.4g}}<extra>{name}</extra>",
        "legendgroup": key.group,
    }
    return [seeds, mean]


def _bars(line: Any, what: str, key: Key) -> dict[str, Any]:
    mean = line[f"{what}_mean"]
    return {
        "type": "data",
        "symmetric": False,
        "array": [line[f"{what}_high"] - mean],
        "arrayminus": [mean - line[f"{what}_low"]],
        "color": key.colour,
        "thickness": 1.2,
        "width": 3,
    }


def _alt(frame: pd.DataFrame) -> str:
    parts = []
    for (metric, cell), rows in frame.groupby(["cost_metric", "cell"], sort=False):
        first = rows.iloc[0]
        units = find_metric(str(metric)).units
        cost = one_line(
            estimate(first["cost_mean"], first["cost_low"], first["cost_high"], int(first["cost_n"]), units)
        )
        parts.append(f"{cell}: {metric} {cost}, accuracy {first['accuracy_mean']:.3f}")
    return "A point per learner, cost across and accuracy up. " + "; ".join(parts) + "."
