"""Fingerprints of streams in a plane: their principal components, where they began and where they ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.collective.reading import RunStreams
from waterjar.errors import WaterjarError
from waterjar.view.curves import say
from waterjar.view.figures._collective import FEW, recorded_streams, shown_name, stream_styles
from waterjar.view.figures._heatmap import panel_grid
from waterjar.view.results import Source, roots_in
from waterjar.view.style import canvas, counted, foot_note, house_style, labels, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Map of fingerprints"
CAPTION = (
    "Fingerprints of the streams of one seed on their first two principal components, a point per stream; the axes say "
    "which share of the variance they hold. Small and hollow: where it was before training, in the same plane. Random "
    "fingerprints lie far apart too: how far they moved tells more than how far apart they are."
)
NEEDS = ("collective",)
START, END = "start", "end"
_NAMED = 12
"""Streams up to which all are named; of more, those whose name finds room."""
Floats = NDArray[np.float64]


class Plane(NamedTuple):
    """The plane of the first two principal components."""

    centre: Floats
    """(component,)."""
    axes: Floats
    """(2, component); 0 along one in which points do not differ."""
    shares: Floats
    """(2,): of the variance; NaN where there is none."""


def principal_plane(points: ArrayLike) -> Plane:
    """Centre, first two principal axes and their shares of the variance, of points (point, component).

    By singular values of the centred points; one that rounding explains is 0, and its axis nowhere, since any direction
    would do. Of each axis the largest component is positive, so that the same points give the same picture. Source:
    Jolliffe 2002, Principal Component Analysis, 3.5.

    >>> plane = principal_plane([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]])
    >>> plane.axes.tolist(), plane.shares.tolist()
    ([[1.0, 0.0], [0.0, 0.0]], [1.0, 0.0])
    """
    values = np.asarray(points, np.float64)
    centre = values.mean(0)
    _, sizes, turned = np.linalg.svd(values - centre, full_matrices=False)
    sizes[sizes <= np.finfo(np.float64).eps * max(values.shape) * np.linalg.norm(values)] = 0.0
    axes = np.zeros((2, values.shape[1]))
    axes[: min(2, len(turned))] = turned[:2] * (sizes[:2, None] > 0)
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(1)])
    variance = np.zeros(2)
    variance[: min(2, len(sizes))] = sizes[:2] ** 2
    total = float((sizes**2).sum())
    shares = variance / total if total > 0 else np.full(2, np.nan)
    return Plane(centre, axes * np.where(signs == 0, 1.0, signs)[:, None], shares)


def data(source: Source, *, seed: int | None = None, **settings: Any) -> pd.DataFrame:
    """One row per cell, stream and time: cell, seed, stream, at (start or end), total_epoch, x, y, share_x, share_y, n.

    The plane is that of the fingerprints at the end; those before training (epoch 0), where they were recorded, are
    drawn in it. Fingerprints of different seeds have nothing in common: one seed is shown, the first by default. `n`
    counts the streams. `settings` go to `collective.measure`.
    """
    parts = []
    for cell, runs in recorded_streams(source, settings, "this figure shows recorded fingerprints"):
        part = next((part for run in runs if (part := _of_run(run, seed)) is not None), None)
        if part is not None:
            parts.append(part.assign(cell=cell))
    if not parts:
        wanted = f" of seed {seed}" if seed is not None else ""
        raise WaterjarError(f"no run has recorded fingerprints{wanted} (streams/fingerprint): there is none to draw")
    columns = ["cell", "seed", "stream", "at", "total_epoch", "x", "y", "share_x", "share_y", "n"]
    return pd.concat(parts, ignore_index=True)[columns]


def _of_run(run: RunStreams, seed: int | None) -> pd.DataFrame | None:
    seeds = run.run.seeds
    if not run.has("fingerprint") or not run.labels or (seed is not None and seed not in seeds):
        return None
    repeat = 0 if seed is None else seeds.index(seed)
    epochs = np.asarray(run.steps["total_epoch"][1], np.float64)
    untrained = np.flatnonzero(epochs == 0.0)
    last = len(run.labels) - 1
    places = {END: last} | ({START: int(untrained[-1])} if len(untrained) and untrained[-1] != last else {})
    values = {
        at: run.arrays.row("streams/fingerprint", place, slice(repeat, repeat + 1))[0].astype(np.float64)
        for at, place in places.items()
    }
    there = np.isfinite(values[END]).all(1)
    plane = principal_plane(values[END][there]) if there.any() else None
    parts = []
    for at, points in values.items():
        x, y = ((points - plane.centre) @ plane.axes.T).T if plane is not None else np.full((2, len(points)), np.nan)
        shares = (np.nan, np.nan) if plane is None else plane.shares
        about = {"stream": run.streams, "at": at, "total_epoch": epochs[places[at]], "x": x, "y": y}
        parts.append(pd.DataFrame(about).assign(share_x=shares[0], share_y=shares[1]))
    return pd.concat(parts, ignore_index=True).assign(seed=seeds[repeat], n=int(there.sum()))


def fingerprint_map(
    source: Source, *, seed: int | None = None, figure: Figure | None = None, **settings: Any
) -> Figure:
    """Draw fingerprints in the plane of their first two principal components, a panel per learner.

    `seed` is the first one by default. `settings` go to `collective.measure`.
    """
    with house_style():
        table = data(source, seed=seed, **settings)
        cells = list(dict.fromkeys(table["cell"]))
        side = 3.5 if table["n"].max() <= _NAMED and len(cells) > 1 else 4.8
        rows, columns, size = panel_grid(len(cells), side, side - 0.2)
        figure = canvas(figure, (size[0] - 0.8, size[1] + 0.3))
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        titles = labels(map(shown_name, cells), most=20)
        for ax, cell in zip(panels, cells, strict=False):
            part = table[table["cell"] == cell]
            ax.set_title(f"{titles[shown_name(cell)]}, seed {part['seed'].iloc[0]}")
            _points(ax, part)
        for ax in panels[len(cells) :]:
            ax.set_visible(False)
        begun = "; small and hollow: before training, in the plane of the end" if (table["at"] == START).any() else ""
        foot_note(figure, f"first two principal components of the fingerprints at the end{begun}")
        figure.draw_without_rendering()  # where points and panels stand, for the names
        for ax, cell in zip(panels, cells, strict=False):
            _names(ax, table[table["cell"] == cell])
        return stamp(figure, roots_in(source))


def _points(ax: Axes, part: pd.DataFrame) -> None:
    end = part[part["at"] == END]
    if len(end) < 2 or end["x"].isna().all() or end["share_x"].isna().all():
        say(ax, "one stream: it spans no plane" if len(end) < 2 else "all fingerprints are the same, or no numbers")
        ax.set_xticks([])
        ax.set_yticks([])
        return
    styles = stream_styles(list(end["stream"]))
    begun = part[part["at"] == START].set_index("stream")
    for line in end.itertuples():
        style = styles[line.stream]
        if line.stream in begun.index:
            first = begun.loc[line.stream]
            ax.plot([first["x"], line.x], [first["y"], line.y], color=style["color"], linewidth=0.9, alpha=0.6)
            ax.plot([first["x"]], [first["y"]], linestyle="none", markersize=4, markerfacecolor="white", **style)
        ax.plot([line.x], [line.y], linestyle="none", markersize=8 if len(end) <= FEW else 5, **style)
    for set_label, letter, number in ((ax.set_xlabel, "share_x", 1), (ax.set_ylabel, "share_y", 2)):
        set_label(f"component {number} ({100 * end[letter].iloc[0]:.0f} % of the variance)")
    ax.margins(0.16)
    if end["share_y"].iloc[0] == 0:
        ax.set_ylim(-1, 1)
        ax.set_yticks([])
    ax.axhline(0, color="#cccccc", linewidth=0.8, zorder=0)
    ax.axvline(0, color="#cccccc", linewidth=0.8, zorder=0)


_AROUND = ((6, 5, "left", "bottom"), (-6, 5, "right", "bottom"), (6, -5, "left", "top"), (-6, -5, "right", "top"),
           (0, 8, "center", "bottom"), (0, -8, "center", "top"))  # fmt: skip


def _names(ax: Axes, part: pd.DataFrame) -> None:
    """Name the points, each where its name meets no other and no point; those without room are counted."""
    end = part[part["at"] == END]
    if len(end) < 2 or end["x"].isna().all() or end["share_x"].isna().all():
        return
    from matplotlib.transforms import Bbox  # noqa: PLC0415 - an extra

    shown = labels(end["stream"], most=18)
    places = ax.transData.transform(pd.concat([end, part[part["at"] == START]])[["x", "y"]].to_numpy(float))
    taken = [Bbox.from_bounds(x - 8, y - 8, 16, 16) for x, y in places]
    frame, left = ax.get_window_extent(), 0
    for i, line in enumerate(end.itertuples()):
        for dx, dy, across, along in _AROUND:
            text = ax.annotate(
                shown[line.stream], (line.x, line.y), xytext=(dx, dy), textcoords="offset points", ha=across, va=along,
                fontsize=8 if len(end) <= _NAMED else 6.5,
            )  # fmt: skip
            text.set_in_layout(False)
            box = text.get_window_extent()
            others = [one for j, one in enumerate(taken) if j != i]
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(one) for one in others):
                taken.append(box)
                break
            text.remove()
        else:
            left += 1
    if left:
        ax.text(
            0.99, 0.01, f"{counted([left], 'name')} left out", transform=ax.transAxes, ha="right", va="bottom",
            fontsize=7, color="#555555",
        )  # fmt: skip
