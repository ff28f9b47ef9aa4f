"""What figures of diagnostics share: the result to show, one curve per cell, and stacked panels."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from waterjar.diagnose.registry import ARROWS, families, find_metric
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.run.reader import Run
from waterjar.run.study import Study
from waterjar.view.curves import band_note, draw_mean, mark_tasks
from waterjar.view.style import line_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def result_of(source: Run | Study | xr.Dataset, family: str, settings: Mapping[str, Any]) -> xr.Dataset:
    """The result of a family: measured now (of a study through its cache), or given as it is."""
    if isinstance(source, Run):
        return families()[family].measure(source, **settings)
    if isinstance(source, Study):
        return diagnose(source, only=[family], settings={family: settings}).results[family]
    if isinstance(source, xr.Dataset) and source.attrs.get("family") == family:
        if settings:
            raise WaterjarError(f"{', '.join(settings)}: a result is shown as it was measured; measure it with them")
        return source
    raise WaterjarError(f"a run, a study or a result of {family}.measure is shown, not {_what(source)}")


def _what(source: object) -> str:
    if isinstance(source, xr.Dataset):
        return f"a result of {source.attrs.get('family', 'something else')}"
    return type(source).__name__


def roots_in(result: xr.Dataset) -> list[str | None]:
    """The root hashes of the runs that a result was made from."""
    return list(json.loads(result.attrs.get("root_hashes", "{}")).values())


def by_cell(result: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """(name, result over (repeat, ...)) of every cell; of one run, one with an empty name."""
    if "cell" not in result.dims:
        yield "", result
        return
    alone = result.sizes["cell"] == 1
    for i, name in enumerate(result["name"].values):
        one = result.isel(cell=i)
        yield "" if alone else str(name), one.rename(seed="repeat").assign_coords(seed=("repeat", one["seed"].values))


def curve_of(one: xr.Dataset, name: str, over: str) -> tuple[Any, Any, list[str]]:
    """(x, values (repeat, x), tasks) of a variable over snapshots, without seeds and snapshots that the cell lacks."""
    values = one[name].transpose("repeat", "snapshot").values
    x = one[over].values.astype(float)
    there = ~np.isnan(x)
    values, x = values[:, there], x[there]
    return x, values[~np.isnan(values).all(axis=1)], [str(task) for task in one["train_task"].values[there]]


def stack(
    result: xr.Dataset,
    names: Sequence[str],
    figure: Figure,
    *,
    layer: str | None,
    over: str,
    band: str,
) -> list[Axes]:
    """One panel per metric, below each other: mean and band over repeats, a line per cell, tasks parted."""
    panels = list(figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0])
    cells = {name: pick_layer(one, layer) for name, one in by_cell(result)}
    styles = line_styles(list(cells))
    parted = max(cells, key=lambda name: len(set(curve_of(cells[name], names[0], over)[2])))  # the one with most tasks
    repeats: set[int] = set()
    for row, (ax, metric) in enumerate(zip(panels, names, strict=True)):
        shown = 0
        for cell, one in cells.items():
            x, values, tasks = curve_of(one, metric, over)
            if len(values):
                draw_mean(ax, x, values, styles[cell], label=cell, band=band)
                repeats.add(len(values))
                shown += 1
            if cell == parted:
                mark_tasks(ax, x, tasks, names=row == 0)
        declared = find_metric(metric)
        units = "" if declared.units == "1" else f" ({declared.units})"
        ax.set_ylabel(
            "\n".join(textwrap.wrap(metric.replace("_", " "), 14)) + f"{units} {ARROWS[declared.direction]}".rstrip()
        )
        if not shown:
            ax.text(0.5, 0.5, "not recorded", transform=ax.transAxes, ha="center", va="center", color="#777777")
    panels[-1].set_xlabel(over.replace("_", " "))
    note = band_note(repeats, band)
    handles, labels = panels[0].get_legend_handles_labels()
    if labels or note:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, max(1, len(labels))), title=note)
    return panels


def pick_layer(one: xr.Dataset, layer: str | None) -> xr.Dataset:
    """One layer: the one named, or the last one."""
    if "layer" not in one.dims:
        return one
    from waterjar.errors import unknown_name  # noqa: PLC0415

    known = [str(name) for name in one["layer"].values]
    if not known:
        return one.isel(layer=[]).mean("layer", keep_attrs=True)
    if layer is not None and layer not in known:
        raise unknown_name("layer", layer, known)
    return one.sel(layer=layer or known[-1])
