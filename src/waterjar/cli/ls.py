"""`waterjar ls`: the runs of a study, and those that fulfil a condition."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli import completing
from waterjar.cli.measured import undeclared_runs
from waterjar.cli.output import AsJson, coloured, print_json, print_rich, row, table
from waterjar.run.shown import shown_settings, visible

if TYPE_CHECKING:
    from waterjar.run.index import Entry

NAME = "ls"
_MOST_COLUMNS = 6


def command(
    path: Annotated[Path, typer.Argument(help="Directory that holds the runs.")] = Path(),
    where: Annotated[
        str | None,
        typer.Option(
            help='Condition, such as "learner=derpp and seed in (1, 2)".', autocompletion=completing.conditions
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the runs of a study."""
    from waterjar.run.annotations import FILE  # noqa: PLC0415
    from waterjar.run.cells import flat  # noqa: PLC0415
    from waterjar.run.index import MISANNOTATED  # noqa: PLC0415
    from waterjar.run.query import check_keys  # noqa: PLC0415 - not for --help
    from waterjar.run.study import open_study  # noqa: PLC0415

    study = open_study(path)
    if any(os.path.lexists(folder / FILE) for folder in (path, *(path / entry.name for entry in study.entries))):
        study = study.confirmed()  # its index is about runs, and not about what is told beside them
    if where is not None:
        check_keys(where, study.entries)
        study = study.select(where)
    faults = [entry.fault for entry in study.entries if entry.status == MISANNOTATED]
    notes, others = [*study.notes, *faults, *undeclared_runs(study)], set(study.undeclared)
    if as_json:
        for note in notes:
            sys.stderr.write(f"waterjar: {visible(note)}\n")
        told = {entry.name: entry.name not in others if study.declared else None for entry in study.entries}
        print_json(
            [
                {**asdict(entry), "config": shown_settings(entry.config), "declared": told.get(entry.name)}
                for entry in (*study.entries, *study.probe_runs)
            ]
        )
        return
    if not study.entries:
        print_rich(f"no runs in {path}" + (f" with {where}" if where else ""), *study.set_aside)
        return
    settings = [flat(shown_settings(entry.config)) for entry in study.entries]
    keys = _telling(settings)
    more = ["declared"] if others else []
    made = table(f"{path}: {len(study)} runs, {len(study.cells)} cells", [*_header(keys), *more])
    for entry, config in zip(study.entries, settings, strict=True):
        row(made, *_cells(entry, config, keys), *("no" if entry.name in others else "yes" for _ in more))
    sources = {entry.root_hash: entry.name for entry in study.entries}
    probes = [f"{one.name}: probe run of {sources[one.source]}" for one in study.probe_runs if one.source in sources]
    print_rich(made, *probes, *notes)


def _header(keys: list[str]) -> list[str]:
    return ["run", "status", "seed", *keys, "step", "epoch", "root"]


def _cells(entry: Entry, config: dict[str, Any], keys: list[str]) -> list[object]:
    seeds = ", ".join(map(str, entry.seeds[:4])) + (" …" if len(entry.seeds) > 4 else "")
    root = (entry.root_hash or "–")[:12]
    epoch = entry.progress.get("total_epoch")
    values = [config.get(key, "–") for key in keys]
    shown_epoch = "–" if epoch is None else f"{epoch:g}"
    return [entry.name, coloured(entry.status), seeds, *values, entry.progress["step"], shown_epoch, root]


def _telling(settings: list[dict[str, Any]]) -> list[str]:
    """The settings in which the runs differ, at most six; of a single run its first ones."""
    keys = list(dict.fromkeys(key for config in settings for key in config))
    differing = [key for key in keys if len({repr(config.get(key)) for config in settings}) > 1]
    return (differing or keys)[:_MOST_COLUMNS]
