"""`waterjar export`: runs in other people's formats, and what is lost on the way."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli.measured import Where, run_diagnose, runs_at, settings_by_family
from waterjar.cli.output import AsJson, print_json
from waterjar.run.shown import visible

if TYPE_CHECKING:
    from waterjar.run.study import Study

NAME = "export"
FORMATS = {
    "seed": "results/{dataset}/{algorithm}/task_000 ...: a folder per task, numpy files and pickles",
    "csv": "a tidy timeline: method, seed, epoch_eff, split, acc, top5, loss; tasks and more where it needs them",
}
Format = Annotated[str, typer.Option("--format", help="; ".join(f"{name}: {text}" for name, text in FORMATS.items()))]


def command(
    path: Annotated[Path, typer.Argument(help="A study, or a run.")],
    out: Annotated[Path, typer.Option(help="The folder that holds {dataset}/{algorithm}, or the CSV file.")],
    kind: Format = "seed",
    where: Where = None,
    dataset: Annotated[str | None, typer.Option(help="Name of the data set's folder; by default its own.")] = None,
    algorithm: Annotated[str | None, typer.Option(help="Name of the run's folder; by default its method.")] = None,
    layer: Annotated[str | None, typer.Option(help="Whose features, where several layers were recorded.")] = None,
    analyses: Annotated[
        bool,
        typer.Option("--analyses", help="Also cl_metrics, plastic_analysis and manifold_metrics (.pkl), measured now."),
    ] = False,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Beside --analyses: a setting of theirs, such as n_t=50.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write runs in another format. What that format cannot hold is told."""
    from waterjar.diagnose.seed_form import FAMILIES  # noqa: PLC0415 - not for --help
    from waterjar.errors import WaterjarError, unknown_name  # noqa: PLC0415

    if kind not in FORMATS:
        raise unknown_name("--format", kind, FORMATS)
    of_seed = {"--dataset": dataset, "--algorithm": algorithm, "--layer": layer, "--analyses": analyses, "--set": sets}
    for option, value in of_seed.items():
        if value and kind != "seed":
            raise WaterjarError(f"{option} says nothing to --format {kind}: it is for --format seed")
    if sets and not analyses:
        raise WaterjarError("--set is for the analyses: expected --analyses beside it")
    study = runs_at(path, where)
    if kind == "csv":
        from waterjar.run.formats.timeline_csv import left_out, to_csv  # noqa: PLC0415

        told = [{"path": str(to_csv(study, out)), "notes": left_out(study)}]
    else:
        told = _seed_layouts(
            study, out, dataset, algorithm, layer, settings_by_family(sets, FAMILIES) if analyses else None
        )
    tell(told, as_json, "not in it")


def tell(told: list[dict[str, Any]], as_json: bool, word: str) -> None:
    """Print what was written and what is to be known about it."""
    if as_json:
        print_json(told)
        return
    for part in told:
        sys.stdout.write(f"wrote {visible(part['path'])}\n")
        for note in part["notes"]:
            sys.stdout.write(f"  {word}: {visible(note)}\n")


def _seed_layouts(
    study: Study,
    out: Path,
    dataset: str | None,
    algorithm: str | None,
    layer: str | None,
    settings: dict[str, dict[str, Any]] | None,
) -> list[dict[str, Any]]:
    """One layout per run; that no two would share a folder is known before anything is written."""
    from waterjar.diagnose.seed_form import FAMILIES, seed_files  # noqa: PLC0415
    from waterjar.run.formats.seed_layout import export_seed_layout, layout_folders  # noqa: PLC0415

    told = []
    for place, run in layout_folders(study, out, dataset, algorithm).items():
        data, name = place.parts
        files: dict[str, bytes] = {}
        notes: list[str] = []
        if settings is not None:
            alone = study.select(lambda entry, own=run.path.name: entry.name == own)  # type: ignore[misc]
            found = run_diagnose(alone, families=FAMILIES, settings=settings)
            files, notes = seed_files(found, run, data, layer)
        made = export_seed_layout(run, out, dataset=data, algorithm=name, layer=layer, files=files)
        told.append({"path": str(made.path), "notes": [*made.notes, *notes]})
    return told
