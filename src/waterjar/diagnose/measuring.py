"""Measuring: a family builds its inputs once, every metric gets those it reads, and the results are labelled.

A unit is what is measured at once: a run, or the runs of a cell. `Family.load` reads of it what the family's inputs are
made of; `Loaded.inputs` hands them out, each with its place along the dimensions that `Family.inputs` names.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.analysis import Analysis, analysis_of
from waterjar.diagnose.baseline import find_baselines
from waterjar.diagnose.calling import Lock, named, with_settings
from waterjar.diagnose.labelled import join_runs, side_by_side, stamp, variable
from waterjar.diagnose.pieces import PieceRunner
from waterjar.diagnose.registry import Family, Metric
from waterjar.diagnose.result import NOT_RECORDED, UNDEFINED, Result
from waterjar.errors import WaterjarError, brief, unknown_name
from waterjar.run.cells import method_of
from waterjar.run.index import entry_of
from waterjar.run.join import check_seeds
from waterjar.run.reader import Run
from waterjar.run.study import Study, load_runs

Variables = dict[str, xr.Variable]
METRIC = "metric"
"""Key of a variable's encoding: the metric that it is of."""


@dataclass(frozen=True)
class Unit:
    """What is measured at once: a run, or the runs of a cell, and of a family that compares those of its baseline."""

    name: str
    """Of the run, or the id of the cell."""
    runs: tuple[Run, ...]
    title: str
    """The name of the cell in tables."""
    baseline: Unit | None = None
    is_baseline: bool = False
    """Whether it is the baseline itself."""
    note: str = ""
    """What is to be said of its baseline."""
    pieces: PieceRunner = field(default_factory=PieceRunner)
    kept: dict[str, xr.Dataset | None] | None = None
    """Groups that were read, where others read them, too: a baseline's."""

    @property
    def seeds(self) -> list[int]:
        """Of all repeats, run by run."""
        return [seed for run in self.runs for seed in run.seeds]

    @property
    def repeats(self) -> dict[str, Any]:
        """The coordinates that every result has."""
        return {
            "repeat": ("repeat", np.arange(len(self.seeds)), {"long_name": "repeat"}),
            "seed": ("repeat", self.seeds, {"long_name": "seed of the repeat"}),
        }

    def told(self, name: str) -> Any:
        """What its runs say of themselves in their root or annotations; None where none does, and they must agree."""
        found = {run.path.name: run.attributes.get(name) for run in self.runs}
        known = {run: value for run, value in found.items() if value is not None}
        first = next(iter(known), "")
        for run, value in known.items():
            if value != known[first]:
                raise WaterjarError(
                    f"{name} of {first} is {brief(known[first])}, of {run} {brief(value)}: runs of one cell must agree"
                )
        return known.get(first)

    @property
    def chance(self) -> float | tuple[float, ...] | None:
        """Of guessing where all classes compete, for all tasks or each: as annotated, else 1 / classes, or None."""
        told, classes = self.told("chance"), self.told("classes")
        if told is not None:
            return tuple(told) if isinstance(told, list) else float(told)
        return 1 / len(classes) if classes else None

    def load(self, group: str, only: Collection[str] | None = None) -> xr.Dataset | None:
        """A group of all runs in memory, joined along `repeat`; None if no run has it. `only` these variables."""
        if self.kept is None:
            return load_runs(self.runs, group, only)
        if group not in self.kept:
            self.kept[group] = load_runs(self.runs, group)
        return self.kept[group]


class Loaded:
    """What a family has read of a unit. Families say what is theirs; this is what they have in common."""

    def __init__(
        self, unit: Unit, coordinates: Mapping[str, Any] | None = None, about: Mapping[str, Any] | None = None
    ) -> None:
        self.unit = unit
        self.coordinates: dict[str, Any] = {**unit.repeats, **(coordinates or {})}
        self.about = dict(about or {})
        """Attributes of the result as a whole."""

    @property
    def sizes(self) -> dict[str, int]:
        """Dimension -> how many labels it has."""
        return {name: len(one[1] if isinstance(one, tuple) else one) for name, one in self.coordinates.items()}

    def inputs(self, wanted: Collection[type]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """Every input of the types wanted, and its place: positions along the dimensions of its type.

        An input of all repeats has the place `()`.
        """
        raise NotImplementedError

    def summary(self, metric: Metric, table: Table) -> Variables:
        """The one number per repeat of a metric that has more."""
        return {}

    def attributes(self, metric: Metric) -> dict[str, Any]:
        """Where a metric here differs from its declaration."""
        return {}

    def undefined(self, metric: Metric) -> int:
        """Why a metric is not defined for what was recorded here, as a code: it is not computed then. 0 where it is."""
        return 0

    def close(self, found: Variables) -> Variables:
        """What stands beside the metrics, when all are there."""
        return {}


class Table:
    """Values of one metric, filled in place by place; what is never filled in is missing, for one `reason`."""

    def __init__(self, dims: tuple[str, ...], sizes: Mapping[str, int], reason: int = NOT_RECORDED) -> None:
        self.dims = dims
        for dim in dims:
            if dim not in sizes:
                raise unknown_name("dimension", dim, sizes)
        shape = tuple(sizes[dim] for dim in dims)
        self.values = np.full(shape, np.nan)
        self.reasons = np.full(shape, reason, np.uint8)
        self.counts = np.zeros(shape, np.int64)
        self.errors: Any = None

    def put(self, place: tuple[Any, ...], result: Result) -> None:
        """One result at its place."""
        shape = getattr(result.value, "shape", ())
        if shape != self.values[place].shape:
            raise WaterjarError(
                f"a result of shape {shape} where {self.values[place].shape} is expected: "
                f"it is over {', '.join(self.dims[len(place) :]) or 'nothing'}"
            )
        self.values[place], self.reasons[place], self.counts[place] = result.value, result.code, result.n
        error = result.standard_error
        if self.errors is None and (math.isfinite(error) if isinstance(error, float) else np.isfinite(error).any()):
            self.errors = np.full(self.values.shape, np.nan)
        if self.errors is not None:
            self.errors[place] = error

    def labelled(self, name: str, attributes: Mapping[str, Any] | None = None) -> Variables:
        """As variables: the values, why some are missing, and standard errors where there are any."""
        found = variable(name, self.dims, self.values, self.reasons, attributes)
        if self.errors is not None:
            why = np.where(np.isnan(self.errors), np.where(self.reasons > 0, self.reasons, UNDEFINED), 0)
            found |= variable(f"{name}_se", self.dims, self.errors, why.astype(np.uint8))
        return found


def measure(family: Family, source: Run | Study, given: Mapping[str, Any]) -> xr.Dataset:
    """A run over (repeat, ...), or a study over (cell, seed, ...), with the settings that count; nothing is kept."""
    if not isinstance(source, Run | Study):
        raise WaterjarError(f"{source!r} is neither a run nor a study: open it with open_run or open_study")
    study = source.confirmed() if isinstance(source, Study) else study_of(source)
    analysis = analysis_of(study, families=[family.name], settings={family.name: given})
    settings = analysis.settings_of(family)
    if isinstance(source, Run):
        if not has_groups(source, family.needs):
            raise WaterjarError(f"{source.path} has recorded no {_words(family.needs)}: there is nothing to measure")
        note = "a single run has no baseline: measure the study"
        unit = Unit(source.path.name, (source,), method_of(source.config) or source.path.name, note=note)
        found = measure_unit(family, unit, settings)
        stamp(found, family, settings, study)
        return found
    results = {unit.name: measure_unit(family, unit, settings) for unit in units_of(family, study, analysis)}
    return assemble(family, results, study, settings)


def study_of(run: Run) -> Study:
    """A single run as a study of one."""
    return Study(run.path.parent, [entry_of(run)], {run.path.name: run})


def units_of(
    family: Family,
    study: Study,
    analysis: Analysis,
    pieces: PieceRunner | None = None,
) -> list[Unit]:
    """The units of a study that have recorded what the family needs."""
    runs = {entry.name: study.open(entry) for entry in study.entries}
    able = [entry for entry in study.entries if has_groups(runs[entry.name], family.needs)]
    if not able:
        lacking = [need for need in family.needs if not any(has_groups(run, [need]) for run in runs.values())]
        absent = _words(lacking or family.needs)
        raise WaterjarError("; ".join([f"no run has recorded {absent}", *_left_out(family, study)]))
    cells_of_able = Study(study.path, able).cells
    for entries in cells_of_able.values():  # the same network twice is no second seed
        check_seeds({entry.name: entry.seeds for entry in entries})
    how = pieces or PieceRunner()
    if family.scope == "run":
        return [Unit(entry.name, (runs[entry.name],), "", pieces=how) for entry in able]
    names = study.cell_names
    cells: dict[str, Unit] = {}
    for cell, entries in cells_of_able.items():
        own = tuple(runs[entry.name] for entry in entries)
        cells[cell] = Unit(cell, own, names[cell], pieces=how, kept={} if family.compared else None)
    if not family.compared:
        return list(cells.values())
    found, notes = find_baselines(study, analysis.settings_of(family).baseline, analysis.rule, runs)
    return [
        replace(one, baseline=cells.get(str(found[cell])), is_baseline=found[cell] == cell, note=notes.get(cell, ""))
        for cell, one in cells.items()
    ]


def _left_out(family: Family, study: Study) -> list[str]:
    """Why what a family needs is not there although it was recorded."""
    needs = {part for need in family.needs for part in need.split("|")}
    return [why for group, why in study.left_out if group in needs]


def has_groups(run: Run, needs: Sequence[str]) -> bool:
    """Whether what a family needs was recorded; `features|weights` needs one of the two."""

    def there(need: str) -> bool:
        return any(group == need or group.startswith(f"{need}/") for group in run.groups)

    return all(any(there(part) for part in need.split("|")) for need in needs)


def _words(needs: Sequence[str]) -> str:
    return " and ".join(needs).replace("|", " or ")


def measure_unit(
    family: Family,
    unit: Unit,
    settings: Any,
    wanted: Iterable[Metric] | None = None,
    before: xr.Dataset | None = None,
) -> xr.Dataset:
    """The metrics of a unit, over (repeat, ...); `before` has those that are not `wanted` now."""
    loaded = family.load(unit, settings)
    metrics = list(family.metrics.values() if wanted is None else wanted)
    readers: dict[type, list[Metric]] = {}
    for metric in (one for one in metrics if not loaded.undefined(one)):
        readers.setdefault(metric.input, []).append(metric)
    sizes = loaded.sizes
    tables: dict[str, Table] = {}
    for given, place in loaded.inputs(readers.keys()):
        lock = Lock()
        lock.close(given)
        for metric in readers.get(type(given), ()):
            with named(metric):
                got = with_settings(metric, settings)(given)
                lock.check()
                result, beside = got if isinstance(got, tuple) else (got, {})
                for name, one in {metric.name: result, **beside}.items():
                    if one is None and (metric.optional or name != metric.name):
                        continue
                    if name not in tables:
                        tables[name] = Table((*family.inputs[metric.input], *_dims_of(metric, name)), sizes)
                    if not isinstance(one, Result):
                        raise WaterjarError(f"expected a Result, and it gave {type(one).__name__}")
                    tables[name].put(place, one)
    others = family.metrics.keys() - {metric.name for metric in metrics}
    found: Variables = {} if before is None else _of_metrics(before, others)
    for metric in metrics:
        if metric.name not in tables:
            if metric.optional:
                continue
            why = loaded.undefined(metric) or NOT_RECORDED
            tables[metric.name] = Table((*family.inputs[metric.input], *metric.dims), sizes, why)
        made = tables[metric.name].labelled(metric.name, loaded.attributes(metric))
        for name, about in metric.beside.items():
            if name in tables:
                made |= tables[name].labelled(name, about.labels)
        made |= loaded.summary(metric, tables[metric.name])
        for one in made.values():
            one.encoding[METRIC] = metric.name
        found |= made
    found |= loaded.close(found)
    coordinates = {name: found.pop(name) for name in list(found) if found[name].dims == (name,)}
    return xr.Dataset(found, {**coordinates, **loaded.coordinates}, loaded.about)


def _dims_of(metric: Metric, name: str) -> tuple[str, ...]:
    """The dimensions of what a metric gives, or of what stands beside it."""
    if name == metric.name:
        return metric.dims
    if name not in metric.beside:
        raise unknown_name("what it gives beside", name, metric.beside)
    return metric.beside[name].dims


def _of_metrics(result: xr.Dataset, names: Collection[str]) -> Variables:
    """The variables of some metrics. Those of others, and what stands beside, are not to outlive what they are of."""
    return {str(name): v.variable for name, v in result.data_vars.items() if v.encoding.get(METRIC) in names}


def assemble(family: Family, results: Mapping[str, xr.Dataset], study: Study, settings: Any) -> xr.Dataset:
    """Results of units as one Dataset over (cell, seed, ...), labelled and stamped."""
    cells: dict[str, xr.Dataset] = {}
    for cell, entries in study.cells.items():
        if family.scope == "cell":
            if cell in results:
                cells[cell] = results[cell]
        else:
            parts = {entry.name: results[entry.name] for entry in entries if entry.name in results}
            if parts:
                cells[cell] = join_runs(parts)
    joined = side_by_side(cells, study)
    stamp(joined, family, settings, study)
    return joined
