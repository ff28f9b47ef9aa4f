"""A disk that is full when a report is written leaves the report that was there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from waterjar.errors import WaterjarError
from waterjar.view.notebook import write_notebook
from waterjar.view.outputs import _tables
from waterjar.view.report import write
from waterjar.view.report.blocks import Report
from waterjar.view.style import save

NAMES = ("r.html", "r.md", "r.tex", "r.json", "r.zip", "r", "r.ipynb", "r.png", "r.svg", "r.pdf", "exports/values.csv")


def write_as(report: Report, path: Path) -> None:
    if path.suffix == ".ipynb":
        write_notebook(report, path.parent, path)
    elif path.suffix in (".png", ".svg", ".pdf"):  # a figure
        save(Figure(figsize=(1, 1)), path)
    elif path.name == "values.csv":
        assert report.source is not None
        made = _tables(report.source, path.parent.parent)["values.csv"]
        if isinstance(made, str):
            raise WaterjarError(made)
    else:
        write(report, path, "csv" if not path.suffix else None)


@pytest.mark.parametrize("name", NAMES)
def test_the_old_file_stays(tmp_path: Path, small_report: Report, full_disk: Callable[[], None], name: str) -> None:
    path = tmp_path / name
    kept = [part for part in small_report.sections if part.name in ("settings", "provenance", "seals")]
    report = dataclasses.replace(small_report, sections=tuple(kept))
    write_as(report, path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert all(before.values())
    full_disk()
    with pytest.raises(WaterjarError, match="could not write .*: No space left on device"):
        write_as(report, path)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
