"""`waterjar plot`: one figure of a study, or all that it has the data for, as files for a paper."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli import completing
from waterjar.cli.measured import Where, read_sets, run_diagnose, runs_at, warn
from waterjar.cli.output import AsJson, print_json, print_rich, row, table
from waterjar.cli.progress import working
from waterjar.run.shown import visible

if TYPE_CHECKING:
    from waterjar.diagnose.study import Diagnosis
    from waterjar.run.study import Study
    from waterjar.view.figures import Description

NAME = "plot"
FORMATS = ("pdf", "svg", "png")
ALL, ALBUM = "all", "album"


def command(
    path: Annotated[Path | None, typer.Argument(help="A study, or a run.")] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            help="The figure's name, or all, or album: every algorithm's own; --list has them. By default those that "
            "the study declares, or all.",
            autocompletion=completing.figures,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="x.pdf, x.svg or x.png; of several figures, a folder.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Beside --figure NAME: a setting, such as threshold=0.8.")
    ] = None,
    where: Where = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Of several figures: pdf, svg or png; as declared, or pdf.",
            autocompletion=completing.one_of(*FORMATS),
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the figures.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a figure of what was measured, as a file that carries the root hashes of its runs."""
    from waterjar.errors import WaterjarError, unknown_name  # noqa: PLC0415 - not for --help
    from waterjar.view import figures  # noqa: PLC0415
    from waterjar.view.style import check_target  # noqa: PLC0415

    if listing:
        known, faults = figures.described()
        _list(known, as_json)
        for why in faults.values():
            sys.stderr.write(f"waterjar: {visible(why)}\n")
        return
    if path is None or out is None:
        raise WaterjarError("expected a study and a file: waterjar plot DIR --figure NAME --out x.pdf")
    if figure is not None:
        figures.SHELF.check(figure, "--figure", also=(ALL, ALBUM))
    if kind is not None and kind not in FORMATS:
        raise unknown_name("--format", kind, FORMATS)
    settings = _settings(sets)
    if figure is None or figure in (ALL, ALBUM):
        if settings:
            raise WaterjarError("--set is for one figure: name it with --figure")
        study = runs_at(path, where)
        drawn = _album(study, out) if figure == ALBUM else _several(study, out, kind, declared=figure is None)
    else:
        check_target(out)
        found = _measured(runs_at(path, where), figures.describe(figure), settings)
        warn(found)
        with working("drawing") as progress:
            progress.watch(figure, 0, 0)
            saved = figures.save(figures.draw(figure, found, **settings), out)
        drawn = {"drawn": {figure: str(saved)}, "passed_over": {}}
    if as_json:
        print_json(drawn)
        return
    for file in drawn["drawn"].values():
        sys.stdout.write(f"{visible(file)}\n")
    for name, why in drawn["passed_over"].items():
        sys.stderr.write(f"waterjar: {name}: not drawn: {visible(why)}\n")


def _list(known: list[Description], as_json: bool) -> None:
    if as_json:
        print_json([{"name": d.name, "title": d.title, "caption": d.caption, "needs": list(d.needs)} for d in known])
        return
    made = table("figures", ["name", "title", "needs"])
    for about in known:
        needs = " and ".join(need.replace("|", " or ") for need in about.needs) or "recorded accuracies"
        row(made, about.name, about.title, needs)
    print_rich(made)


def _settings(given: list[str] | None) -> dict[str, Any]:
    from waterjar.errors import WaterjarError  # noqa: PLC0415

    found = read_sets(given)
    for key in found:
        if key in ("ax", "figure", "source"):
            raise WaterjarError(f"--set {key}: {key} is for Python; expected settings of the figure")
    return found


def _measured(study: Study, about: Description, settings: dict[str, Any]) -> Diagnosis:
    """What a figure needs, measured under a progress bar; what it asks for by its own settings it measures itself.

    One that takes whatever there is gets what the study declares, as `compare` does: all of it counts for corrections.
    """
    from waterjar.diagnose.analysis import analysis_of, by_family  # noqa: PLC0415
    from waterjar.errors import WaterjarError  # noqa: PLC0415
    from waterjar.view import figures  # noqa: PLC0415

    needed = [need.split("|") for need in about.needs]
    names = [name for able in needed for name in able]
    own = {key: value for key, value in settings.items() if key not in about.settings}
    declared = analysis_of(study).families
    families: list[str] | None = names
    if any(len(able) > 1 for able in needed):
        lacking = [able for able in needed if declared is not None and not set(able) & set(declared)]
        families = None if declared is None else [*declared, *(name for able in lacking for name in able)]
    found = run_diagnose(study, families=families, settings=by_family(own, "--set: setting", names))
    for able in needed if not figures.of_recorded_alone(settings) else ():
        if not any(name in found.results for name in able):
            raise WaterjarError("; ".join(dict.fromkeys(found.passed_over[n] for n in able if n in found.passed_over)))
    return found


def _album(study: Study, folder: Path) -> dict[str, dict[str, str]]:
    """PNG, under figures/{data set}/{algorithm}/ in the folder."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415
    from waterjar.view.album import album  # noqa: PLC0415

    if folder.is_file():
        raise WaterjarError(f"--out {folder}: expected a folder for an album")
    found = run_diagnose(study)
    warn(found)
    with working("drawing") as progress:
        made = album(found, folder, progress=progress.figure)
    return {
        "drawn": {name: str(file) for name, file in made.items() if isinstance(file, Path)},
        "passed_over": {name: why for name, why in made.items() if isinstance(why, str)},
    }


def _several(study: Study, folder: Path, kind: str | None, *, declared: bool) -> dict[str, dict[str, str]]:
    """All figures, or those that the study declares, of the families that it measures."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415
    from waterjar.view import figures  # noqa: PLC0415
    from waterjar.view.style import house_style  # noqa: PLC0415

    if folder.suffix.lower().lstrip(".") in FORMATS or folder.is_file():
        raise WaterjarError(f"--out {folder}: expected a folder for several figures; --format names the kind of file")
    with house_style():  # without matplotlib none can be drawn: say so once
        pass
    found = run_diagnose(study)
    warn(found)
    named = found.analysis.figures if isinstance(found.analysis.figures, tuple) else ()
    forms = [kind] if kind else [form for form in found.analysis.export_formats if form in FORMATS] or [FORMATS[0]]
    drawn: dict[str, str] = {}
    refused: dict[str, str] = {}
    wanted = list(named if declared and named else figures.available())
    with working("drawing") as progress:
        for done, name in enumerate(wanted):
            progress.figure(name, done, len(wanted))
            files, why = _draw_one(name, found, folder, forms, must=name in named)  # declared: whatever it takes
            drawn |= files
            refused |= {name: why} if why else {}
    return {"drawn": drawn, "passed_over": refused}


def _draw_one(
    name: str, found: Diagnosis, folder: Path, forms: Sequence[str], *, must: bool
) -> tuple[dict[str, str], str]:
    """A figure in every format: file -> where it is, and why there is none; what it needs is measured if it `must`."""
    from waterjar.errors import UnwrittenError, WaterjarError  # noqa: PLC0415
    from waterjar.view import figures  # noqa: PLC0415

    drawn: dict[str, str] = {}
    try:
        needs = [need.split("|") for need in figures.describe(name).needs]
        lacking = [need for need in needs if not any(one in found.results for one in need)]
        if lacking and not must:
            return {}, found.passed_over.get(lacking[0][0], f"{' or '.join(lacking[0])} was not measured")
        for form in forms:
            target = folder / f"{name}.{form}"
            drawn[target.name] = str(figures.save(figures.draw(name, found), target))
    except UnwrittenError:
        raise
    except WaterjarError as error:  # it says why this study cannot have this figure
        return drawn, str(error)
    return drawn, ""
