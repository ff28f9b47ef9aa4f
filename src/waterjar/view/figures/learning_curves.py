"""Learning curves: a variable over epochs, one line per evaluation set (or cell), a band over repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.reader import Run
from waterjar.run.study import Study
from waterjar.view.curves import band_note, draw_mean, mark_tasks
from waterjar.view.style import axes, figure_of, house_style, line_styles, stamp

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ARROWS = {"higher": " ↑", "lower": " ↓", "none": ""}


def learning_curves(
    source: Run | Study,
    *,
    variable: str = "accuracy",
    group: str = "performance",
    eval_sets: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    over: str = "total_epoch",
    band: str = "range",
    ax: Axes | None = None,
) -> Figure:
    """Draw `variable` over `over`; the line is the mean over repeats, the band their range (or interval, std).

    Of a study, each cell gets its lines. Tasks are parted by dashed lines; `tasks` shows only steps in which
    one of them was trained. Missing values leave a gap.
    """
    curves, roots = _curves(source, group)
    if tasks is not None:
        curves = {label: _only(data, tasks) for label, data in curves.items()}
    with house_style():
        ax = axes(ax)
        lines: dict[str, Any] = {}
        for label, data in curves.items():
            if variable not in data:
                raise unknown_name(f"{group}: variable", variable, [str(name) for name in data.data_vars])
            if over not in data.coords:
                raise unknown_name("over", over, [str(n) for n, c in data.coords.items() if c.dims == ("step",)])
            extra = [str(dim) for dim in data[variable].dims if dim not in ("step", "eval_set", "repeat")]
            if extra:
                raise WaterjarError(f"{variable} is per {', '.join(extra)}: learning curves have no place for it")
            chosen = _chosen(data, eval_sets)
            for name in chosen:
                parts = (label,) if label and len(chosen) == 1 else (label, name)
                key = " · ".join(part for part in parts if part)
                lines[key] = data[variable].sel(eval_set=name) if name else data[variable]
        styles = line_styles(list(lines))
        for name, curve in lines.items():
            rest = [dim for dim in curve.dims if dim != "step"]
            values = curve.transpose(*rest, "step").values.reshape(-1, curve.sizes["step"])
            draw_mean(ax, curve[over].values, values, styles[name], label=name, band=band)
        example = next(iter(curves.values()))
        mark_tasks(ax, example[over].values, list(example["train_task"].values))
        attributes = example[variable].attrs
        ax.set_xlabel(over.replace("_", " "))
        unit = attributes.get("units", "1")
        unit_text = "" if unit == "1" else f" ({unit})"
        ax.set_ylabel(variable.replace("_", " ") + unit_text + _ARROWS[attributes.get("direction", "none")])
        repeats = {len(curve["seed"]) for curve in lines.values() if "repeat" in curve.dims}
        note = band_note(repeats, band)
        if len(lines) > 1 or next(iter(lines)) or note:
            ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, title=note, alignment="left")
        return stamp(figure_of(ax), roots)


def _curves(source: Run | Study, group: str) -> tuple[dict[str, xr.Dataset], list[str | None]]:
    if isinstance(source, Run):
        return {"": source.load(group)}, [source.root_hash]
    if isinstance(source, Study):
        loaded = source.load(group)
        names = source.cell_names if len(source.cells) > 1 else dict.fromkeys(source.cells, "")
        return {names[cell]: data for cell, data in loaded.items()}, [run.root_hash for run in source]
    raise WaterjarError(f"learning_curves shows a run or a study, not {type(source).__name__}: open it first")


def _only(data: xr.Dataset, tasks: Sequence[str]) -> xr.Dataset:
    kept = data.isel(step=np.isin(data["train_task"].values.astype(str), list(tasks)))
    if not kept.sizes["step"]:
        raise unknown_name("train_task", ", ".join(tasks), dict.fromkeys(data["train_task"].values))
    return kept


def _chosen(data: xr.Dataset, eval_sets: Sequence[str] | None) -> list[str]:
    if "eval_set" not in data.dims:
        return [""]
    present = [str(name) for name in data["eval_set"].values]
    if eval_sets is not None and not eval_sets:
        raise WaterjarError(f"eval_sets is empty: some of {present} would be right")
    for name in eval_sets or ():
        if name not in present:
            raise unknown_name("eval_set", name, present)
    return present if eval_sets is None else list(eval_sets)
