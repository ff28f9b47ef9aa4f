"""How similar a representation is to itself at other times: snapshots against snapshots, as a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from waterjar.diagnose.training_order import visit_names_of
from waterjar.errors import WaterjarError, setting_as, unknown_name
from waterjar.run.schema import REASONS
from waterjar.view.curves import boundary_line, say
from waterjar.view.figures._heatmap import colour_bar, hatch, panel_grid
from waterjar.view.results import Source, by_cell, pick_layer, repeats_of, result_of, roots_in
from waterjar.view.style import canvas, house_style, labels, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Drift of the representation"
CAPTION = (
    "Every snapshot against every other, mean over repeats: light blocks along the diagonal are stretches in which "
    "the representation stays what it is. Red dashed lines part the tasks. Hatched: no value."
)
NEEDS = ("drift",)
MEASURES = {"cka": ("linear CKA (debiased) ↑", 0.0, 1.0), "procrustes": ("Procrustes distance ↓", 0.0, None)}


def data(source: Source, *, measure: str = "cka", layer: str | None = None, **settings: Any) -> pd.DataFrame:
    """One row per cell and pair of snapshots: cell, measure, layer, snapshot, other_snapshot, their total_epoch and
    train_task, mean over repeats, n, reason. `settings` go to `drift.measure`.
    """
    if measure not in MEASURES:
        raise unknown_name("measure", measure, MEASURES)
    result = result_of(source, "drift", settings)
    name = f"{measure}_matrix"
    if name not in result:
        raise WaterjarError(f"there is no {name} in the result: measure with {setting_as('drift.matrix', 2)} or more")
    return pd.concat(
        [_of_cell(cell, *pick_layer(one, layer), name) for cell, one in by_cell(result)], ignore_index=True
    )


def _of_cell(cell: str, one: Any, layer: str, name: str) -> pd.DataFrame:
    values, codes, _ = repeats_of(one, name, "moment", "other_moment")
    moments = one["moment"].values
    if len(values):  # moments that this cell has not
        kept = ~(np.isnan(values) & (codes == 1)).all(axis=(0, 1))
        values, codes, moments = values[:, kept][:, :, kept], codes[:, kept][:, :, kept], moments[kept]
    where = one.sel(snapshot=moments)
    epoch, task = where["total_epoch"].values.astype(float), np.array(visit_names_of(where), object)
    n = np.isfinite(values).sum(axis=0)
    complete = (n == len(values)) & (n > 0)
    mean = np.full(n.shape, np.nan)
    mean[complete] = values[:, complete].mean(axis=0)
    why = np.where(complete, "", np.array(REASONS)[codes.max(axis=0)] if len(codes) else "not_recorded")
    i, j = (index.ravel() for index in np.indices(n.shape))
    return pd.DataFrame({
        "cell": cell, "measure": name.removesuffix("_matrix"), "layer": layer,
        "snapshot": moments[i], "other_snapshot": moments[j], "total_epoch": epoch[i], "other_total_epoch": epoch[j],
        "train_task": task[i], "other_train_task": task[j], "mean": mean.ravel(), "n": n.ravel(), "reason": why.ravel(),
    })  # fmt: skip


def drift_matrix(
    source: Source,
    *,
    measure: str = "cka",
    layer: str | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw the similarity of every snapshot with every other, mean over repeats, one panel per cell.

    `measure` is `cka` or `procrustes`; the layer is the last one by default.
    """
    with house_style():
        table = data(source, measure=measure, layer=layer, **settings)
        cells = list(dict.fromkeys(table["cell"]))
        long_name, low, high = MEASURES[measure]
        if high is None:
            high = float(table["mean"].max()) if table["mean"].notna().any() else 1.0
        figure = canvas(figure, panel_grid(len(cells), 3.1, 2.9)[2])
        rows, columns, _ = panel_grid(len(cells), 3.1, 2.9)
        panels = figure.subplots(rows, columns, squeeze=False)
        shown_as = labels(cells, most=40, width=26)
        picture = None
        for ax, cell in zip(panels.ravel(), cells, strict=False):
            drawn = _panel(ax, table[table["cell"] == cell], (low, high))
            picture = drawn if drawn is not None else picture
            ax.set_title(shown_as[cell])
        for ax in panels.ravel()[len(cells) :]:
            ax.set_visible(False)
        if picture is not None:
            colour_bar(figure, picture, panels, long_name)
        return stamp(figure, roots_in(source))


def _panel(ax: Axes, part: pd.DataFrame, limits: tuple[float, float]) -> Any:
    ax.grid(False)
    if part.empty:
        say(ax, "no snapshot")
        return None
    square = part.pivot(index="snapshot", columns="other_snapshot", values="mean")
    first = part.drop_duplicates("snapshot")
    ticks, tasks = [f"{epoch:g}" for epoch in first["total_epoch"]], first["train_task"].tolist()
    picture = ax.imshow(square.to_numpy(), cmap="cividis", vmin=limits[0], vmax=limits[1], interpolation="nearest")
    hatch(ax, np.isnan(square.to_numpy()))
    step = -(-len(ticks) // 6)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(range(0, len(ticks), step), ticks[::step])
    starts = [i for i in range(1, len(tasks)) if tasks[i] != tasks[i - 1]]
    for i in starts:
        for draw in (ax.axvline, ax.axhline):
            draw(i - 0.5, **boundary_line(len(starts) + 1))
    ax.set_xlabel("total epoch")
    ax.set_ylabel("total epoch")
    return picture
