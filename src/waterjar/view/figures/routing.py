"""Where each stream routes: mean weight of every route of every slot, a heatmap per stream; or for one input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterjar.diagnose.collective.reading import RunStreams
from waterjar.errors import WaterjarError, unknown_name
from waterjar.view.curves import say
from waterjar.view.figures._collective import recorded_streams, shown_name
from waterjar.view.figures._heatmap import colour_bar, hatch
from waterjar.view.results import Source, roots_in
from waterjar.view.style import canvas, counted, foot_note, house_style, labels, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Routing of each stream"
CAPTION = (
    "Weight of every route (across) of every slot (down), a panel per stream, mean over the scored samples and over "
    "seeds; with sample=, for one input of one seed. The mean over samples hides how far single ones differ: routing "
    "entropy tells that. Hatched: no value."
)
NEEDS = ("collective",)
BY = ("route", "target")
AT = ("end", "start")
_COLUMNS = 6


def data(
    source: Source,
    *,
    sample: int | None = None,
    seed: int | None = None,
    by: str = "route",
    at: str = "end",
    **settings: Any,
) -> pd.DataFrame:
    """One row per cell, stream, slot and route: cell, stream, slot, route, mean, n, samples, sample, seed, total_epoch,
    reason.

    `sample` is the position of one input among the scored samples, then of one seed, the first by default. `by` is
    `route`, the routes of a slot in their order, the strongest first where they were so recorded; or `target`, where
    they go. `at` is the last snapshot (`end`) or the first one (`start`). `settings` go to `collective.measure`.
    """
    for name, value, known in (("by", by, BY), ("at", at, AT)):
        if value not in known:
            raise unknown_name(name, value, known)
    parts = []
    for cell, runs in recorded_streams(source, settings, "this figure shows recorded routes"):
        parts += [part.assign(cell=cell) for part in _of_cell(runs, sample, seed, by, at)]
    if not parts:
        wanted = f", of seed {seed}" if seed is not None else ""
        raise WaterjarError(
            f"no run has recorded routing weights{wanted} (streams/route_weight): there is none to draw"
        )
    columns = ["cell", "stream", "slot", by, "mean", "n", "samples", "sample", "seed", "total_epoch", "reason"]
    return pd.concat(parts, ignore_index=True)[columns]


def _of_cell(runs: list[RunStreams], sample: int | None, seed: int | None, by: str, at: str) -> list[pd.DataFrame]:
    found = list(_weights(runs, sample, seed, by, at))
    if not found:
        return []
    if sample is not None:
        found = found[:1]
    width = max(one.shape[-1] for _, one, *_ in found)
    each = np.stack([_filled(one, width) for _, one, *_ in found])
    n = np.isfinite(each).sum(0)
    mean = np.full(n.shape, np.nan)
    whole = n == len(each)
    mean[whole] = each[:, whole].mean(0)
    names, (first, _, samples, epoch) = runs[0].streams, found[0]
    stream, slot, route = (index.ravel() for index in np.indices(n.shape))
    about = {"stream": np.array(names, object)[stream], "slot": slot, by: route, "mean": mean.ravel(), "n": n.ravel()}
    table = pd.DataFrame(about).assign(samples=samples, total_epoch=epoch, sample=-1 if sample is None else sample)
    reason = np.where(table["mean"].isna(), "not_a_number", "")
    return [table.assign(seed=first if len(found) == 1 else -1, reason=reason)]


def _weights(
    runs: list[RunStreams], sample: int | None, seed: int | None, by: str, at: str
) -> Iterator[tuple[int, NDArray[np.float64], int, float]]:
    """(seed, mean weights (stream, slot, route or target), samples, epoch) of every repeat that has some."""
    for run in runs:
        if not run.has("route_weight") or not run.labels:
            continue
        position = len(run.labels) - 1 if at == "end" else 0
        epoch = float(run.steps["total_epoch"][1][position])
        for repeat, number in enumerate(run.run.seeds):
            if seed is not None and number != seed:
                continue
            rows = [run.arrays.row(f"streams/{name}", position, slice(repeat, repeat + 1))[0] if run.has(name) else None
                    for name in ("route_weight", "route_index")]  # fmt: skip
            weights, index = (None if row is None else run.stack(row, run.test, repeat) for row in rows)
            assert weights is not None
            own = weights.astype(np.float64)
            if sample is not None:
                if not 0 <= sample < len(own):
                    raise WaterjarError(f"sample={sample}: expected 0 to {len(own) - 1}, of the scored samples")
                own, index = own[[sample]], None if index is None else index[[sample]]
            if by == "target":
                if index is None:
                    raise WaterjarError("by='target': where routes go was not recorded (streams/route_index)")
                own = _by_target(own, index, run.targets)
            yield number, own.mean(0), len(own), epoch


def _by_target(weights: NDArray[np.float64], index: NDArray[Any], targets: int) -> NDArray[np.float64]:
    """(sample, stream, slot, target) of (sample, stream, slot, route); what goes nowhere (-1) is left out."""
    found = np.zeros((*weights.shape[:-1], targets))
    whole = np.where(np.isnan(index), -1, index).astype(np.int64)
    for target in range(targets):
        found[..., target] = np.where(whole == target, weights, 0.0).sum(-1)
    return found


def _filled(one: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    return np.pad(one, [(0, 0), (0, 0), (0, width - one.shape[-1])], constant_values=np.nan)


def routing(
    source: Source,
    *,
    sample: int | None = None,
    seed: int | None = None,
    by: str = "route",
    at: str = "end",
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw the routing weights of every stream, a row of panels per learner.

    `sample` draws one input, of `seed`; `by` is `route` or `target`; `at` is `end` or `start` of training.
    `settings` go to `collective.measure`.
    """
    with house_style():
        table = data(source, sample=sample, seed=seed, by=by, at=at, **settings)
        groups = {str(cell): list(dict.fromkeys(part["stream"])) for cell, part in table.groupby("cell", sort=False)}
        columns = min(_COLUMNS, max(map(len, groups.values())))
        rows = {cell: -(-len(streams) // columns) for cell, streams in groups.items()}
        figure = canvas(figure, (max(4.6, 1.55 * columns + 1.3), 1.75 * sum(rows.values()) + 0.9))
        panels = figure.subplots(sum(rows.values()), columns, squeeze=False)
        highest = float(np.nanmax(table["mean"])) if table["mean"].notna().any() else 1.0
        titles = labels(map(shown_name, groups), most=40)
        first, picture = 0, None
        for cell, streams in groups.items():
            own = panels[first : first + rows[cell]].ravel()
            first += rows[cell]
            shown = labels(streams, most=16)
            part = table[table["cell"] == cell]
            for place, (ax, stream) in enumerate(zip(own, streams, strict=False)):
                picture = _panel(ax, part[part["stream"] == stream], by, highest) or picture
                head = f"{titles[shown_name(cell)]}\n" if place == 0 else "\n" if place < columns else ""
                ax.set_title(f"{head}{shown[stream]}", fontsize=8.5)
                ax.set_ylabel("slot" if place % columns == 0 else "")
                ax.set_xlabel(by if place + columns >= len(streams) else "")
            for ax in own[len(streams) :]:
                ax.set_visible(False)
        if picture is not None:
            colour_bar(figure, picture, panels, "mean weight" if sample is None else "weight")
        foot_note(figure, _note(table, sample))
        return stamp(figure, roots_in(source))


def _panel(ax: Axes, part: pd.DataFrame, by: str, highest: float) -> Any:
    square = part.pivot(index="slot", columns=by, values="mean").to_numpy(float)
    ax.grid(False)
    if not np.isfinite(square).any():
        say(ax, "no numbers")
        ax.set_xticks([])
        ax.set_yticks([])
        return None
    picture = ax.imshow(square, cmap="cividis", vmin=0.0, vmax=highest, interpolation="nearest", aspect="auto")
    hatch(ax, np.isnan(square))
    for axis, count in ((ax.xaxis, square.shape[1]), (ax.yaxis, square.shape[0])):
        axis.set_ticks(range(0, count, 1 if count <= 8 else max(2, -(-count // 6))))
        axis.set_tick_params(labelsize=7)
    return picture


def _note(table: pd.DataFrame, sample: int | None) -> str:
    epochs = sorted({f"{epoch:g}" for epoch in table["total_epoch"]})
    when = f"at epoch {' or '.join(epochs)}"
    if sample is not None:
        return f"sample {sample} of the scored ones, seed {' or '.join(map(str, table['seed'].unique()))}, {when}"
    return f"mean over {counted(set(table['samples']), 'sample')} and {counted(set(table['n']), 'seed')}, {when}"
