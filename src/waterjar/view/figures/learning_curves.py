"""Learning curves: a variable over epochs, one line per evaluation set (or cell), a band over repeats."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.over_seeds import mean_table, recorded_range
from waterjar.diagnose.training_order import is_visit_of, visit_names_of
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.schema import REASON
from waterjar.run.study import Study
from waterjar.view.curves import (
    FEW_TASKS,
    TaskMarks,
    band_note,
    boundary_entry,
    draw_curve,
    mark_tasks,
    say,
    task_marks,
)
from waterjar.view.figures._heatmap import panel_grid
from waterjar.view.results import Source, cell_order, level_of, roots_in, study_of
from waterjar.view.style import (
    COLOURS,
    axes,
    axis_end,
    canvas,
    figure_of,
    house_style,
    labels,
    legend_outside,
    line_styles,
    stamp,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Learning curves"
CAPTION = (
    "What was evaluated during training, over epochs: a line is the mean over repeats, the band their range. Red "
    "dashed lines mark where a task ends and the next begins; a learner that trains one task alone, or all at once, "
    "counts its epochs from its own start, and the legend says whose the lines are."
)
NEEDS = ()
Styles = Mapping[str, Mapping[str, Any]]


def data(
    source: Source,
    *,
    variable: str | None = None,
    group: str | None = None,
    eval_sets: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    over: str = "total_epoch",
    band: str = "range",
    confidence: float | None = None,
) -> pd.DataFrame:
    """One row per cell, evaluation set and step: cell, eval_set, step, train_task, `over`, mean, low, high, n, reason,
    interval.

    `variable` is by default accuracy, or what tells most of what was recorded, `group` what was evaluated, else
    monitored, else trained. `tasks` keeps only steps in which one
    of them was trained. A task that is trained again is a `train_task` for every visit: "x (2nd time)". Intervals are
    at the level `confidence`, by default that of the declared tests.
    """
    level = level_of(source) if confidence is None else confidence
    study = study_of(source, "learning_curves shows what was recorded")
    group = group or next((one for one in _GROUPS if _has(study, one)), _GROUPS[0])
    loaded = study.load(group)
    variable = variable or _usual(loaded)
    parts = [
        _of_cell(cell, dataset, variable, group, eval_sets, tasks, over, band, level)
        for cell, dataset in loaded.items()
    ]
    table = pd.concat(parts, ignore_index=True)
    told = next(iter(loaded.values()))[variable].attrs
    about = {key: told.get(key, usual) for key, usual in (("units", "1"), ("direction", "none"))}
    table.attrs = {**about, "variable": variable, "group": group, "confidence": level}
    return table


def _has(study: Study, group: str) -> bool:
    return any(group in study.open(entry).nodes for entry in study.entries)


_GROUPS = ("performance", "monitor", "train")
_USUAL = ("accuracy", "macro_accuracy", "loss")


def _usual(loaded: Mapping[str, xr.Dataset]) -> str:
    """What is shown where nobody names a variable: accuracy, else loss, else the first that is over steps."""
    recorded = [str(name) for one in loaded.values() for name, array in one.data_vars.items() if "step" in array.dims]
    able = [name for name in recorded if not name.endswith(REASON)]
    return next((name for name in (*_USUAL, *able) if name in able), _USUAL[0])


def _of_cell(
    cell: str,
    dataset: xr.Dataset,
    variable: str,
    group: str,
    eval_sets: Sequence[str] | None,
    tasks: Sequence[str] | None,
    over: str,
    band: str,
    confidence: float,
) -> pd.DataFrame:
    if variable not in dataset:
        raise unknown_name(f"{group}: variable", variable, [str(name) for name in dataset.data_vars])
    numbers = [str(n) for n, c in dataset.coords.items() if c.dims == ("step",) and c.dtype.kind in "iuf"]
    if over not in numbers:
        raise unknown_name("over", over, numbers)
    extra = [str(dim) for dim in dataset[variable].dims if dim not in ("step", "eval_set", "repeat")]
    if extra:
        raise WaterjarError(f"{variable} is per {', '.join(extra)}: learning curves have no place for it")
    dataset = dataset.assign_coords(visit_name=("step", np.array(visit_names_of(dataset), object)))
    if tasks is not None:
        dataset = _only(dataset, tasks)
    parts = []
    for name in _chosen(dataset, eval_sets):
        found = [array.sel(eval_set=name) if name else array for array in _with_reasons(dataset, variable)]
        values, codes = (array.expand_dims("repeat") if "repeat" not in array.dims else array for array in found)
        about = {
            "cell": cell,
            "eval_set": name,
            "step": dataset["step"].values,
            "train_task": dataset["visit_name"].values.astype(str),
            over: dataset[over].values,
        }
        flat = [array.transpose("repeat", "step").values for array in (values, codes)]
        within = recorded_range(variable)
        means = mean_table(flat[0], flat[1], band=band, within=within, confidence=confidence)
        parts.append(pd.DataFrame(about).join(means))
    return pd.concat(parts, ignore_index=True)


def _with_reasons(dataset: xr.Dataset, variable: str) -> tuple[xr.DataArray, xr.DataArray]:
    return dataset[variable].astype(float), reasons_of(dataset, variable)


def learning_curves(
    source: Source,
    *,
    variable: str | None = None,
    group: str | None = None,
    eval_sets: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    over: str = "total_epoch",
    band: str = "range",
    confidence: float | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw `variable` over `over`; the line is the mean over repeats, the band their range (or interval, std).

    The variable is by default accuracy, or what tells most of what was recorded. Of a study with several evaluation
    sets, each set has a panel and each cell a line in it, and so it is of one cell with more sets than there are
    colours; in an `ax` of yours everything is in one. Tasks are parted by dashed lines; `tasks` shows only steps in
    which one of them was trained.
    """
    with house_style():
        chosen = {"eval_sets": eval_sets, "tasks": tasks}
        table = data(source, variable=variable, group=group, over=over, band=band, confidence=confidence, **chosen)
        what = ("training " if table.attrs["group"] == "train" else "") + table.attrs["variable"].replace("_", " ")
        label = what + axis_end(table.attrs["units"], table.attrs["direction"])
        note = band_note(set(table.loc[table["mean"].notna(), "n"]), band, table["interval"], table.attrs["confidence"])
        sets = list(dict.fromkeys(table["eval_set"]))
        first = table[table["eval_set"].isin(sets[:1])]
        tasks_of = task_marks({str(cell): part for cell, part in first.groupby("cell", sort=False)}, over)
        note = "\n".join(text for text in (note, tasks_of.note) if text) or None
        of_cell = line_styles(cell_order(source, table["cell"]))
        if ax is None and len(sets) > (1 if table["cell"].nunique() > 1 else len(COLOURS)):
            return stamp(_panels(table, sets, over, label, note, tasks_of, of_cell), roots_in(source))
        ax = axes(ax)
        several_cells, several_sets = (table[column].nunique() > 1 for column in ("cell", "eval_set"))
        lines: dict[str, pd.DataFrame] = {}
        for (cell, eval_set), part in table.groupby(["cell", "eval_set"], sort=False):
            parts = [str(cell)] * several_cells + [eval_set] * (several_sets or not several_cells)
            lines[" · ".join(name for name in parts if name)] = part
        styles = line_styles(list(lines)) if several_sets or not several_cells else of_cell
        _lines(ax, lines, over, tasks_of, styles)
        ax.set_xlabel(over.replace("_", " "))
        ax.set_ylabel(label)
        if len(lines) > 1 or next(iter(lines)) or note:
            handles, names = ax.get_legend_handles_labels()
            entries = dict(zip(names, handles, strict=True))
            entries |= {"\n".join(textwrap.wrap(text, 32)): line for text, line in boundary_entry(tasks_of).items()}
            ax.legend(
                list(entries.values()), list(entries), loc="upper left", bbox_to_anchor=(1.01, 1.0),
                borderaxespad=0.0, title=note and note.replace("; ", "\n"), alignment="left",
            )  # fmt: skip
        return stamp(figure_of(ax), roots_in(source))


def _panels(
    table: pd.DataFrame, sets: list[str], over: str, label: str, note: str | None, tasks: TaskMarks, styles: Styles
) -> Figure:
    rows, columns, size = panel_grid(len(sets), 2.9, 2.1)
    figure = canvas(None, (size[0], size[1] + 0.8))
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    titles = labels(sets, most=40, width=30)
    few = len(tasks.starts) <= FEW_TASKS
    own = False
    for ax, eval_set in zip(panels, sets, strict=False):
        of_set = table[table["eval_set"] == eval_set]
        lines = {str(cell): part for cell, part in of_set.groupby("cell", sort=False)}
        _lines(ax, lines, over, tasks, styles, bare=True, names=few)
        own |= _shade_own(ax, tasks, eval_set, float(table[over].max()))
        ax.set_title(titles[eval_set], pad=14 if few else 4, fontsize=9)
    for ax in panels[len(sets) :]:
        ax.set_visible(False)
    for i, ax in enumerate(panels[: len(sets)]):
        if i + columns >= len(sets):
            ax.set_xlabel(over.replace("_", " "))
            ax.tick_params(labelbottom=True)
        if i % columns == 0:
            ax.set_ylabel(label)
    handles, names = panels[0].get_legend_handles_labels()
    note = "\n".join(text for text in (note, "shaded: while it is trained itself" if own else "") if text) or None
    legend_outside(figure, {**dict(zip(names, handles, strict=True)), **boundary_entry(tasks)}, note)
    return figure


def _shade_own(ax: Axes, tasks: TaskMarks, eval_set: str, end: float) -> bool:
    """Shade the stretches in which the task of an evaluation set's name is trained, if all cells share them."""
    found = False
    for place, (begin, name) in enumerate(tasks.starts):
        if is_visit_of(name, eval_set) and not tasks.whose and len(tasks.starts) > 1:
            until = tasks.starts[place + 1][0] if place + 1 < len(tasks.starts) else end
            ax.axvspan(begin, until, color="#f0e442", alpha=0.28, linewidth=0, zorder=0, gid="own")
            found = True
    return found


def _lines(
    ax: Axes,
    lines: dict[str, pd.DataFrame],
    over: str,
    tasks: TaskMarks,
    styles: Styles,
    *,
    bare: bool = False,
    names: bool = True,
) -> None:
    """The lines of one panel; `bare` where the legend is one below all panels."""
    shown_as = labels(lines, most=44, width=None if bare else 30)
    for name, part in lines.items():
        draw_curve(ax, part[over].to_numpy(float), part, styles[name], shown_as[name])
    mark_tasks(ax, tasks, names=names)
    shown = pd.concat(list(lines.values()))
    if not shown["mean"].notna().any():
        why = list(dict.fromkeys(shown.loc[shown["reason"] != "", "reason"]))
        say(ax, f"no value: {'; '.join(why[:3])}" if why else "no step was recorded")


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
        raise WaterjarError(f"eval_sets is empty: expected some of {present}")
    for name in eval_sets or ():
        if name not in present:
            raise unknown_name("eval_set", name, present)
    return present if eval_sets is None else list(eval_sets)
