"""What the analysis of a study leaves in its folder: figures, the report, and its numbers in other formats.

figures/{data set}/{algorithm}/*.png   every algorithm's own (see `album`), and figures/*.png of the lead family
report.html                            the report; report.md and report.tex if they are asked for
exports/                               values.csv, comparison.csv, diagnosis.json
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from waterjar.diagnose.analysis import Analysis
from waterjar.diagnose.compare import compare_cells
from waterjar.diagnose.registry import families
from waterjar.diagnose.study import Diagnosis
from waterjar.errors import UnwrittenError, WaterjarError, unknown_name
from waterjar.run.disk import write_file
from waterjar.run.shown import json_text
from waterjar.view import figures
from waterjar.view.album import COMPARISON, DRAWN, FIGURES, Progress, album, drawn_formats, not_measured
from waterjar.view.report.composing import compose
from waterjar.view.report.formats import FORMATS as REPORTS
from waterjar.view.report.formats import write
from waterjar.view.report.model import model_of
from waterjar.view.report.tables import csv_text
from waterjar.view.style import house_style

EXPORTS = "exports"
_WRITTEN = ("csv", "json", "html", "markdown", "latex")
Made = dict[str, "Path | str"]
"""What was to be made -> where it is, or why there is none."""


def check_outputs(analysis: Analysis) -> None:
    """Refuse names of figures and formats that there are not, before anything is trained or measured."""
    for name in analysis.figures if isinstance(analysis.figures, tuple) else ():
        figures.SHELF.check(name, "analysis.figures")
        figures.SHELF.module(name)  # one from outside may be broken
    for form in analysis.export_formats:
        if form not in (*DRAWN, *_WRITTEN):
            raise unknown_name("analysis.export_formats", form, (*DRAWN, *_WRITTEN))


def write_outputs(diagnosis: Diagnosis, folder: Path, *, progress: Progress | None = None) -> Made:
    """Draw and write what the analysis of a study asks for; what cannot be made costs nothing else.

    A file that cannot be written is an error: the next one could not be, either.
    """
    analysis = diagnosis.analysis
    kinds = drawn_formats(analysis)
    found: Made = {}
    if analysis.figures:
        try:
            with house_style():  # without matplotlib none can be drawn: say so once
                pass
            found |= _figures(diagnosis, folder, kinds, progress)
        except UnwrittenError:
            raise
        except WaterjarError as error:
            found[FIGURES] = str(error)
    found |= _reports(diagnosis, folder)
    if "csv" in analysis.export_formats:
        found |= _tables(diagnosis, folder)
    if "json" in analysis.export_formats:
        found |= _kept("diagnosis.json", lambda: json_text(diagnosis.plain(), indent=1), folder)
    return found


def earlier_files(folder: Path, made: Made) -> list[str]:
    """Figures, reports and exports in a study's folder that were not `made` now: of an earlier analysis, or by hand."""
    now = {file for file in made.values() if isinstance(file, Path)}
    there = [*folder.glob("report.*"), *(folder / EXPORTS).glob("*"), *(folder / FIGURES).rglob("*.*")]
    mine = {*REPORTS.values(), *(f".{form}" for form in (*DRAWN, "csv", "json"))}
    others = [file for file in there if file not in now and file.suffix in mine and COMPARISON not in file.parts]
    return sorted(str(file.relative_to(folder)) for file in others)


def _figures(diagnosis: Diagnosis, folder: Path, kinds: tuple[str, ...], progress: Progress | None) -> Made:
    """The figures that were named, of the whole study; else those of the lead, and every algorithm's own."""
    wanted, found = diagnosis.analysis.figures, {}
    named = list(wanted) if isinstance(wanted, tuple) else _of_lead(diagnosis)
    for name in named:
        for kind in kinds:
            target = folder / FIGURES / f"{name}.{kind}"
            found[target.name] = _made(functools.partial(_draw, name, diagnosis, target))
    if isinstance(wanted, tuple):
        return found
    absent = {not_measured(family) for family in families() if family not in diagnosis.results}
    drawn = album(diagnosis, folder, kinds=kinds, progress=progress)
    return found | {name: made for name, made in drawn.items() if made not in absent}


def _of_lead(diagnosis: Diagnosis) -> list[str]:
    lead = diagnosis.analysis.lead
    if lead is None or lead not in diagnosis.results or len(diagnosis.study.cells) < 2:
        return []
    return [about.name for about in figures.described()[0] if lead in about.needs]


def _draw(name: str, diagnosis: Diagnosis, target: Path) -> Path:
    return figures.save(figures.draw(name, diagnosis), target)


def _reports(diagnosis: Diagnosis, folder: Path) -> Made:
    """The report as HTML, and in the other formats that were asked for."""
    forms = ["html", *(form for form in ("markdown", "latex") if form in diagnosis.analysis.export_formats)]
    files = {form: folder / f"report{REPORTS[form]}" for form in forms}
    try:
        made = compose(model_of(diagnosis.study, measure=lambda *args, **given: diagnosis))
    except WaterjarError as error:  # the numbers are written all the same
        return {file.name: str(error) for file in files.values()}
    return {file.name: _made(functools.partial(write, made, file, form)) for form, file in files.items()}


def _tables(diagnosis: Diagnosis, folder: Path) -> Made:
    """Every number, a row per metric, cell and seed; and cells against their baseline, if that is tested."""
    found = _kept("values.csv", lambda: csv_text(diagnosis.table()), folder)
    if diagnosis.analysis.tests and len(diagnosis.study.cells) > 1:
        found |= _kept("comparison.csv", lambda: csv_text(compare_cells(diagnosis)), folder)
    return found


def _kept(name: str, text: Callable[[], str], folder: Path) -> Made:
    def write_text() -> Path:
        return write_file(folder / EXPORTS / name, text())

    return {name: _made(write_text)}


def _made(make: Callable[[], Path]) -> Path | str:
    try:
        return make()
    except UnwrittenError:
        raise
    except WaterjarError as error:  # it says why there is none
        return str(error)
