"""What an analysis asks for that the runs of its declaration will not have: told before they are trained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from waterjar.diagnose.analysis import Analysis
from waterjar.diagnose.baseline import DEFAULT
from waterjar.diagnose.settings import check_chance
from waterjar.errors import WaterjarError, unknown_name
from waterjar.lab.study.parts import faulty
from waterjar.run.cells import flat, name_cells
from waterjar.run.identity import SEED_KEYS, UNHASHED

_BESIDE = (*UNHASHED, "engine")
"""Settings that a run has from where it is computed, and not from its declaration."""


def check_baseline(analysis: Analysis, runs: Sequence[Mapping[str, Any]], where: str) -> None:
    """Refuse a baseline that no run will be, and settings of its rule that no run has.

    `runs` are the settings of all runs. A study without scratch_t2, the usual baseline, is none that is compared.
    """
    known = {key: None for run in runs for key in flat(dict(run))}
    paths = dict.fromkeys([*(path for run in runs for path in _paths(run)), *_BESIDE])
    found, rule = [], analysis.rule
    if rule is not None:
        for field, names in (("where", rule.where), ("ignore", rule.ignore), ("tell", rule.tell)):
            able = known if field == "where" else paths
            found += [
                str(unknown_name(f"analysis.baseline.{field}: setting", name, able))
                for name in names
                if name not in able
            ]
    cells = {repr(sorted(_without_seed(run).items())): flat(dict(run)) for run in reversed(runs)}
    named = set(name_cells(cells).values())
    asked_for = None if found else analysis.baseline_name
    wheres = rule.where if rule is not None else {"scenario": asked_for}
    matches = any(all(run.get(key) == value for key, value in wheres.items()) for run in cells.values())
    if asked_for not in (None, DEFAULT) and not matches and asked_for not in named:
        scenarios = {str(run["scenario"]) for run in cells.values() if run.get("scenario")}
        found.append(str(unknown_name("analysis.baseline", str(asked_for), sorted(scenarios | named))))
    if found:
        raise faulty(where, found)


def not_recorded(analysis: Analysis, layers: Sequence[str], eval_sets: Mapping[str, Sequence[str]]) -> list[str]:
    """Layers, and evaluation sets of families, that settings name and runs will not have; a line each."""
    found = []
    for family, settings in analysis.settings.items():
        there = {"layers": layers, **({"eval_sets": eval_sets[family]} if family in eval_sets else {})}
        found += [
            str(unknown_name(f"analysis.settings.{family}: {key}", name, options))
            for key, options in there.items()
            for name in _listed(settings.get(key))
            if name not in options
        ]
    return found


def unfit(analysis: Analysis, tasks: Iterable[int], accuracies: Sequence[str]) -> list[str]:
    """Chances that are not one for every task, and variables that are no accuracy which runs will have; a line each.

    `tasks` are how many the runs have.
    """
    found = []
    for family, settings in analysis.settings.items():
        at, chance, variable = f"analysis.settings.{family}", settings.get("chance"), settings.get("variable")
        for number in sorted(set(tasks)):
            try:
                check_chance(tuple(chance) if isinstance(chance, list) else chance, number, "a run")
            except WaterjarError as error:
                found.append(f"{at}: {error}")
        if variable is not None and variable not in accuracies and settings.get("metric_type") != "loss":
            found.append(str(unknown_name(f"{at}: variable", variable, accuracies)))
    return found


def _paths(settings: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted names of all settings and of the sections that they stand in."""
    for key, value in settings.items():
        yield prefix + key
        if isinstance(value, Mapping):
            yield from _paths(value, f"{prefix}{key}.")


def _without_seed(run: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in run.items() if key not in SEED_KEYS}


def _listed(names: Any) -> list[Any]:
    if isinstance(names, Mapping):  # what a family calls a set -> the set
        return list(names.values())
    return [names] if isinstance(names, str) else list(names or ())
