"""How similar a representation is to itself at other times: snapshots against snapshots, as a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.reader import Run
from waterjar.run.study import Study
from waterjar.view.curves import BOUNDARY
from waterjar.view.results import by_cell, pick_layer, result_of, roots_in
from waterjar.view.style import canvas, house_style, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = {"cka": ("linear CKA (debiased)", 0.0, 1.0), "procrustes": ("Procrustes distance", 0.0, None)}


def drift_matrix(
    source: Run | Study | xr.Dataset,
    *,
    measure: str = "cka",
    layer: str | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw the similarity of every snapshot with every other, mean over repeats, one panel per cell.

    Red lines part the tasks; hatched where there is no value. `measure` is `cka` or `procrustes`.
    """
    if measure not in MEASURES:
        raise unknown_name("measure", measure, MEASURES)
    result = result_of(source, "drift", settings)
    if f"{measure}_matrix" not in result:
        raise WaterjarError(f"there is no {measure}_matrix in the result: measure with matrix=2 or more")
    cells = [(name, pick_layer(one, layer)) for name, one in by_cell(result)]
    columns = min(3, len(cells))
    rows = -(-len(cells) // columns)
    with house_style():
        figure = canvas(figure, (3.1 * columns + 1.0, 2.9 * rows + 0.4))
        panels = figure.subplots(rows, columns, squeeze=False)
        long_name, low, high = MEASURES[measure]
        means = [_mean(one, f"{measure}_matrix") for _, one in cells]
        if high is None:
            high = max((float(np.nanmax(m)) for m, _, _ in means if np.isfinite(m).any()), default=1.0)
        picture = None
        for ax, (name, _), (values, ticks, tasks) in zip(panels.ravel(), cells, means, strict=False):
            picture = _panel(ax, values, ticks, tasks, (low, high))
            ax.set_title(name)
        for ax in panels.ravel()[len(cells) :]:
            ax.set_visible(False)
        if picture is not None:
            figure.colorbar(picture, ax=panels, label=long_name, shrink=0.8)
        return stamp(figure, roots_in(result))


def _mean(one: xr.Dataset, name: str) -> tuple[Any, list[str], list[str]]:
    values = one[name].transpose("repeat", "moment", "other_moment").values
    values = values[~np.isnan(values).all(axis=(1, 2))]
    there = ~np.isnan(values).all(axis=(0, 1)) if len(values) else np.ones(one.sizes["moment"], bool)
    moments = one["moment"].values[there]
    where = one.sel(snapshot=moments) if "snapshot" in one.dims else one
    mean = values[:, there][:, :, there].mean(axis=0) if len(values) else np.full((there.sum(), there.sum()), np.nan)
    return mean, [f"{epoch:g}" for epoch in where["total_epoch"].values], [str(t) for t in where["train_task"].values]


def _panel(ax: Axes, values: Any, ticks: list[str], tasks: list[str], limits: tuple[float, float]) -> Any:
    picture = ax.imshow(values, cmap="cividis", vmin=limits[0], vmax=limits[1], interpolation="nearest")
    for i, j in zip(*np.nonzero(np.isnan(values)), strict=True):
        ax.add_patch(_hatched(float(j), float(i)))
    step = max(1, len(ticks) // 6)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(range(0, len(ticks), step), ticks[::step])
    for i in range(1, len(tasks)):
        if tasks[i] != tasks[i - 1]:
            ax.axvline(i - 0.5, color=BOUNDARY, linestyle=(0, (4, 3)), linewidth=1.2)
            ax.axhline(i - 0.5, color=BOUNDARY, linestyle=(0, (4, 3)), linewidth=1.2)
    ax.grid(False)
    ax.set_xlabel("total epoch")
    ax.set_ylabel("total epoch")
    return picture


def _hatched(x: float, y: float) -> Any:
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - an extra

    return Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, hatch="////", edgecolor="#999999", linewidth=0)
