"""Plasticity over training: one panel per metric, mean and band over repeats, tasks parted by red dashed lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr

from waterjar.run.reader import Run
from waterjar.run.study import Study
from waterjar.view.results import result_of, roots_in, stack
from waterjar.view.style import canvas, house_style, stamp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def plasticity_stack(
    source: Run | Study | xr.Dataset,
    *,
    metrics: Sequence[str] = METRICS,
    layer: str | None = None,
    over: str = "total_epoch",
    band: str = "interval",
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw plasticity metrics over training, of one layer (the last one by default); `settings` go to `measure`."""
    result = result_of(source, "plasticity", settings)
    with house_style():
        figure = canvas(figure, (6.4, 1.15 * len(metrics) + 1.2))
        panels = stack(result, metrics, figure, layer=layer, over=over, band=band)
        panels[0].set_title("Plasticity", pad=14)
        figure.align_ylabels(panels)
        return stamp(figure, roots_in(result))
