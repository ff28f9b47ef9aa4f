"""`waterjar report`: a study as one HTML file that opens anywhere, or in another format."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Annotated

import typer

from waterjar.cli import completing
from waterjar.cli.measured import Fresh, Set, Where, Workers, run_diagnose, settings_by_family
from waterjar.cli.progress import working
from waterjar.run.shown import visible

NAME = "report"


def command(
    path: Annotated[Path, typer.Argument(help="A study, or a run.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; by default report.html in the study.")] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="html, markdown, latex, json, csv, pdf or template; as --out ends.",
            autocompletion=completing.one_of("html", "markdown", "latex", "json", "csv", "pdf", "template"),
        ),
    ] = None,
    notebook: Annotated[
        bool, typer.Option("--notebook", help="Write a Jupyter notebook that opens the study and draws it anew.")
    ] = False,
    title: Annotated[str, typer.Option(help="A title; by default the name of the study.")] = "",
    baseline: Annotated[
        str | None,
        typer.Option(help="A scenario, or the name of a cell; as declared.", autocompletion=completing.cells),
    ] = None,
    where: Where = None,
    sets: Set = None,
    fresh: Fresh = False,
    workers: Workers = None,
) -> None:
    """Write what a study shows: verdicts, figures, statistics, settings and seals, with the data inside."""
    from waterjar.diagnose.analysis import analysis_of  # noqa: PLC0415
    from waterjar.errors import WaterjarError, unknown_name  # noqa: PLC0415 - not for --help
    from waterjar.run.study import study_at  # noqa: PLC0415
    from waterjar.view.notebook import write_notebook  # noqa: PLC0415
    from waterjar.view.report.composing import compose  # noqa: PLC0415
    from waterjar.view.report.formats import FORMATS, check_target, default_target, format_of, write  # noqa: PLC0415
    from waterjar.view.report.model import model_of  # noqa: PLC0415

    if form is not None and form not in FORMATS:
        raise unknown_name("--format", form, FORMATS)
    if notebook and form is not None:
        raise WaterjarError("--format and --notebook: one at a time")
    if form is None and not notebook:
        form = format_of(out) if out is not None else "html"
    if form is not None and out is not None:
        check_target(out, form)  # before anything long is measured
    suffix = ".ipynb" if form is None else FORMATS[form]
    study = study_at(path, where or "")
    target = out if out is not None else default_target(path, study, suffix)
    model = model_of(
        study,
        title=title,
        baseline=baseline,
        where=where or "",
        settings=settings_by_family(sets, analysis_of(study).families) if sets else None,
        measure=functools.partial(run_diagnose, fresh=fresh, workers=workers),
    )
    with working("writing the report"):
        made = compose(model)
        if form is None:
            picked = where or ("" if study.path.resolve() == path.resolve() else f"name == {path.resolve().name!r}")
            written = write_notebook(made, study.path, target, settings=model.given, where=picked)
        else:
            written = write(made, target, form)
    sys.stderr.write(f"waterjar: {visible(made.status.title)}. {visible(made.status.text)}\n")
    sys.stdout.write(f"{visible(str(written))}\n")
