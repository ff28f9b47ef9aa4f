"""`waterjar diagnose`: every metric that a study has the data for, with intervals over seeds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli import completing
from waterjar.cli.measured import (
    Executor,
    Fresh,
    Set,
    Where,
    Workers,
    names_in,
    one_format,
    origin_of,
    run_diagnose,
    runs_at,
    settings_by_family,
    warn,
    warnings_of,
)
from waterjar.cli.output import AsJson, print_json, print_rich, row, table

if TYPE_CHECKING:
    import pandas as pd

    from waterjar.diagnose.study import Diagnosis

NAME = "diagnose"
_MOST_CELLS = 7


def command(
    path: Annotated[Path, typer.Argument(help="A study, or a run.")],
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Families or metrics, such as continual or ACC,BWT; docs/metrics.md lists them.",
            autocompletion=completing.families_or_metrics,
        ),
    ] = None,
    where: Where = None,
    sets: Set = None,
    fresh: Fresh = False,
    workers: Workers = None,
    executor: Executor = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print one row per metric, cell and seed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure how the runs learned, with the settings that the study declares. A second call is instant."""
    from waterjar.diagnose.analysis import analysis_of  # noqa: PLC0415 - not for --help
    from waterjar.diagnose.tidy import rows_of  # noqa: PLC0415
    from waterjar.errors import WaterjarError  # noqa: PLC0415

    one_format(csv=as_csv, json=as_json)
    names = names_in(only, "--only")
    study = runs_at(path, where)
    settings = settings_by_family(sets, names or analysis_of(study).families)
    found = run_diagnose(study, only=names, settings=settings, fresh=fresh, workers=workers, executor=executor)
    rows = found.table() if names is None else rows_of(found, names)
    if not found.results and rows.empty:
        refused = "\n".join(f"{family}: {why}" for family, why in found.passed_over.items())
        raise WaterjarError(f"nothing could be measured of {path}:\n{refused}")
    if as_json:
        print_json(found.plain(rows))
    elif as_csv:
        warn(found)
        known = found.roots
        roots = [known[cell, seed] for cell, seed in zip(rows.cell_id, rows.seed, strict=True)]
        from waterjar.view.report.tables import csv_text  # noqa: PLC0415

        sys.stdout.write(csv_text(rows.assign(root=roots)))
    else:
        print_diagnosis(found, rows)


def print_diagnosis(found: Diagnosis, rows: pd.DataFrame) -> None:
    """Tables by family, verdicts, warnings, and where the results came from."""
    from waterjar.diagnose.over_seeds import cells_over_seeds, interval_words  # noqa: PLC0415 - not for --help
    from waterjar.diagnose.recorded import FAMILY, TITLE  # noqa: PLC0415
    from waterjar.diagnose.registry import families  # noqa: PLC0415
    from waterjar.diagnose.rigidity.remarks import epochs_trained  # noqa: PLC0415

    result = found.results.get("rigidity")
    trained = {} if result is None else epochs_trained(result)
    titles = {FAMILY: TITLE, **{name: family.title for name, family in families().items()}}
    for name, words in titles.items():
        part = rows[rows.family == name]
        if not part.empty:
            level = found.confidence(name)
            means = cells_over_seeds(part, level, found.declared)
            title = f"{words} (mean over seeds, {interval_words(means['interval'], level)})"
            print_rich(*_tables(title, means, found, trained if name == "rigidity" else {}), *cautions(part, found))
    said = found.sentences()
    if said:
        print_rich(*(f"{name}: {sentence}" for name, sentence in said.items()), "")
    print_rich(*warnings_of(found), *origin_of(found))


def cautions(rows: pd.DataFrame, found: Diagnosis) -> list[str]:
    """A line for every metric of a table whose name misleads: what it is, and which way is better."""
    said = [found.declared(name).caution for name in dict.fromkeys(rows[rows["value"].notna()]["metric"])]
    return [line for line in said if line]


def _tables(title: str, rows: pd.DataFrame, found: Diagnosis, trained: dict[str, str]) -> list[Any]:
    """Metrics down, cells across, below them the epochs trained; cells that do not fit go into further tables."""
    from waterjar.diagnose.rigidity.remarks import EPOCHS_TRAINED  # noqa: PLC0415
    from waterjar.view.numbers import estimate_or_reason, one_line  # noqa: PLC0415

    cells = list(dict.fromkeys(rows["cell"]))
    known = {(line.metric, line.cell): line for line in rows.itertuples(index=False)}
    made = []
    for start in range(0, len(cells), _MOST_CELLS):
        shown = cells[start : start + _MOST_CELLS]
        made.append(table(title if not start else "", ["metric", *shown]))
        for name in dict.fromkeys(rows.metric):
            declared = found.declared(name)
            texts = [one_line(estimate_or_reason(known.get((name, cell)), declared, declared.units)) for cell in shown]
            if set(texts) != {"–"} or len(cells) <= _MOST_CELLS:
                row(made[-1], declared.label, *texts)
        if trained:
            row(made[-1], EPOCHS_TRAINED, *(trained[cell] for cell in shown))
    return made
