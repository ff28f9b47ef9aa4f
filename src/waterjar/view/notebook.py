"""A Jupyter notebook that opens a study and draws its figures anew: for who wants to go on from a report.

write_notebook(report, study.path, "report.ipynb")
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from waterjar._version import __version__
from waterjar.diagnose.study import Diagnosis
from waterjar.errors import WaterjarError
from waterjar.run.cells import flat
from waterjar.run.disk import write_file
from waterjar.run.identity import SEED_KEYS
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
_SENSITIVITY = """from waterjar.diagnose.sensitivity import sensitivity

# over a setting of the measure, at values of your choice; or over one of the runs, by its name in their config: "lr"
means, trends, _ = sensitivity(study, {metric!r}, {over!r}{values})
means"""
_OWN = """import matplotlib.pyplot as plt

from waterjar.view.style import labels

rows = found.table([{metric!r}])  # one row per cell and seed: any plotting library takes it from here
shown = labels(rows["cell"])
figure, ax = plt.subplots(figsize=(6, 3))
for place, (name, part) in enumerate(rows.groupby("cell", sort=False)):
    ax.plot([place] * len(part), part["value"], "o", label=shown[name])
ax.set_xticks([])
ax.set_ylabel({metric!r})
ax.legend()
plt.show()"""
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
        cells += _further(report.source)
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i:02d}"
    about = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "waterjar": {"version": __version__, "roots": list(report.roots)},
    }
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


_SETTINGS = (
    ("ad_restricted", "threshold", (0.5, 0.6, 0.7)),
    ("dormant_units", "tau", (0.0, 0.05, 0.1, 0.2)),
    ("stable_rank", "energy", (0.9, 0.95, 0.99)),
    ("forgetting", "forgetting_reference", ("max", "learned")),
    ("average_accuracy", "integrator", ("final", "mean", "max")),
)
"""Metrics with a setting that somebody chose, and might have chosen otherwise."""


def _further(source: Diagnosis) -> list[dict[str, Any]]:
    """What one goes on with: how a number depends on a setting, and a figure of one's own."""
    known = source.table()
    able = set(known.loc[known["value"].notna(), "metric"])
    made = []
    metric, over, values = _varied(source, able)
    if metric:
        about = "How far a number depends on a setting that could have been another one."
        own = _SENSITIVITY.format(metric=metric, over=over, values=f", values={list(values)!r}" if values else "")
        made += [_markdown(f"## Sensitivity\n\n{about}"), _code(own)]
    main = next((name for name in source.main_metrics() if name in able), next(iter(sorted(able)), ""))
    if main:
        made += [_markdown("## A figure of your own"), _code(_OWN.format(metric=main))]
    return made


def _varied(source: Diagnosis, able: set[str]) -> tuple[str, str, tuple[Any, ...]]:
    """(metric, setting, values): one in which the runs differ, if there is such a number, else one of a measure."""
    configs = [flat(entries[0].config) for entries in source.study.cells.values()]
    own = [key for key in (configs[0] if configs else ()) if key not in SEED_KEYS and _differs(key, configs)]
    main = next((name for name in source.main_metrics() if name in able), "")
    if own and main:
        return main, own[0], ()
    return next((one for one in _SETTINGS if one[0] in able), ("", "", ()))


def _differs(key: str, configs: list[dict[str, Any]]) -> bool:
    """Whether a key holds different numbers in cells."""
    values = [config.get(key) for config in configs]
    numbers = {value for value in values if isinstance(value, int | float) and not isinstance(value, bool)}
    return len(numbers) > 1 and not any(isinstance(value, str | list | dict) for value in values)


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
