"""The formats a report comes in, by name."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.disk import unwritten, write_file
from waterjar.run.study import Study
from waterjar.view.report.blocks import Report
from waterjar.view.report.renderers.pdf import find_browser

FORMATS = {
    "html": ".html",
    "markdown": ".md",
    "latex": ".tex",
    "json": ".json",
    "csv": ".zip",
    "pdf": ".pdf",
    "template": ".results.md",
}
"""Name -> how its file ends. `csv` is a zip of files, or a folder where the path has no suffix; `template` is the
reporting template of the seed document on collectives."""


def format_of(path: Path) -> str:
    """The format that a path asks for by its suffix.

    >>> format_of(Path("a/report.md"))
    'markdown'
    """
    for name, ending in sorted(FORMATS.items(), key=lambda pair: -len(pair[1])):
        if path.name.lower().endswith(ending) and len(path.name) > len(ending):
            return name
    if path.suffix.lower() == ".csv":
        check_target(path, "csv")
    raise WaterjarError(
        f"{path}: the name of a report ends in {', '.join(FORMATS.values())}; or say which with --format"
    )


def default_target(source: Path, study: Study, suffix: str) -> Path:
    """Where a report goes that nobody named a file for: in the study; beside a run, which is nobody's to write into."""
    if source.resolve() == study.path.resolve():
        return source / f"report{suffix}"
    return source.resolve().parent / f"{source.resolve().name}-report{suffix}"


def check_target(path: Path, form: str) -> None:
    """Refuse what cannot be written: a PDF without a browser, and a name that would hide what a file is."""
    if form == "pdf":
        find_browser()
    if form == "csv" and path.suffix.lower() not in ("", FORMATS["csv"]):
        zipped = path.with_suffix(FORMATS["csv"]).name
        raise WaterjarError(
            f"{path}: a report as csv is many files: give a name that ends in {FORMATS['csv']}, such as {zipped}, or "
            f"with --format csv a folder, such as {path.stem}"
        )


def write(report: Report, path: str | os.PathLike[str], form: str | None = None) -> Path:
    """Write a report; the format is `form`, or what the path's suffix says."""
    target = Path(path)
    name = form or format_of(target)
    if name not in FORMATS:
        raise unknown_name("format", name, FORMATS)
    check_target(target, name)
    module = import_module(f"waterjar.view.report.renderers.{'as_' + name if name in ('json', 'csv') else name}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if hasattr(module, "write"):  # more than one text
            module.write(report, target)
        else:
            write_file(target, module.render(report))
    except OSError as error:
        raise unwritten(error.filename or target, error) from error
    return target
