"""Charts as figures for paper: drawn by `waterjar.view.figures`, from the numbers that the page shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from waterjar.errors import WaterjarError
from waterjar.view import figures
from waterjar.view.report.blocks import Chart, Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(report: Report, chart: Chart) -> Figure | None:
    """The matplotlib figure of a chart; None where there is none for it."""
    if report.source is None or not chart.figure:
        return None
    return figures.draw(chart.figure, report.source, **chart.settings)


def caption_of(chart: Chart) -> str:
    """How to read the figure, which differs from the page's chart in colours and hatches."""
    return figures.describe(chart.figure).caption if chart.figure else chart.caption


def save_pictures(report: Report, folder: Path, suffix: str) -> dict[str, str]:
    """Write every chart into a folder; name of the chart -> name of its file."""
    made = {}
    for chart in report.shown:
        drawn = draw(report, chart) if isinstance(chart, Chart) else None
        if drawn is not None:
            figures.save(drawn, folder / f"{chart.name}{suffix}")
            made[chart.name] = f"{chart.name}{suffix}"
    return made


def folder_beside(path: Path) -> Path:
    """Where the pictures of a file stand: `report.md` -> `report_figures`."""
    folder = path.with_name(f"{path.stem}_figures")
    if folder.exists() and not folder.is_dir():
        raise WaterjarError(f"{folder} is in the way: the pictures of {path.name} go into a folder of that name")
    return folder
