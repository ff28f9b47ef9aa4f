"""Panels below each other, one per metric, over training: what the plasticity and geometry stacks share."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pandas as pd

from waterjar.diagnose.over_seeds import CONFIDENCE
from waterjar.diagnose.registry import find_metric
from waterjar.view.curves import (
    CUT,
    band_note,
    boundary_entry,
    draw_curve,
    mark_tasks,
    panel_limits,
    say,
    stops,
    task_marks,
)
from waterjar.view.results import Source, dataset_name
from waterjar.view.short_names import short
from waterjar.view.style import axis_end, drawn, labels, legend_outside, line_styles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_SAID = 4
"""Cells without a line that are named below a figure; the table behind it has all."""


def draw_stack(
    figure: Figure, table: pd.DataFrame, metrics: Sequence[str], order: Sequence[str], *, over: str, band: str,
    also: Callable[[Axes], None] = lambda ax: None,
) -> list[Axes]:  # fmt: skip
    """One panel per metric of a table as `results.snapshot_table` gives it: a line and a band per cell.

    `order` are all cells of the study, by which they have their colours. `also` draws more into the first panel.
    """
    panels = list(figure.subplots(len(metrics), 1, sharex=True, squeeze=False)[:, 0])
    cells = list(dict.fromkeys(table["cell"]))
    styles = line_styles(order)
    shown_as = labels(cells)
    first = table[table["metric"] == metrics[0]]
    tasks = task_marks({str(cell): part for cell, part in first.groupby("cell", sort=False)}, over)
    cut = False
    for row, (ax, metric) in enumerate(zip(panels, metrics, strict=True)):
        of_metric = table[table["metric"] == metric]
        for cell in cells:
            part = of_metric[of_metric["cell"] == cell]
            x = part[over].to_numpy(float)
            if part["mean"].notna().any():
                draw_curve(ax, x, part, styles[cell], shown_as[cell])
        limits = panel_limits(of_metric)
        if limits is not None:
            ax.set_ylim(*limits)
            cut = True
        mark_tasks(ax, tasks, names=row == 0)
        ax.set_ylabel(axis_label(metric))
        if not of_metric["mean"].notna().any():
            why = list(dict.fromkeys(of_metric.loc[of_metric["reason"] != "", "reason"]))
            say(ax, "; ".join(why[:3]) or "no snapshot")
            ax.set_yticks([])
    panels[-1].set_xlabel(over.replace("_", " "))
    note = band_note(
        set(table.loc[table["mean"].notna(), "n"]),
        band,
        table["interval"].fillna(""),
        table.attrs.get("confidence", CONFIDENCE),
    )
    also(panels[0])
    handles = {label: handle for ax in panels for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if len(cells) > 1:
        named = {**handles, **boundary_entry(tasks)}
    else:
        named = {label: handle for label, handle in handles.items() if label not in shown_as.values()}
    ended = stops(table.assign(cell=table["cell"].map(shown_as)), over)
    said = [*(textwrap.fill(line, 90) for line in ended), CUT if cut else ""]
    note = "\n".join(text for text in (note, tasks.note, _absent(table, shown_as), *said) if text)
    if named or note:
        legend_outside(figure, named, note or None)
    return panels


def _absent(table: pd.DataFrame, shown_as: Mapping[str, str]) -> str:
    """Which cells have no line in panels that show others, and why; empty where none is absent."""
    there = table.assign(there=table["mean"].notna()).groupby(["metric", "cell"], sort=False)["there"].any().unstack()
    said = []
    for cell in there.columns[(there.eq(False) & there.any(axis=1).to_numpy()[:, None]).any()]:
        gone = [metric for metric in there.index if not there.loc[metric, cell] and there.loc[metric].any()]
        part = table[(table["cell"] == cell) & table["metric"].isin(gone)]
        why = list(dict.fromkeys(part.loc[part["reason"] != "", "reason"]))
        said.append(
            f"{shown_as[cell]} has no {', '.join(gone).replace('_', ' ')}: {'; '.join(why[:2]) or 'no snapshot'}"
        )
    return "\n".join(textwrap.fill(line, 90) for line in said[:_MOST_SAID])


def axis_label(metric: str, width: int = 14) -> str:
    """A metric's name with its unit and the arrow that says which way is better, in short lines."""
    declared = find_metric(metric)
    return "\n".join(textwrap.wrap(metric.replace("_", " "), width)) + axis_end(declared.units, declared.direction)


def title_with_dataset(title: str, source: Source, dataset: str | None) -> str:
    """The title, and after it the data set: as told, else what all runs name in their settings."""
    name = dataset_name(source) if dataset is None else dataset
    return " - ".join(part for part in (title, drawn(short([name], 40)[name])) if part)
