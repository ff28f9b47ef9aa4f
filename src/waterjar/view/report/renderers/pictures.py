"""Charts as figures for paper: drawn by `waterjar.view.figures`, from the numbers that the page shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from waterjar.errors import WaterjarError
from waterjar.run.disk import write_files
from waterjar.view import figures
from waterjar.view.report.blocks import Chart, Report
from waterjar.view.report.charts.theme import as_drawn
from waterjar.view.style import picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(report: Report, chart: Chart) -> Figure | None:
    """The matplotlib figure of a chart; None where there is none for it."""
    if report.source is None or not chart.figure:
        return None
    return figures.draw(chart.figure, report.source, **chart.settings)


def caption_of(chart: Chart) -> str:
    """How to read the figure, which differs from the page's chart in colours and hatches."""
    return as_drawn(figures.describe(chart.figure).caption, chart.panels) if chart.figure else chart.caption


def write_with_pictures(
    report: Report, path: Path, suffix: str, render: Callable[[Report, Mapping[str, str]], str]
) -> None:
    """Write what `render` makes of a report and the places of its pictures, and these into a folder beside it.

    All or nothing: an old text with new pictures would show what it does not say.
    """
    folder = folder_beside(path)
    drawn = {chart.name: draw(report, chart) for chart in report.shown if isinstance(chart, Chart)}
    pictures = {f"{name}{suffix}": picture(figure, suffix) for name, figure in drawn.items() if figure is not None}
    places = {name: f"{folder.name}/{name}{suffix}" for name, figure in drawn.items() if figure is not None}
    write_files({**{folder / name: data for name, data in pictures.items()}, path: render(report, places)})


def folder_beside(path: Path) -> Path:
    """Where the pictures of a file stand: `report.md` -> `report_figures`."""
    folder = path.with_name(f"{path.stem}_figures")
    if folder.exists() and not folder.is_dir():
        raise WaterjarError(f"{folder} is in the way: the pictures of {path.name} go into a folder of that name")
    return folder
