"""All diagnostics of a study at once, cached, and as one tidy table."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.diagnose import registry, shown, tidy
from waterjar.diagnose.analysis import Analysis, Tests, analysis_of
from waterjar.diagnose.cache import FOLDER, cached, fingerprint, piece_key
from waterjar.diagnose.fitting import fitting, unequal_lengths
from waterjar.diagnose.measuring import assemble, measure_unit, units_of
from waterjar.diagnose.outside import SHELF
from waterjar.diagnose.pieces import Executor, Parts, PieceRunner
from waterjar.diagnose.recorded import Recorded
from waterjar.diagnose.registry import (
    Family,
    Metric,
    find_family,
    find_metric,
    metric_name,
    metric_words,
    metrics,
)
from waterjar.diagnose.seals import seal_states
from waterjar.diagnose.settings import dump
from waterjar.errors import WaterjarError
from waterjar.run.annotations import Annotations
from waterjar.run.notebook import FrontDoor
from waterjar.run.root import DamagedError
from waterjar.run.study import Study
from waterjar.stats.intervals import beyond

_OF_LOSSES = ("long_name", "direction", "units")
"""What a result may say of a metric otherwise than its declaration, which is that of accuracies."""
_NOTES = ("order_note", "early_note", "chance_note", "budget_note")
Watch = Callable[[str, float, int], None]
"""Called with a family's name, how many of its units are done, and how many there are."""


@dataclass(frozen=True)
class Diagnosis(FrontDoor):
    """What was measured, family by family, where it came from, and whether the seals of the runs hold."""

    study: Study
    results: dict[str, xr.Dataset]
    origin: dict[str, dict[str, str]] = field(default_factory=dict)
    """family -> unit -> `cached`, `new`, or why it was computed again."""
    passed_over: dict[str, str] = field(default_factory=dict)
    """family -> why there was nothing to measure."""
    seals: dict[str, str] = field(default_factory=dict)
    """run -> sealed, open or tampered."""
    analysis: Analysis = field(default_factory=Analysis)
    """What counted: families, settings, baseline, tests."""
    checked: dict[str, str] = field(default_factory=dict)
    """run -> when its seal was last looked at, of those whose seal was not looked at for this diagnosis."""

    def __getitem__(self, family: str) -> xr.Dataset:
        """The metrics of a family over (cell, seed, ...), cells by their names: `found["continual"].sel(cell="er")`.

        Why values are missing is told by `reasons`, what else stands beside them by `beside`; `results` has it all.
        """
        return shown.metrics_of(self, family)

    def __iter__(self) -> Iterator[str]:
        """The families that were measured."""
        return iter(self.results)

    def __contains__(self, family: object) -> bool:
        """Whether a family was measured."""
        return family in self.results

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.results)

    def per_seed(self, family: str) -> xr.Dataset:
        """One number per cell and seed of every metric of a family: what enters tables and tests."""
        return shown.per_seed(self, family)

    def reasons(self, family: str) -> xr.Dataset:
        """Why values of a family's metrics are missing, in words; empty where they are there."""
        return shown.reasons_in(self, family)

    def beside(self, family: str) -> xr.Dataset:
        """What stands beside the metrics of a family: standard errors, bounds, counts, codes of reasons, notes."""
        return shown.beside(self, family)

    def __repr__(self) -> str:
        """Families, cells, seeds, and what was passed over and why."""
        return shown.text(self)

    def _repr_html_(self) -> str:
        return shown.page(self)

    @property
    def roots(self) -> dict[tuple[str, int], str]:
        """(cell, seed) -> the root hash of its run, or `unsealed`; behind a space that of each of its probe runs.

        Behind a `+` stands the hash of a file of annotations that counted.
        """
        told = {run: [f"+{one}" for one in known.digest.split()] for run, known in self.annotations.items()}
        return {
            (entry.cell_id, seed): " ".join(
                text
                for one in (entry, *self.study.probes_of(entry))
                if seed in one.seeds
                for text in (one.root_hash or "unsealed", *told.get(one.name, ()))
            )
            for entry in self.study.entries
            for seed in entry.seeds
        }

    @property
    def annotations(self) -> dict[str, Annotations]:
        """Run -> what was annotated of it, of those that have any."""
        return self.study.annotations

    @property
    def annotation_lines(self) -> list[str]:
        """A line per file of annotations that counted: of how many runs, and the hash of the file."""
        return shown.annotation_lines(self)

    @functools.cached_property
    def recorded(self) -> Recorded:
        """What was recorded along training, by names such as monitor/return, as it stood at the end of each run."""
        return Recorded(self.study)

    @property
    def ends(self) -> list[str]:
        """What was recorded, where it takes the place of metrics: of a study without measured accuracies over tasks.

        One that names the families to measure has none.
        """
        return [] if self.analysis.families is not None or self._over_tasks else self.recorded.main

    @property
    def described(self) -> list[str]:
        """What was recorded beside accuracies over tasks, such as losses: it stands in tables and is not tested.

        One that names the families to measure has none.
        """
        return self.recorded.beside if self.analysis.families is None and self._over_tasks else []

    @property
    def _over_tasks(self) -> bool:
        return bool({"continual", "rigidity"} & set(self.results))

    def name_of(self, word: str) -> str:
        """The metric, or what was recorded, that a word stands for; any other word as it is."""
        name = metric_name(word)
        return name if name in metrics() else self.recorded.name_of(name)

    def settings(self, family: str) -> dict[str, Any]:
        """The settings that a family was measured with; empty if it was not."""
        result = self.results.get(family)
        return {} if result is None else dict(json.loads(result.attrs["settings"]))

    def confidence(self, family: str) -> float:
        """The level of a family's intervals over seeds: its own setting, or that of the analysis."""
        return float(self.settings(family).get("confidence", self.analysis.confidence))

    def changed_settings(self, but: str = "") -> list[str]:
        """The settings that were used and are not the defaults, a line per family that has any; one left out."""
        lines = []
        for family in self.results:
            usual = registry.families()[family].settings({})
            used = self.settings(family).items()
            own = {key: value for key, value in used if value != dump(usual)[key] and key != but}
            if own:
                said = ", ".join(f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in own.items())
                lines.append(f"{family} was measured with {said}")
        return lines

    def sentences(self) -> dict[str, str]:
        """Name of a cell -> what its numbers mean, where a family says so; the lead speaks first."""
        said: dict[str, str] = {}
        for family in self.order:
            result = self.results[family]
            if "sentence" in result:
                for name, sentence in zip(result["cell"].values, result["sentence"].values, strict=True):
                    if sentence:
                        said[str(name)] = f"{said[str(name)]} {sentence}" if str(name) in said else str(sentence)
        return said

    def notes(self, family: str | None = None) -> list[tuple[str, str]]:
        """(name of a cell, what is to be said of tasks, chance, unequal training); of one family, or of all."""
        said: dict[tuple[str, str], None] = {}
        if family in (None, "continual"):
            said |= dict.fromkeys(unequal_lengths(self.study))
        for name, result in self.results.items():
            for key in _NOTES if family in (None, name) else ():
                if key in result:
                    for cell, found in zip(result["cell"].values, result[key].values, strict=True):
                        said |= {(str(cell), str(note)): None for note in np.atleast_1d(found) if note}
        return list(said)

    def out_of_range(self, family: str | None = None) -> list[tuple[str, str]]:
        """(name of a cell, which values leave the range that their metric declares); of one family, or of all.

        The range is not theirs then, whoever is wrong: their interval is the plain t, also where all seeds agree.
        """
        said = []
        for name, metric in metrics().items():
            result = self.results.get(metric.family)
            if result is None or metric.scalar not in result or family not in (None, metric.family):
                continue
            within = self.declared(name).own_range
            ends = f"[{within[0]:g}, {within[1]:g}]"
            rows = result[metric.scalar].transpose("cell", "seed").values
            for cell, values in zip(result["cell"].values, rows, strict=True):
                outside, there = int(beyond(values, within).sum()), int((~np.isnan(values)).sum())
                if outside:
                    said.append((str(cell), f"{outside} of {there} values of {name} lie outside of {ends}"))
        return said

    def plain(self, rows: pd.DataFrame | None = None) -> dict[str, Any]:
        """All of it as plain data for JSON; `rows` are those of `table` that are wanted."""
        values = self.table() if rows is None else rows
        return {
            "values": values.astype(object).where(values.notna(), None).to_dict("records"),
            "verdicts": self.sentences(),
            "seals": self.seals,
            "seals_checked": self.checked,
            "origin": self.origin,
            "passed_over": self.passed_over,
            "settings": {family: self.settings(family) for family in self.results},
            "annotations": {run: vars(known) for run, known in self.annotations.items()},
            "roots": {entry.name: entry.root_hash for entry in (*self.study.entries, *self.study.probe_runs)},
        }

    def declared(self, name: str) -> Metric:
        """A metric as it was measured here: of losses, some have another name, direction, units and range."""
        if name not in metrics() and name in self.recorded.quantities:
            return self.recorded.quantities[name].metric
        metric = find_metric(name)
        result = self.results.get(metric.family)
        if result is None or metric.scalar not in result:
            return metric
        told = result[metric.scalar].attrs
        own = {key: told.get(key, getattr(metric, key)) for key in _OF_LOSSES}
        low, high = metric.range
        own["range"] = (float(told.get("valid_min", low)), float(told.get("valid_max", high)))
        return dataclasses.replace(metric, **own)

    @property
    def order(self) -> list[str]:
        """The families that were measured, the lead first.

        The lead is the family declared, else one whose result says a sentence, else one with metrics that matter most.
        """
        speaking = {family for family, result in self.results.items() if "sentence" in result}
        telling = {metric.family for metric in metrics().values() if metric.matters}

        def rank(family: str) -> tuple[bool, bool, bool, str]:
            return family != self.analysis.lead, family not in speaking, family not in telling, family

        return sorted(self.results, key=rank)

    def main_metrics(self) -> list[str]:
        """The few metrics of every family that matter most and have a value somewhere; the lead's come first.

        One that is another of them by definition in this study (`same_as`) is not there twice.
        """
        order = self.order
        ranked = [
            (order.index(metric.family), metric.matters, name)
            for name, metric in metrics().items()
            if metric.matters and metric.family in order
        ]
        found = []
        for _, _, name in sorted(ranked):
            metric = find_metric(name)
            result = self.results[metric.family]
            values = result.get(metric.scalar)
            twice = metric.same_as is not None and metric.same_as(result) in found
            if values is not None and bool(values.notnull().any()) and not twice:
                found.append(name)
        return [*self.ends, *found]

    table = tidy.table


def diagnose(
    study: Study,
    *,
    only: Sequence[str] | None = None,
    families: Sequence[str] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    baseline: str | None = None,
    tests: Tests | None = None,
    fresh: bool = False,
    watch: Watch | None = None,
    executor: Executor | None = None,
    partly: bool = False,
) -> Diagnosis:
    """Measure the families that the study declares, or all that it has the data for.

    `only` names families or metrics that must be measured (`partly`: as far as they can be), `families` those to try.
    What is not given here counts as the study declares it, or as the defaults are (see `analysis_of`); `settings` goes
    by family. Results come from the cache where runs, settings and versions are what they were; `fresh` computes them
    again. A family that refuses is passed over, with its reason; if it must be measured, that is an error. Runs and
    cells that do not fit are left out, as `fitting` says it. Seals are checked whenever a run's files changed since the
    last check, and if `fresh`; whatever is read of a sealed run is compared with its seal. Long families are measured
    piece by piece, on `executor` if there is one, and go on where they were stopped.
    """
    whole = study.confirmed()
    if not whole.entries:
        why = "".join(f". {said}" for said in whole.set_aside)
        raise WaterjarError(f"{study.path} holds no runs: there is nothing to measure{why}")
    study = fitting(whole)
    named = families if only is None else [family.name for family in _named(only, Recorded(study))]
    analysis = analysis_of(study, families=named, settings=settings, baseline=baseline, tests=tests)
    able = [entry.name for entry in (*whole.entries, *whole.probe_runs) if not entry.fault]
    marks = {name: fingerprint(study.path / name) for name in able}
    seals, checked = seal_states(whole, marks, again=marks if fresh else ())
    diagnosis = Diagnosis(study, {}, {}, {}, seals, analysis, checked)
    told = {run: f" {known.mark}".rstrip() for run, known in diagnosis.annotations.items()}
    made_of = {name: mark + told.get(name, "") for name, mark in marks.items()}
    for name in registry.families() if analysis.families is None else analysis.families:
        family = find_family(name)
        try:
            diagnosis.results[name], diagnosis.origin[name] = _measure(
                family, study, analysis, made_of, fresh, watch or _nobody, executor
            )
        except WaterjarError as error:
            if isinstance(error, DamagedError):  # whatever was believed of its seal
                _look_again(diagnosis, marks, error.path.name)
            if only is not None and not partly:
                raise
            diagnosis.passed_over[name] = str(error)
    return diagnosis


def _look_again(diagnosis: Diagnosis, marks: Mapping[str, str], run: str) -> None:
    """Check the seal of a run of which something could not be read as it was sealed."""
    if diagnosis.checked.pop(run, None) is not None:
        states, _ = seal_states(diagnosis.study, {run: marks[run]}, again=(run,))
        diagnosis.seals.update(states)


def _named(only: Sequence[str], recorded: Recorded) -> list[Family]:
    """The families that must be measured; what was recorded needs none."""
    found: dict[str, Family] = {}
    known = registry.families()
    for name in only:
        if name not in known and metric_name(name) not in metrics():
            if recorded.name_of(name) in recorded.quantities:
                continue
            raise SHELF.absent(name, [*known, *recorded.quantities, *metric_words()], "family or metric")
        family = known[name] if name in known else known[find_metric(name).family]
        found[family.name] = family
    return list(found.values())


def _measure(
    family: Family,
    study: Study,
    analysis: Analysis,
    marks: Mapping[str, str],
    fresh: bool,
    watch: Watch,
    executor: Executor | None,
) -> tuple[xr.Dataset, dict[str, str]]:
    """One family over (cell, seed, ...), and unit -> where it came from: from the cache where it can be."""
    settings = analysis.settings_of(family)
    results: dict[str, xr.Dataset] = {}
    origin: dict[str, str] = {}
    units = units_of(family, study, analysis)
    for i, unit in enumerate(units):
        watch(family.name, i, len(units))
        both = (*unit.runs, *(() if unit.baseline is None else unit.baseline.runs))
        runs = {name: marks[name] for run in both for name in (run.path.name, *run.probed_by)}
        key = piece_key(family, unit, runs, settings)
        parts = Parts(study.path / FOLDER / "parts" / key) if family.in_pieces else None
        told = functools.partial(_tell, watch, family.name, i, len(units))
        how = dataclasses.replace(unit, pieces=PieceRunner(executor, told, parts))
        compute = functools.partial(measure_unit, family, how, settings)
        results[unit.name], origin[unit.name] = cached(family, unit, runs, settings, study.path, compute, fresh=fresh)
        if parts is not None:
            parts.clear()
    watch(family.name, len(units), len(units))
    return assemble(family, results, study, settings), origin


def _nobody(family: str, done: float, units: int) -> None:
    """Nobody watches."""


def _tell(watch: Watch, family: str, unit: int, units: int, done: int, pieces: int) -> None:
    watch(family, unit + done / pieces, units)
