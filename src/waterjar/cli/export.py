"""`waterjar export`: runs in other people's formats, and what is lost on the way."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli.measured import Set, Where, run_diagnose, settings_by_family, study_at
from waterjar.cli.output import AsJson, print_json, visible

if TYPE_CHECKING:
    import xarray as xr

    from waterjar.run.reader import Run
    from waterjar.run.study import Study

NAME = "export"
FORMATS = {
    "seed": "results/{dataset}/{algorithm}/task_000 ...: a folder per task, numpy files and pickles",
    "csv": "a tidy timeline: method, seed, epoch_eff, split, acc, top5, loss",
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
    sets: Set = None,
    as_json: AsJson = False,
) -> None:
    """Write runs in another format. What that format cannot hold is told."""
    from waterjar.errors import unknown_name  # noqa: PLC0415 - not for --help

    if kind not in FORMATS:
        raise unknown_name("--format", kind, FORMATS)
    study = study_at(path, where)
    if kind == "csv":
        from waterjar.run.formats.timeline_csv import to_csv  # noqa: PLC0415

        told = [{"path": str(to_csv(study, out)), "notes": []}]
    else:
        told = _seed_layouts(study, out, dataset, algorithm, layer, settings_by_family(sets) if analyses else None)
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
    from waterjar.errors import WaterjarError  # noqa: PLC0415
    from waterjar.run.formats.seed_layout import export_seed_layout, layout_folder  # noqa: PLC0415

    several = len(study.entries) > 1
    names = study.cell_names if several else {}
    places: dict[Path, str] = {}
    for run in study:
        own = names.get(run.cell_id, "")
        place = layout_folder(run, dataset, algorithm, named=own)
        if place in places:
            both = f"{places[place]} and {run.path.name}"
            raise WaterjarError(f"{both} would both become {place}: export them one by one, with --algorithm")
        if (out / place).exists():  # before anything is measured
            raise WaterjarError(f"{out / place} exists already: choose another place, or move it away first")
        places[place] = run.path.name
    told = []
    for place, run in zip(places, study, strict=True):
        data, name = place.parts
        files, notes = ({}, []) if settings is None else _analyses(study, run, data, layer, settings)
        found = export_seed_layout(run, out, dataset=data, algorithm=name, layer=layer, files=files)
        told.append({"path": str(found.path), "notes": [*found.notes, *notes]})
    return told


def _analyses(
    study: Study, run: Run, dataset: str, layer: str | None, settings: dict[str, dict[str, Any]]
) -> tuple[dict[str, bytes], list[str]]:
    """File -> contents of what can be measured of a run, and why the rest cannot."""
    from waterjar.diagnose.continual import export as continual  # noqa: PLC0415
    from waterjar.diagnose.geometry import export as geometry  # noqa: PLC0415
    from waterjar.diagnose.plasticity import export as plasticity  # noqa: PLC0415
    from waterjar.errors import WaterjarError  # noqa: PLC0415
    from waterjar.run.plain_pickle import dump_plain  # noqa: PLC0415

    makers: dict[str, tuple[str, Any]] = {
        "continual": (continual.FILE, continual.cl_metrics),
        "plasticity": (plasticity.file_name(dataset), lambda result: plasticity.history(result, layer=layer)),
        "geometry": (geometry.FILE, lambda result: geometry.manifold_metrics(result, layer=layer)),
    }
    alone = study.select(lambda entry: entry.name == run.path.name)
    files: dict[str, bytes] = {}
    notes = []
    for family, (file, make) in makers.items():
        try:
            own = {key: value for key, value in settings.items() if key == family}
            result = run_diagnose(alone, [family], own, fresh=False).results[family]
            files[file] = dump_plain(make(_of_run(result, run)))
            given = {key: value for key, value in json.loads(result.attrs["settings"]).items() if value is not None}
            notes.append(f"settings of {file}, which were {json.dumps(given)}")
        except WaterjarError as error:
            notes.append(f"{file}: {error}")
    return files, notes


def _of_run(result: xr.Dataset, run: Run) -> xr.Dataset:
    """A result over (cell, seed, ...) of a study of one run, over (repeat, ...)."""
    one = result.isel(cell=0, drop=True).sel(seed=run.seeds)
    return one.assign_coords(repeat=("seed", range(len(run.seeds)))).swap_dims(seed="repeat")
