"""How well the classes are untangled, and why."""

from __future__ import annotations

from typing import Any

from waterjar.diagnose.registry import find_metric
from waterjar.view import figures
from waterjar.view.numbers import panel_title
from waterjar.view.report.blocks import Block, Chart, Heading, Items
from waterjar.view.report.charts.curves import curve, early, last_values, panels_over
from waterjar.view.report.leads.geometry import caution
from waterjar.view.report.measured import metric_table
from waterjar.view.report.model import Model

TITLE = "Manifold geometry"
ORDER = 60
_OVER = "total_epoch"
_SIMULATED = "simulated_capacity"

GUIDE = (
    ("Capacity ↑", "classes are better untangled: more of them can be told apart by a plane per unit."),
    ("Radius ↓", "raises capacity: less noise within a class beside the signal between classes."),
    ("Dimension ↓", "raises capacity: classes vary in fewer directions."),
    ("Centre and axis alignment ↓", "raise capacity: classes get less into each other's way."),
    (
        "Simulated against calculated capacity",
        "agreement says that the mean-field theory behind the other numbers holds here; where they part, trust the "
        "simulated one.",
    ),
)
"""How to read it: the seed document's interpretation guide, in our words."""


def blocks(model: Model) -> list[Block]:
    """The guide, the stack over training, and where it ends; nothing without features of labelled samples."""
    if "geometry" not in model.diagnosis.results:
        return []
    made: list[Block] = [Heading("How to read it"), Items(GUIDE)]
    warned = caution(model)
    frame = model.figure_data("geometry_stack")
    if len(frame):
        about = figures.describe("geometry_stack")
        lines = frame[frame["metric"] != _SIMULATED]
        titles = {name: panel_title(find_metric(name)) for name in lines["metric"].unique()}
        panels = panels_over(lines, "metric", model.keys, over=_OVER, titles=titles)
        layers = [name for name in lines["layer"].unique() if name]
        made.append(
            Chart(
                name="geometry_stack",
                title=about.title + (f", layer {layers[0]}" if layers else ""),
                panels=_with_simulated(panels, frame[frame["metric"] == _SIMULATED], model),
                frame=frame,
                caption=" ".join(text for text in (about.caption, *early(frame, _OVER), warned) if text),
                alt=f"One panel per measure over epochs. {last_values(lines, 'metric', _OVER, 6)}",
                keys=tuple(model.keys.values()),
                figure="geometry_stack",
            )
        )
    return [*made, *metric_table(model, "geometry", "Geometry at the end of training", more=warned)]


def _with_simulated(panels: tuple[dict[str, Any], ...], points: Any, model: Model) -> tuple[dict[str, Any], ...]:
    """Simulated capacity as dots with error bars over the first panel, which is capacity."""
    if not len(points):
        return panels
    dots: list[dict[str, Any]] = []
    for cell, rows in points.groupby("cell", sort=False):
        one, key = curve(rows, str(cell), _OVER), model.keys[str(cell)]
        above = [high - mean for high, mean in zip(one.high, one.mean, strict=True)]
        below = [mean - low for low, mean in zip(one.low, one.mean, strict=True)]
        bars: dict[str, Any] = {
            "type": "data",
            "symmetric": False,
            "array": list(above),
            "arrayminus": list(below),
        }
        dots.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": list(one.x),
                "y": list(one.mean),
                "error_y": bars,
                "marker": {"color": key.colour, "symbol": key.symbol, "size": 8},
                "legendgroup": key.group,
                "hovertemplate": "%{y:.4g}<extra>Simulated (Alg 1)</extra>",
            }
        )
    first = panels[0]
    return ({**first, "data": [*first["data"], *dots]}, *panels[1:])
