"""What figures of collectives share: numbers at the end of training, over seeds or, of one seed, over samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.analysis import by_family
from waterjar.diagnose.collective.reading import RunStreams
from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.over_seeds import CONFIDENCE, interval_words, mean_table
from waterjar.diagnose.registry import find_family
from waterjar.diagnose.result import NO_RUN, NOT_RECORDED, Codes, Floats
from waterjar.run.schema import REASON
from waterjar.stats.intervals import UNBOUNDED
from waterjar.view.results import Source, cell_labels, level_of, result_of, settings_used, study_of
from waterjar.view.style import COLOURS, MARKERS, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.axes import Axes

SHARE = (0.0, 1.0)
SEEDS, SAMPLES = "seeds", "samples"
"""What bounds are over: seeds speak of the method, samples of one network."""
FEW = 6
"""Streams that have a colour and a name each; more of them are drawn alike."""
_STREAMS = (COLOURS[5], COLOURS[2], COLOURS[4], COLOURS[3], COLOURS[6], "#999933")
_ABSENT = (NOT_RECORDED, NO_RUN)
ESTIMATE = ("mean", "low", "high", "n", "reason", "interval", "bounds", "confidence")
LEVEL = "level"
Places = NDArray[np.int64]


def last_places(one: xr.Dataset) -> Places:
    """(repeat,): position of the last snapshot at which a repeat has recorded anything; -1 where it never has."""
    found = np.full(one.sizes["repeat"], -1)
    for name, array in one.data_vars.items():
        if set(array.dims) == {"repeat", "snapshot"} and not str(name).endswith(REASON):
            codes = reasons_of(one, str(name)).transpose("repeat", "snapshot").values
            there = ~(np.isin(codes, _ABSENT))
            last = np.where(there.any(1), there.shape[1] - 1 - there[:, ::-1].argmax(1), -1)
            found = np.maximum(found, last)
    return found


def at_places(one: xr.Dataset, name: str, places: Places, *dims: str) -> tuple[Floats, Codes]:
    """(values, reasons) over (repeat, *dims) at one snapshot of each repeat, without repeats that have none."""
    kept = np.flatnonzero(places >= 0)
    if name not in one or not len(kept):
        shape = (0, *(one.sizes[dim] for dim in dims))
        return np.empty(shape), np.empty(shape, np.uint8)
    order = ("repeat", "snapshot", *dims)
    values = one[name].transpose(*order).values.astype(np.float64)
    codes = reasons_of(one, name).transpose(*order).values
    return values[kept, places[kept]], codes[kept, places[kept]]


def own_last(one: xr.Dataset, name: str) -> Places:
    """(repeat,): the last snapshot at which a repeat has recorded this variable: probes are taken when one likes."""
    order = ("repeat", "snapshot", *(str(dim) for dim in one[name].dims if dim not in ("repeat", "snapshot")))
    codes = reasons_of(one, name).transpose(*order).values
    there: NDArray[np.bool_] = np.asarray((~np.isin(codes, _ABSENT)).any(axis=tuple(range(2, codes.ndim))))
    if not there.shape[1]:
        return np.full(len(there), -1)
    return np.where(there.any(1), there.shape[1] - 1 - there[:, ::-1].argmax(1), -1)


def estimates(
    one: xr.Dataset, name: str, places: Places, *dims: str, within: tuple[float, float] = UNBOUNDED
) -> pd.DataFrame:
    """Of a variable at one snapshot of each repeat, a row per place along `dims`, the last of which runs fastest.

    Columns mean, low, high, n, reason, interval, bounds, confidence. Bounds are over seeds, at the level that counts;
    of one seed they are those over samples, `<name>_low` and `_high`, where these were measured.
    """
    values, codes = at_places(one, name, places, *dims)
    flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
    level = one.attrs[LEVEL]
    found = mean_table(flat, codes.reshape(flat.shape), within=within, confidence=level).assign(confidence=level)
    found["bounds"] = np.where(found["low"].notna(), SEEDS, "")
    if len(values) == 1:
        low, high = (at_places(one, f"{name}{end}", places, *dims)[0].reshape(-1) for end in ("_low", "_high"))
        if len(low) == len(high) == len(found):
            known = np.isfinite(found["mean"]) & np.isfinite(low) & np.isfinite(high)
            found["low"], found["high"] = np.where(known, low, np.nan), np.where(known, high, np.nan)
            found["bounds"] = np.where(known, SAMPLES, "")
    return found


def recorded_streams(source: Source, settings: Mapping[str, Any], why: str) -> Iterator[tuple[str, list[RunStreams]]]:
    """(name of the cell, its runs that have recorded streams), for what is recorded and not measured.

    `settings` are those of `collective.measure`: they say which sets are scored.
    """
    study = study_of(source, why)
    given = by_family(settings, among=["collective"]).get("collective", {})
    chosen = find_family("collective").settings({**settings_used(source, "collective"), **given})
    names = cell_labels(study)
    for cell, entries in study.cells.items():
        yield names[cell], [RunStreams(run, chosen) for run in map(study.open, entries) if "streams" in run.groups]


def measured(source: Source, family: str, settings: Mapping[str, Any]) -> xr.Dataset:
    """The result of a family, which says as its attribute `LEVEL` at which level its intervals over seeds are."""
    result = result_of(source, family, settings)
    has_own = "confidence" in find_family(family).settings_model.model_fields
    return result.assign_attrs({LEVEL: level_of(result if has_own else source, family)})


def bounds_note(table: pd.DataFrame, over_samples: float = CONFIDENCE) -> str:
    """What the intervals of a table are over, in words; `over_samples` is the level of those over samples."""
    said = []
    own = table[table["bounds"] == SEEDS]
    if len(own):
        words = interval_words((text for text in own["interval"] if text), float(own["confidence"].iloc[0]))
        said.append(f"mean and {words} over {counted(set(own['n']), 'seed')}")
    if (table["bounds"] == SAMPLES).any():
        level = f"{100 * over_samples:g} %"
        said.append(f"of one seed the {level} interval over samples, which speaks of that network alone")
    return "; ".join(said)


def stream_styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A colour and a marker for each stream, none of which is that of the collective; grey where there are many."""
    if len(names) > FEW:
        return {name: {"color": "#8a8a8a", "marker": "o"} for name in names}
    return {name: {"color": _STREAMS[i], "marker": MARKERS[1:][i]} for i, name in enumerate(names)}


def draw_row(ax: Axes, place: float, line: Any, style: Mapping[str, Any], *, size: float = 6.0) -> None:
    """A marker with its interval, lying at a height."""
    if np.isfinite(line.low) and np.isfinite(line.high):
        ax.plot([line.low, line.high], [place, place], color=style["color"], linewidth=1.8, solid_capstyle="butt")
    ax.plot([line.mean], [place], linestyle="none", markersize=size, **style)


def shown_name(cell: str) -> str:
    """The name of a cell, for a title; a lone run may have none."""
    return cell or "this run"
