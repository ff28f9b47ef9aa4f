"""The data behind every chart and table: a zip of CSV files, or a folder of them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from waterjar._version import __version__
from waterjar.run.disk import write_file, write_files
from waterjar.run.shown import json_text
from waterjar.view.report.blocks import Report
from waterjar.view.report.tables import csv_text

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time that every file in the zip has: the same report, the same bytes."""


def files(report: Report) -> dict[str, str]:
    """Name of a file -> its text; `about.json` says what they were made from."""
    about = {"title": report.title, "waterjar": __version__, "roots": list(report.roots)}
    made = {f"{one.name}.csv": csv_text(one.frame) for one in report.shown}
    return {**made, "about.json": json_text(about, indent=2) + "\n"}


def write(report: Report, path: Path) -> None:
    """Write a zip, or where the path has no suffix a folder."""
    if not path.suffix:
        write_files({path / name: text for name, text in files(report).items()})
        return
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files(report).items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    write_file(path, zipped.getvalue())
