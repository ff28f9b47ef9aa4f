"""`waterjar diagnose`: every metric that a study has the data for, with intervals over seeds."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli.measured import (
    Fresh,
    Set,
    Where,
    Workers,
    names_in,
    one_format,
    origin_of,
    run_diagnose,
    settings_by_family,
    shown_names,
    study_at,
    warn,
    warnings_of,
    with_interval,
)
from waterjar.cli.output import AsJson, print_json, print_rich, row, table

if TYPE_CHECKING:
    import pandas as pd

    from waterjar.diagnose.study import Diagnosis

NAME = "diagnose"
_MOST_CELLS = 7


def command(
    path: Annotated[Path, typer.Argument(help="A study, or a run.")],
    only: Annotated[list[str] | None, typer.Option(help="Families or metrics; docs/metrics.md lists them.")] = None,
    where: Where = None,
    sets: Set = None,
    fresh: Fresh = False,
    workers: Workers = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print one row per metric, cell and seed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure how the runs learned. Results are kept beside the runs: a second call is instant."""
    one_format(csv=as_csv, json=as_json)
    names = names_in(only, "--only")
    study = study_at(path, where)
    found = run_diagnose(study, names, settings_by_family(sets, names), fresh, workers)
    rows = found.table()
    if names is not None:
        rows = rows[rows.metric.isin(names) | rows.family.isin(names)]
    if as_json:
        print_json(_plain(found, rows))
    elif as_csv:
        warn(found)
        roots = [found.roots[cell, seed] for cell, seed in zip(rows.cell, rows.seed, strict=True)]
        sys.stdout.write(shown_names(rows.assign(root=roots)).to_csv(index=False))
    else:
        print_diagnosis(found, rows)


def _plain(found: Diagnosis, rows: pd.DataFrame) -> dict[str, Any]:
    return {
        "values": rows.astype(object).where(rows.notna(), None).to_dict("records"),
        "verdicts": verdicts(found),
        "seals": found.seals,
        "origin": found.origin,
        "passed_over": found.passed_over,
        "settings": {family: json.loads(result.attrs["settings"]) for family, result in found.results.items()},
        "roots": {entry.name: entry.root_hash for entry in found.study.entries},
    }


def verdicts(found: Diagnosis) -> dict[str, str]:
    """Name of a cell -> what its numbers mean, in a sentence, where a family says so."""
    said: dict[str, str] = {}
    for result in found.results.values():
        if "sentence" in result:
            for name, sentence in zip(result["name"].values, result["sentence"].values, strict=True):
                if sentence:
                    said[str(name)] = f"{said[str(name)]} {sentence}" if str(name) in said else str(sentence)
    return said


def print_diagnosis(found: Diagnosis, rows: pd.DataFrame) -> None:
    """Tables by family, verdicts, warnings, and where the results came from."""
    from waterjar.diagnose.registry import families  # noqa: PLC0415 - not for --help

    for name, family in families().items():
        part = rows[rows.family == name]
        if not part.empty:
            print_rich(*_tables(f"{family.title} (mean over seeds, 95 % t interval)", part, found))
    said = verdicts(found)
    if said:
        print_rich(*(f"{name}: {sentence}" for name, sentence in said.items()), "")
    print_rich(*warnings_of(found), *origin_of(found))


def _tables(title: str, rows: pd.DataFrame, found: Diagnosis) -> list[Any]:
    """Metrics down, cells across; more cells than fit on a page go into further tables."""
    cells = list(dict.fromkeys(rows["name"]))
    values: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for metric, cell, value, reason in zip(rows["metric"], rows["name"], rows["value"], rows["reason"], strict=True):
        values.setdefault((metric, cell), []).append((value, reason))
    made = []
    for start in range(0, len(cells), _MOST_CELLS):
        shown = cells[start : start + _MOST_CELLS]
        made.append(table(title if not start else "", ["metric", *shown]))
        for name in dict.fromkeys(rows.metric):
            declared = found.declared(name)
            texts = [_cell(values.get((name, cell), []), declared.units) for cell in shown]
            if set(texts) != {"–"} or len(cells) <= _MOST_CELLS:
                row(made[-1], declared.label, *texts)
    return made


def _cell(seeds: list[tuple[float, str]], units: str) -> str:
    """Mean and interval over the seeds of one cell, or why there is none."""
    from waterjar.stats.intervals import mean_interval  # noqa: PLC0415

    if not seeds:
        return "–"
    interval = mean_interval([value for value, _ in seeds])
    gone = Counter(reason for value, reason in seeds if math.isnan(value))
    why = ", ".join(f"{count}/{len(seeds)} {reason}" for reason, count in gone.most_common())
    if interval.n == 0:
        return why
    text = with_interval(interval.estimate, interval.low, interval.high, units)
    return f"{text} ({why})" if why else text
