"""Plasticity over training: one panel per metric, mean and band over repeats, tasks parted by red dashed lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from waterjar.errors import WaterjarError
from waterjar.view.figures._stack import draw_stack, title_with_dataset
from waterjar.view.results import Source, cell_order, level_of, result_of, roots_in, snapshot_table
from waterjar.view.style import canvas, house_style, stamp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Plasticity over training"
CAPTION = (
    "One panel per metric of features and weights: a line is the mean over repeats. Red dashed lines part the "
    "tasks. Units that fall dormant and ranks that shrink while weights grow are signs of a network losing its "
    "ability to learn."
)
NEEDS = ("plasticity",)
METRICS = (
    "dormant_units",
    "active_units",
    "stable_rank",
    "effective_rank",
    "feature_norm",
    "feature_variance",
    "weight_magnitude",
    "weight_change_task",
    "weight_change_init",
)


def data(
    source: Source,
    *,
    metrics: Sequence[str] = METRICS,
    layer: str | None = None,
    over: str = "total_epoch",
    band: str = "interval",
    confidence: float | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """One row per metric, cell and snapshot: metric, cell, layer, snapshot, train_task, `over`, mean, low, high, n,
    reason. `layer` is the last one by default; `settings` go to `plasticity.measure`.
    """
    if not metrics:
        raise WaterjarError(f"metrics is empty: expected some of {', '.join(METRICS)}")
    level = level_of(source, "plasticity") if confidence is None else confidence
    result = result_of(source, "plasticity", settings)
    return snapshot_table(result, metrics, layer=layer, over=over, band=band, confidence=level)


def plasticity_stack(
    source: Source,
    *,
    metrics: Sequence[str] = METRICS,
    layer: str | None = None,
    over: str = "total_epoch",
    band: str = "interval",
    confidence: float | None = None,
    dataset: str | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw plasticity metrics over training, of one layer (the last one by default); `settings` go to `measure`.

    `dataset` stands in the title; by default it is what the runs' settings say.
    """
    with house_style():
        table = data(source, metrics=metrics, layer=layer, over=over, band=band, confidence=confidence, **settings)
        figure = canvas(figure, (6.4, 1.15 * len(metrics) + 1.2))
        panels = draw_stack(figure, table, metrics, cell_order(source, table["cell"]), over=over, band=band)
        panels[0].set_title(title_with_dataset("Plasticity", source, dataset), pad=14)
        figure.align_ylabels(panels)
        return stamp(figure, roots_in(source))
