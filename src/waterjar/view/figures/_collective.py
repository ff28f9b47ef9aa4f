"""What figures of collectives share: numbers at the end of training, over seeds or, of one seed, over samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.diagnose.over_seeds import interval_words, mean_table
from waterjar.diagnose.result import NO_RUN, NOT_RECORDED, Codes, Floats
from waterjar.run.schema import REASONS
from waterjar.view.results import by_cell, repeats_of
from waterjar.view.style import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.axes import Axes

SHARE = (0.0, 1.0)
SEEDS, SAMPLES = "seeds", "samples"
"""What bounds are over: seeds speak of the method, samples of one network."""
FEW = 8
"""Streams that have a colour and a name each; more are drawn alike."""
_ABSENT = (NOT_RECORDED, NO_RUN)


def cells_of(result: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """(name, result over (repeat, ...)) of every cell, in order."""
    return list(by_cell(result))


def at_end(one: xr.Dataset, name: str, *dims: str) -> tuple[Floats, Codes]:
    """(values, reasons) over (repeat, *dims) at the last snapshot that each repeat has recorded it at.

    Without a repeat that has it, the first dimension is empty.
    """
    if name not in one:
        return _nothing(one, dims)
    values, codes, _ = repeats_of(one, name, "snapshot", *dims)
    if not len(values) or not values.shape[1]:
        return _nothing(one, dims)
    there = ~np.isin(codes, _ABSENT).reshape(*codes.shape[:2], -1).all(-1)
    last = values.shape[1] - 1 - there[:, ::-1].argmax(1)
    rows = np.arange(len(values))
    return values[rows, last], codes[rows, last]


def _nothing(one: xr.Dataset, dims: tuple[str, ...]) -> tuple[Floats, Codes]:
    shape = (0, *(one.sizes[dim] for dim in dims))
    return np.empty(shape), np.empty(shape, np.uint8)


def own_labels(one: xr.Dataset, name: str, dim: str) -> list[int]:
    """Positions along a dimension that this cell has anything at: another cell may have other streams."""
    if name not in one:
        return []
    _, codes, _ = repeats_of(one, name, "snapshot", *(str(d) for d in one[name].dims if d not in ("repeat", "snapshot")))
    at = [str(d) for d in one[name].dims if d not in ("repeat", "snapshot")].index(dim) + 2
    gone = np.isin(codes, _ABSENT).all(axis=tuple(i for i in range(codes.ndim) if i != at))
    return [int(i) for i in np.flatnonzero(~gone)] if len(codes) else []


def estimates(
    one: xr.Dataset, name: str, *dims: str, within: tuple[float, float] = (-np.inf, np.inf)
) -> pd.DataFrame:
    """Of a variable at the end of training, one row per place along `dims` (in their order): mean, low, high, n, reason,
    interval, bounds.

    Bounds are over seeds; of one seed those over samples, `<name>_low` and `_high`, where they were measured.
    """
    values, codes = at_end(one, name, *dims)
    shape = values.shape[1:]
    found = mean_table(values.reshape(len(values), -1), codes.reshape(len(codes), -1), within=within)
    found["bounds"] = np.where(found["low"].notna(), SEEDS, "")
    if len(values) == 1:
        low, high = (at_end(one, f"{name}{end}", *dims)[0] for end in ("_low", "_high"))
        if len(low) and len(high):
            found["low"], found["high"] = low[0].reshape(-1), high[0].reshape(-1)
            known = np.isfinite(found["mean"]) & found["low"].notna() & found["high"].notna()
            found["bounds"] = np.where(known, SAMPLES, "")
    if not len(values):
        found = found.assign(mean=np.nan, n=0, reason=REASONS[NOT_RECORDED])
    assert len(found) == int(np.prod(shape))
    return found


def bounds_note(table: pd.DataFrame, confidence: float) -> str:
    """What the intervals of a table are over, in words."""
    level = f"{100 * confidence:g} %"
    said = []
    if (table["bounds"] == SEEDS).any():
        own = table[table["bounds"] == SEEDS]
        words = interval_words((text for text in own["interval"] if text), 0.95)
        said.append(f"mean and {words} over {counted(set(own['n']) - {1}, 'seed')}")
    if (table["bounds"] == SAMPLES).any():
        said.append(f"of one seed: {level} interval over samples, which speaks of that network alone")
    return "; ".join(said)


def draw_bar(ax: Axes, place: float, line: Any, style: Mapping[str, Any], size: float = 6.0) -> None:
    """A marker with its interval, lying."""
    if np.isfinite(line.low) and np.isfinite(line.high):
        ax.plot([line.low, line.high], [place, place], color=style["color"], linewidth=1.6, solid_capstyle="butt")
    ax.plot([line.mean], [place], linestyle="none", markersize=size, **style)


def every_nth(count: int, most: int) -> range:
    """Places that are named where not all can be."""
    return range(0, count, max(1, -(-count // most)))


def shown_name(cell: str, n: Iterable[int] = ()) -> str:
    """The name of a cell, for a title; a lone run may have none."""
    return cell or "this run"
