"""Cells against their baseline, metric by metric, in one tidy table that is corrected once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from waterjar.diagnose.analysis import Tests
from waterjar.diagnose.baseline import default_baseline, find_baselines
from waterjar.diagnose.feeds import feeds, lines_of
from waterjar.diagnose.fitting import length_note, lengths
from waterjar.diagnose.registry import find_metric, metrics
from waterjar.diagnose.study import Diagnosis
from waterjar.errors import WaterjarError
from waterjar.run.schema import MEANINGS
from waterjar.stats.corrections import correct
from waterjar.stats.table import compare_many, significant

NOT_THERE = "not_recorded"
_CORRECTED = ["p_corrected", "correction", "family", "family_size", "family_missing", "significant"]


def compare_cells(
    diagnosis: Diagnosis,
    names: Sequence[str] | None = None,
    *,
    baseline: str | None = None,
    tests: Tests | None = None,
    family: Sequence[str] = (),
) -> pd.DataFrame:
    """One row per metric and cell: mean with interval, difference to its baseline, corrected p, effect size.

    Metrics and baseline are those named here; else the few that matter, and the baseline of the diagnosis. A baseline
    is a rule or scenario (every cell is compared with the cell of it that has its settings: one per backbone, say) or
    the name of one cell. `tests` are those of the diagnosis, unless others are given. The columns are those of
    `stats.compare_many`, with `baseline` beside them. Cells without a baseline keep their means, and `reason` says why
    they are not compared. `improvement` is the probability that a seed of the cell is better than its partner, by the
    metric's direction; `missing` counts the reasons of missing values, `roots` has the root hashes of the cell's runs.
    """
    study, how = diagnosis.study, tests or diagnosis.analysis.test_settings
    words = {diagnosis.name_of(word): word for word in names or ()}  # as the caller spells them
    names = main_metrics(diagnosis, how) if names is None else list(words)
    names, absent = measured_of(diagnosis, names)
    if not names:
        raise WaterjarError(f"nothing to compare by: {_why_nothing(diagnosis)}. Name some metrics")
    relative = [name for name in names if diagnosis.declared(name).relative]
    if relative and not how.paired:
        raise WaterjarError(
            f"{', '.join(relative)}: differences to the baseline, taken seed by seed; expected a paired test of them. "
            "Without pairs, compare what they are differences of, such as patched_accuracy"
        )
    chosen = baseline or diagnosis.analysis.baseline_name or default_baseline(study)[0]
    for name in relative:
        used = diagnosis.settings(find_metric(name).family).get("baseline")
        if baseline is not None and used is not None and baseline != used:
            raise WaterjarError(
                f"{name} was measured against {used}: expected the same baseline here, or diagnose(study, "
                f"baseline={baseline!r})"
            )
    found, notes = find_baselines(study, chosen, diagnosis.analysis.rule)
    notes = _with_budgets(notes, found, diagnosis)
    if not any(found.values()):
        raise WaterjarError(f"baseline '{chosen}': {next(iter(notes.values()))}")
    rows = diagnosis.table([words.get(name, name) for name in names]).rename(columns={"cell": "group"})
    shown = study.cell_names
    bounding = {name: diagnosis.declared(name).bounding for name in names}
    parts = []
    for base in dict.fromkeys(found.values()):
        members = [cell for cell, other in found.items() if other == base]
        block = rows[rows.cell_id.isin(members)][["metric", "group", "seed", "value"]]
        if base is None:
            for cell in members:
                alone = block[block.group == shown[cell]]
                made = compare_many(alone, baseline=shown[cell], paired=how.paired, alpha=how.alpha, bounding=bounding)
                parts.append(made.assign(is_baseline=False, baseline="", baseline_note="", reason=notes.get(cell, "")))
        else:
            made = compare_many(
                block, baseline=shown[base], paired=how.paired, test=how.test, alpha=how.alpha, bounding=bounding
            )
            told = {shown[cell]: notes.get(cell, "") for cell in members}
            parts.append(made.assign(baseline=shown[base], baseline_note=made.group.map(told)))
    table = pd.concat(parts, ignore_index=True).drop(columns=_CORRECTED)
    table = table.rename(columns={f"improvement{end}": f"probability_larger{end}" for end in ("", "_low", "_high")})
    table = _with_improvement(table, diagnosis)
    table["missing"] = [_why(rows, line.metric, line.group) for line in table.itertuples()]
    hashes = diagnosis.roots
    table["roots"] = [
        " ".join(one[:12] for key in sorted(hashes) if shown[key[0]] == group for one in hashes[key].split())
        for group in table.group
    ]
    order = {name: i for i, name in enumerate(names)}
    table = table.iloc[
        sorted(range(len(table)), key=lambda i: (order[table.metric[i]], table.baseline[i], not table.is_baseline[i]))
    ].reset_index(drop=True)
    table = correct(table, family=family, method=how.correction)
    table["significant"] = significant(table, how.alpha, how.paired)
    return pd.concat([table, _without_value(table, absent, diagnosis)], ignore_index=True) if absent else table


def measured_of(diagnosis: Diagnosis, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """(metrics that were measured, metric -> why it was not); where none was, all are the first, to be refused."""
    known = metrics()
    why = {name: diagnosis.passed_over.get(known[name].family, "") for name in names if name in known}
    absent = {name: said for name, said in why.items() if said}
    there = [name for name in names if name not in absent]
    return (there, absent) if there else (list(names), {})


def _without_value(table: pd.DataFrame, absent: Mapping[str, str], diagnosis: Diagnosis) -> pd.DataFrame:
    """Rows of metrics that could not be measured: without a number, and with the reason."""
    seeds = {
        diagnosis.study.cell_names[cell]: sum(len(one.seeds) for one in entries)
        for cell, entries in diagnosis.study.cells.items()
    }
    counts = {"n": 0, "n_compared": 0, "n_unmatched": 0, "is_baseline": False, "significant": False}
    blank = {column: np.nan if table[column].dtype.kind in "fi" else "" for column in table.columns}
    rows = [
        {**blank, "metric": name, "group": cell, **counts, "n_missing": n, "missing": f"{n} {NOT_THERE}", "reason": why}
        for name, why in absent.items()
        for cell, n in seeds.items()
    ]
    return pd.DataFrame(rows, columns=table.columns)


def main_metrics(diagnosis: Diagnosis, tests: Tests) -> list[str]:
    """What is compared where nobody names any: the few that matter; without pairs, none that is a difference itself."""
    return [name for name in diagnosis.main_metrics() if tests.paired or not diagnosis.declared(name).relative]


def untested(diagnosis: Diagnosis, tested: Iterable[str]) -> tuple[str, int]:
    """(a loss that was recorded beside what is tested, how many more there are); empty, 0 where there is none."""
    quantities, known = diagnosis.recorded.quantities, set(tested)
    losses = [name for name in diagnosis.described if quantities[name].variable == "loss" and name not in known]
    evaluated = [name for name in losses if quantities[name].group == "performance"]
    return (evaluated or losses or [""])[0], max(0, len(losses) - 1)


def _why_nothing(diagnosis: Diagnosis) -> str:
    """Why no metric has a value: first what the families lack that were measured, with both cures, then the others."""
    run = diagnosis.study.open(diagnosis.study.entries[0])
    lacking = [one for one in feeds(run) if one.family in diagnosis.results and not one.feeds]
    own = [line for one in lacking for line in lines_of(one, diagnosis.study.path)[:1]] or _valueless(diagnosis)
    if own and diagnosis.passed_over:
        own.append(f"{', '.join(diagnosis.passed_over)}: not measured, see waterjar diagnose")
    told = own or [f"{name}: {text}" for name, text in diagnosis.passed_over.items()]
    return "; ".join(told) or "no metric has a value"


def _valueless(diagnosis: Diagnosis) -> list[str]:
    """Why the metrics that matter have no value, of the families that were measured; a line for each reason."""
    told: dict[str, list[str]] = {}
    for name, metric in metrics().items():
        if metric.matters and metric.family in diagnosis.results:
            rows = diagnosis.table([name]) if metric.scalar in diagnosis.results[metric.family] else pd.DataFrame()
            for reason in dict.fromkeys(rows["reason"]) if len(rows) and rows["value"].isna().all() else ():
                told.setdefault(str(reason), []).append(name)
    return [f"{', '.join(names)}: {reason} ({MEANINGS[reason]})" for reason, names in told.items()]


def _with_budgets(notes: Mapping[str, str], found: Mapping[str, str | None], diagnosis: Diagnosis) -> dict[str, str]:
    """The notes, and where a cell and its baseline were trained for different lengths, as recorded, that too."""
    result, shown, known = diagnosis.results.get("rigidity"), diagnosis.study.cell_names, lengths(diagnosis.study)
    told = dict(notes)
    if result is None:
        for cell, base in found.items():
            if base is not None and (note := length_note(known.get(cell), known.get(base), shown[base])):
                told[cell] = "; ".join(part for part in (told.get(cell, ""), note) if part)
        return told
    for cell, base, note in zip(
        *(result[key].values.astype(str) for key in ("cell_id", "baseline", "budget_note")), strict=True
    ):
        other = found.get(cell)
        if note and other is not None and shown[other] == base:
            told[cell] = "; ".join(part for part in (told.get(cell, ""), note) if part)
    return told


def _with_improvement(table: pd.DataFrame, diagnosis: Diagnosis) -> pd.DataFrame:
    """The probability of being better: of being larger, or smaller, or unknown where no direction is better."""
    ends = ("", "_low", "_high")
    larger = table[[f"probability_larger{end}" for end in ends]].to_numpy(float)
    better = np.full(larger.shape, np.nan)
    directions = [diagnosis.declared(name).direction for name in table.metric]
    for i, direction in enumerate(directions):
        if direction == "higher":
            better[i] = larger[i]
        elif direction == "lower":
            better[i] = 1 - larger[i][[0, 2, 1]]
    return table.assign(direction=directions, **{f"improvement{end}": better[:, k] for k, end in enumerate(ends)})


def _why(rows: pd.DataFrame, metric: str, group: str) -> str:
    gone = rows[(rows.metric == metric) & (rows.group == group) & rows.value.isna()]
    return ", ".join(f"{count} {reason}" for reason, count in gone.reason.value_counts().items())
