"""`waterjar export`: runs in other people's formats, and what is lost on the way."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli import completing
from waterjar.cli.measured import Where, read_sets, run_diagnose, runs_at, settings_by_family
from waterjar.cli.output import AsJson, print_json, print_rich, row, table
from waterjar.cli.progress import working
from waterjar.run.shown import visible

if TYPE_CHECKING:
    from waterjar.run.formats import Made
    from waterjar.run.study import Study

NAME = "export"
SEED = "seed"
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="seed, csv, npy or one that another package brings; --list has them.",
        autocompletion=completing.formats,
    ),
]
Listing = Annotated[bool, typer.Option("--list", help="List the formats.")]


def command(
    path: Annotated[Path | None, typer.Argument(help="A study, or a run.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder that holds {dataset}/{algorithm}, or the CSV file.")
    ] = None,
    kind: Format = SEED,
    where: Where = None,
    dataset: Annotated[str | None, typer.Option(help="Name of the data set's folder; by default its own.")] = None,
    algorithm: Annotated[str | None, typer.Option(help="Name of the run's folder; by default its method.")] = None,
    layer: Annotated[str | None, typer.Option(help="Whose features, where several layers were recorded.")] = None,
    analyses: Annotated[
        bool,
        typer.Option("--analyses", help="Also cl_metrics, plastic_analysis and manifold_metrics (.pkl), measured now."),
    ] = False,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the format; beside --analyses one of theirs, such as n_t=50."),
    ] = None,
    listing: Listing = False,
    as_json: AsJson = False,
) -> None:
    """Write runs in another format. What that format cannot hold is told."""
    from waterjar.diagnose.seed_form import FAMILIES  # noqa: PLC0415 - not for --help
    from waterjar.errors import WaterjarError  # noqa: PLC0415
    from waterjar.run import formats  # noqa: PLC0415

    if listing:
        list_formats(as_json)
        return
    if path is None or out is None:
        raise WaterjarError("expected runs and a place: waterjar export DIR --out PLACE")
    formats.SHELF.check(kind, "--format")
    folders = {"dataset": dataset, "algorithm": algorithm, "layer": layer}
    for option, value in {**folders, "analyses": analyses}.items():
        if value and kind != SEED:
            raise WaterjarError(f"--{option} says nothing to --format {kind}: it is for --format {SEED}")
    study = runs_at(path, where)
    if analyses:
        told = _with_analyses(study, out, settings_by_family(sets, FAMILIES), **folders)
    else:
        given = {option: value for option, value in folders.items() if value}
        with working(f"exporting {len(study)} runs"):
            told = formats.export_as(kind, study, out, {**read_sets(sets), **given})
    tell(told, as_json, "not in it")


def list_formats(as_json: bool) -> None:
    """Print the formats that there are, and why others cannot be used."""
    from waterjar.run.formats import SHELF  # noqa: PLC0415

    found, faults = SHELF.modules()
    known = [
        {
            "name": name,
            "title": module.TITLE,
            "export": hasattr(module, "export_runs"),
            "import": hasattr(module, "import_runs"),
        }
        for name, module in found.items()
    ]
    if as_json:
        print_json(known)
    else:
        made = table("formats", ["name", "title", "export", "import"])
        for one in known:
            row(made, one["name"], one["title"], *("yes" if one[key] else "no" for key in ("export", "import")))
        print_rich(made)
    for why in faults.values():
        sys.stderr.write(f"waterjar: {visible(why)}\n")


def tell(told: list[Made], as_json: bool, word: str) -> None:
    """Print what was written and what is to be known about it."""
    if as_json:
        print_json([{"path": str(made.path), "notes": made.notes} for made in told])
        return
    for made in told:
        sys.stdout.write(f"wrote {visible(str(made.path))}\n")
        for note in made.notes:
            sys.stdout.write(f"  {word}: {visible(note)}\n")


def _with_analyses(
    study: Study,
    out: Path,
    settings: dict[str, dict[str, Any]],
    dataset: str | None,
    algorithm: str | None,
    layer: str | None,
) -> list[Made]:
    """One layout per run, with what is measured of it; that no two would share a folder is known before."""
    from waterjar.diagnose.seed_form import FAMILIES, seed_files  # noqa: PLC0415
    from waterjar.run.formats.seed import export_seed_layout, layout_folders  # noqa: PLC0415

    told = []
    for place, run in layout_folders(study, out, dataset, algorithm).items():
        data, name = place.parts
        alone = study.select(lambda entry, own=run.path.name: entry.name == own)  # type: ignore[misc]
        found = run_diagnose(alone, families=FAMILIES, settings=settings)
        files, notes = seed_files(found, run, data, layer)
        made = export_seed_layout(run, out, dataset=data, algorithm=name, layer=layer, files=files)
        told.append(replace(made, notes=[*made.notes, *notes]))
    return told
