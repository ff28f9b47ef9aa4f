"""What a report tells of: a study, what was measured in it, and whether its seals hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from waterjar.diagnose.registry import families
from waterjar.diagnose.rigidity.baseline import DEFAULT, find_baselines
from waterjar.diagnose.study import COLUMNS, Diagnosis, diagnose
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run import ledger
from waterjar.run.reader import Run
from waterjar.run.root import read_root
from waterjar.run.seal import verify
from waterjar.run.store import ROOT
from waterjar.run.study import Entry, Study, open_study
from waterjar.view import figures
from waterjar.view.report.blocks import Key
from waterjar.view.report.charts.theme import keys_of
from waterjar.view.results import cell_labels

Settings = dict[str, dict[str, Any]]
"""family -> its settings"""
Measure = Callable[[Study, Settings], Diagnosis]


@dataclass(frozen=True)
class Seal:
    """The state of one run's seal: sealed, open, tampered, damaged (unreadable) or missing (in the ledger alone)."""

    run: str
    state: str
    root: str = ""
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Story:
    """A study and everything a section may tell of it."""

    title: str
    study: Study
    """The runs that can be read."""
    diagnosis: Diagnosis | None
    """None where there is nothing to measure."""
    seals: tuple[Seal, ...]
    baseline: str
    declaration: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""
    """The condition by which runs were picked, if there was one."""
    given: Settings = field(default_factory=dict)
    """The settings of families that were asked for."""
    _charts: dict[str, pd.DataFrame | None] = field(default_factory=dict)
    """What figures hand over, kept: several sections may show it."""
    refused: dict[str, str] = field(default_factory=dict)
    """figure -> why it has nothing to show of this study."""

    def result(self, family: str) -> xr.Dataset | None:
        """What a family measured; None if it did not."""
        return None if self.diagnosis is None else self.diagnosis.results.get(family)

    def settings(self, family: str) -> dict[str, Any]:
        """The settings a family was measured with."""
        result = self.result(family)
        return {} if result is None else dict(json.loads(result.attrs.get("settings", "{}")))

    def figure_data(self, name: str, **settings: Any) -> pd.DataFrame:
        """The numbers behind a figure of `waterjar.view.figures`; empty where the study has none for it."""
        key = f"{name} {json.dumps(settings, sort_keys=True)}"
        if key not in self._charts:
            self._charts[key] = self._figure_data(name, settings)
        found = self._charts[key]
        return pd.DataFrame() if found is None else found

    def _figure_data(self, name: str, settings: Mapping[str, Any]) -> pd.DataFrame | None:
        if self.diagnosis is None or name not in figures.available():
            return None
        measured = self.diagnosis.results
        needs = figures.describe(name).needs
        if not all(any(family in measured for family in need.split("|")) for need in needs):
            return None
        try:
            return figures.data(name, self.diagnosis, **settings)
        except WaterjarError as error:  # the page goes without this figure, and says why
            self.refused[name] = str(error)
            return None

    @cached_property
    def names(self) -> dict[str, str]:
        """cell -> its name, in the order in which tables and figures show them."""
        return cell_labels(self.study)

    @cached_property
    def keys(self) -> dict[str, Key]:
        """name of a cell -> its colour, dash and symbol, the same in every chart."""
        return keys_of(self.names.values())

    @cached_property
    def table(self) -> pd.DataFrame:
        """Every number that was measured: one row per metric, cell and seed; empty where nothing was."""
        return pd.DataFrame(columns=list(COLUMNS)) if self.diagnosis is None else self.diagnosis.table()

    @cached_property
    def attributes(self) -> dict[str, dict[str, Any]]:
        """run -> the attributes of its root."""
        return {entry.name: read_root(self.study.path / entry.name)["attributes"] for entry in self.study.entries}

    def states(self, state: str) -> list[Seal]:
        """The runs whose seal is in a state."""
        return [seal for seal in self.seals if seal.state == state]


def open_for_report(path: Path, where: str = "") -> Study:
    """The study at a path (which may be empty), or a run as a study of one; `where` picks runs of it."""
    from waterjar.run.query import check_keys  # noqa: PLC0415 - few reports need it

    if (path / ROOT).exists():
        one = path.resolve()
        return open_study(one.parent).select(lambda entry: entry.name == one.name)
    study = open_study(path)
    if not where:
        return study
    check_keys(where, study.entries)
    picked = study.select(where)
    if not picked.entries:
        raise WaterjarError(f"no run of {path} has {where}")
    return picked


def tell(
    study: Study,
    *,
    title: str = "",
    baseline: str = DEFAULT,
    where: str = "",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    measure: Measure | None = None,
) -> Story:
    """Measure all that a study has the data for, and gather what else a report tells of it.

    Damaged runs are left out of the numbers and named; a study without readable runs has a story too. `measure` is
    `diagnose`, or what calls it in a way of its own: with a progress bar, say.
    """
    readable = [entry for entry in study.entries if entry.status != "damaged"]
    part = Study(study.path, readable)
    broken: dict[str, str] = {}
    given: Settings = {family: dict(values) for family, values in (settings or {}).items()}
    if baseline != DEFAULT and readable:
        _check_baseline(part, baseline)
        for name, family in families().items():
            if "baseline" in family.defaults:
                given.setdefault(name, {}).setdefault("baseline", baseline)
    diagnosis = None
    if readable:
        diagnosis = (measure or _measure)(part, given)
        broken = _unreadable(part, diagnosis)
        if broken:  # one run that cannot be read must not take a whole family with it
            part = Study(study.path, [entry for entry in readable if entry.name not in broken])
            diagnosis = (measure or _measure)(part, given) if part.entries else None
    declaration = study.declaration
    return Story(
        title=title or str(declaration.get("experiment_name") or study.path.resolve().name),
        study=part,
        diagnosis=diagnosis,
        seals=tuple(_seals(study, diagnosis, broken)),
        baseline=baseline,
        declaration=declaration,
        where=where,
        given=given,
    )


def _check_baseline(study: Study, baseline: str) -> None:
    """A name that nothing has is an error, and not a family passed over."""
    scenarios = {str(entry.config["scenario"]) for entry in study.entries if entry.config.get("scenario")}
    known = dict.fromkeys([*sorted(scenarios), *study.cell_names.values()])  # a cell is often named as its scenario
    if baseline not in known and baseline not in study.cells:
        raise unknown_name(f"{study.path}: baseline", baseline, known)
    find_baselines(study, baseline)


def _measure(study: Study, settings: Settings) -> Diagnosis:
    return diagnose(study, settings=settings)


def _unreadable(study: Study, diagnosis: Diagnosis) -> dict[str, str]:
    """run -> what is wrong, for runs whose files changed and that cannot be read to the end any more.

    A chunk that is gone, or whose checksum does not hold, is an error in every family that reads it; where the seal
    (or, of an open run, the checksums) holds, every file is there, and nothing has to be tried.
    """
    found = {}
    for name in (name for name, state in diagnosis.seals.items() if state == "tampered"):
        try:
            run = Run(study.path / name)
            for group in run.groups:
                run.load(group)
        except WaterjarError as error:
            found[name] = str(error)
    return found


def _seals(study: Study, diagnosis: Diagnosis | None, broken: Mapping[str, str]) -> list[Seal]:
    known = {} if diagnosis is None else diagnosis.seals
    found = [
        _seal(study.path, entry, known.get(entry.name, "damaged"), broken.get(entry.name, ""))
        for entry in study.entries
    ]
    lost = {line["run"]: line["root"] for line in ledger.entries(study.path)}
    for run, root in lost.items():
        if not (study.path / run).exists():
            found.append(Seal(run, "missing", root, ("the ledger has it sealed, but it is not in the study's folder",)))
    return found


def _seal(folder: Path, entry: Entry, state: str, unreadable: str) -> Seal:
    problems: tuple[str, ...] = ()
    if unreadable:
        problems = (unreadable, *(str(problem) for problem in verify(folder / entry.name).problems))
    elif state == "damaged":
        problems = (str(entry.progress["error"]),)
    elif state == "tampered":
        problems = tuple(str(problem) for problem in verify(folder / entry.name).problems)
    return Seal(entry.name, state, entry.root_hash or "", problems)
