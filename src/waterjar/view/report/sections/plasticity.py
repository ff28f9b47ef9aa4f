"""Whether the networks keep their ability to learn."""

from __future__ import annotations

from waterjar.diagnose.registry import find_metric
from waterjar.view import figures
from waterjar.view.numbers import panel_title
from waterjar.view.report.blocks import Block, Chart
from waterjar.view.report.charts.curves import early, last_values, panels_over
from waterjar.view.report.charts.theme import as_drawn
from waterjar.view.report.measured import metric_table
from waterjar.view.report.model import Model

TITLE = "Plasticity"
ORDER = 50
_OVER = "total_epoch"


def blocks(model: Model) -> list[Block]:
    """The stack of metrics over training, and where they end; nothing without features or weights."""
    if "plasticity" not in model.diagnosis.results:
        return []
    made: list[Block] = []
    frame = model.figure_data("plasticity_stack")
    if len(frame):
        about = figures.describe("plasticity_stack")
        titles = {name: panel_title(find_metric(name)) for name in frame["metric"].unique()}
        layers = [name for name in frame["layer"].unique() if name]
        panels = panels_over(frame, "metric", model.keys, over=_OVER, titles=titles)
        made.append(
            Chart(
                name="plasticity_stack",
                title=about.title + (f", layer {layers[0]}" if layers else ""),
                panels=panels,
                frame=frame,
                caption=" ".join([as_drawn(about.caption, panels), *early(frame, _OVER)]),
                alt=f"One panel per metric over epochs. {last_values(frame, 'metric', _OVER)}",
                keys=tuple(model.keys.values()),
                figure="plasticity_stack",
            )
        )
    return [*made, *metric_table(model, "plasticity", "Plasticity at the end of training")]
