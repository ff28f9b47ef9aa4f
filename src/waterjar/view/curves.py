"""What figures over training share: a mean with its band, and red dashed lines where tasks change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import unknown_name
from waterjar.stats.intervals import t_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BANDS = {"interval": "95 % t interval of", "std": "standard deviation of", "range": "range of"}
BOUNDARY = "#C1272D"


def draw_mean(
    ax: Axes,
    x: NDArray[Any],
    values: NDArray[np.float64],
    style: Mapping[str, str],
    *,
    label: str | None = None,
    band: str = "interval",
) -> None:
    """The mean over repeats of values (repeat, x) and a band: interval, std or range. A missing value leaves a gap.

    The mean of fewer repeats would jump where one of them ends, so there is none.
    """
    if band not in BANDS:
        raise unknown_name("band", band, BANDS)
    complete = ~np.isnan(values).any(axis=0)
    mean = np.full(len(x), np.nan)
    low, high = mean.copy(), mean.copy()
    mean[complete] = values[:, complete].mean(axis=0)
    if len(values) > 1:
        low[complete], high[complete] = _bounds(values[:, complete], band)
    marker = "o" if complete.sum() < 3 else None
    ax.plot(x, mean, label=(label or "").lstrip("_") or None, marker=marker, **style)  # type: ignore[arg-type]
    if len(values) > 1:
        ax.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)


def _bounds(values: NDArray[np.float64], band: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if band == "range":
        return values.min(axis=0), values.max(axis=0)
    if band == "std":
        mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
        return mean - spread, mean + spread
    return t_bounds(values.T, 0.95)


def band_note(repeats: set[int], band: str = "interval") -> str | None:
    """What the line and the band are; None where there is no band.

    >>> band_note({3}), band_note({1})
    ('mean and 95 % t interval of 3 repeats', None)
    """
    if not repeats - {1}:
        return None
    return f"mean and {BANDS[band]} {' or '.join(map(str, sorted(repeats)))} repeats"


def mark_tasks(ax: Axes, x: NDArray[Any], tasks: Sequence[str], *, names: bool = True) -> None:
    """A red dashed line where a task ends, and the name of each task above."""
    starts = [i for i in range(len(tasks)) if i == 0 or tasks[i] != tasks[i - 1]]
    if len(starts) < 2:
        return
    for i in starts:
        begin = x[max(0, i - 1)]  # the evaluation at the end of the task before
        if names:
            ax.annotate(
                f" {tasks[i]}",
                (begin, 1.0),
                xycoords=("data", "axes fraction"),
                va="bottom",
                fontsize=7.5,
                color="#555555",
                annotation_clip=True,
            )
        if i:
            ax.axvline(begin, color=BOUNDARY, linestyle=(0, (4, 3)), linewidth=1.0, zorder=1, alpha=0.8)
