"""A Jupyter notebook that opens a study and draws its figures anew: for who wants to go on from a report.

write_notebook(report, study.path, "report.ipynb")
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from waterjar._version import __version__
from waterjar.errors import WaterjarError
from waterjar.run.disk import write_file
from waterjar.run.shown import json_text
from waterjar.view.report.blocks import Chart, Report

_OPEN = """from pathlib import Path

import waterjar
from waterjar.diagnose.study import diagnose
from waterjar.view import figures
from waterjar.view.style import save

STUDY = Path({path!r})  # relative to this notebook; change it if the study has moved
study = waterjar.open_study(STUDY).select("status != damaged")
{where}found = diagnose(study, {how})  # cached: only what has changed is measured again
study"""
_VERDICT = """for name, sentence in found.sentences().items():
    print(f"{name}: {sentence}\\n")"""
_TABLE = """found.table().groupby(["family", "metric", "cell"], sort=False)["value"].agg(["mean", "std", "count"])"""
_FREE = """# every number, one row per metric, cell and seed
found.table()"""


def notebook(
    report: Report, study: str, *, settings: dict[str, dict[str, Any]] | None = None, where: str = ""
) -> dict[str, Any]:
    """The notebook as plain data (nbformat 4.5); `study` is the path that it opens."""
    picked = f"study = study.select({where!r})\n" if where else ""
    baseline = None if report.source is None else report.source.analysis.baseline_name
    how = f"settings={settings or {}!r}" + (f", baseline={baseline!r}" if baseline else "")
    opening = _OPEN.format(path=study, where=picked, how=how)
    cells = [
        _markdown(f"# {_flat(report.title, 200)}\n\n{_flat(report.lead, 2000)}\n\n{_flat(report.status.text, 500)}"),
        _code("%matplotlib inline"),
        _code(opening),
    ]
    if report.source is not None and report.source.results:
        if report.source.sentences():
            cells += [_markdown("## Verdicts"), _code(_VERDICT)]
        for chart in report.shown:
            if isinstance(chart, Chart) and chart.figure:
                given = "".join(f", {key}={value!r}" for key, value in chart.settings.items())
                cells.append(_markdown(f"## {_flat(chart.title, 200)}\n\n{_flat(chart.caption, 1000)}"))
                cells.append(_code(f"figures.draw({chart.figure!r}, found{given})"))
        cells += [_markdown("## Numbers"), _code(_TABLE), _code(_FREE)]
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i:02d}"
    about = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "waterjar": {"version": __version__, "roots": list(report.roots)},
    }
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def write_notebook(
    report: Report,
    study: Path,
    path: Path,
    *,
    settings: dict[str, dict[str, Any]] | None = None,
    where: str = "",
) -> Path:
    """Write the notebook; it names the study by the way from its own folder."""
    if path.suffix != ".ipynb":
        raise WaterjarError(f"{path}: the name of a notebook ends in .ipynb")
    try:
        way = Path(os.path.relpath(study.resolve(), path.parent.resolve())).as_posix()
    except ValueError:  # on another drive there is no way
        way = study.resolve().as_posix()
    made = notebook(report, way, settings=settings, where=where)
    return write_file(path, json_text(made, indent=1) + "\n")


def _flat(text: str, most: int) -> str:
    """Text that Markdown in a notebook shows as it is."""
    from waterjar.view.report.renderers.markdown import escape  # noqa: PLC0415 - one way to escape it

    return escape(text, most)


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _code(text: str) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text}
