"""All diagnostics of a study at once, cached, and as one tidy table."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from waterjar.diagnose.cache import FOLDER, cached, fingerprint, piece_key
from waterjar.diagnose.job import Executor, Job, Parts
from waterjar.diagnose.labelled import join_runs, label_cells, put_cells_together, reasons_of, side_by_side, stamp
from waterjar.diagnose.registry import Family, Metric, families, find_metric, metrics
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.reader import Run
from waterjar.run.root import read_root
from waterjar.run.schema import REASONS
from waterjar.run.seal import verify
from waterjar.run.store import LocalStore
from waterjar.run.study import Entry, Study

_STATES = ("sealed", "open", "tampered")
COLUMNS = ("family", "metric", "cell", "name", "scenario", "seed", "value", "reason")
Watch = Callable[[str, float, int], None]
"""Called with a family's name, how many of its units are done, and how many there are."""


@dataclass(frozen=True)
class Diagnosis:
    """What was measured, family by family, where it came from, and whether the seals of the runs hold."""

    study: Study
    results: dict[str, xr.Dataset]
    origin: dict[str, dict[str, str]] = field(default_factory=dict)
    """family -> unit -> `cached`, `new`, or why it was computed again."""
    passed_over: dict[str, str] = field(default_factory=dict)
    """family -> why there was nothing to measure."""
    seals: dict[str, str] = field(default_factory=dict)
    """run -> sealed, open or tampered."""

    @property
    def roots(self) -> dict[tuple[str, int], str]:
        """(cell, seed) -> the root hash of its run, or `unsealed`."""
        return {
            (entry.cell_id, seed): entry.root_hash or "unsealed" for entry in self.study.entries for seed in entry.seeds
        }

    def declared(self, name: str) -> Metric:
        """A metric as it was measured here: of losses, some have another direction and other units."""
        metric = find_metric(name)
        result = self.results.get(metric.family)
        if result is None or metric.scalar not in result:
            return metric
        own = {key: result[metric.scalar].attrs.get(key, getattr(metric, key)) for key in ("direction", "units")}
        return dataclasses.replace(metric, **own)

    def table(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """One row per metric, cell and seed. Metrics that were not measured are an error if asked for by name."""
        wanted = [find_metric(name) for name in names] if names is not None else list(metrics().values())
        parts = []
        for metric in wanted:
            result = self.results.get(metric.family)
            if result is not None and metric.scalar in result:
                parts.append(tidy(result, metric, self.study))
            elif names is not None:
                why = self.passed_over.get(metric.family, f"{metric.family} did not measure it")
                raise WaterjarError(f"metric '{metric.name}' has no value here: {why}")
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(COLUMNS))


def tidy(result: xr.Dataset, metric: Metric, study: Study) -> pd.DataFrame:
    """One row per cell and seed that was run; what is missing stays, with its reason."""
    values = result[metric.scalar].transpose("cell", "seed")
    codes = reasons_of(result, metric.scalar).transpose("cell", "seed").values
    ran = {cell: {seed for entry in entries for seed in entry.seeds} for cell, entries in study.cells.items()}
    rows = []
    for i, (cell, name, scenario) in enumerate(
        zip(values["cell"].values, values["name"].values, values["scenario"].values, strict=True)
    ):
        for j, seed in enumerate(values["seed"].values):
            if int(seed) in ran.get(str(cell), ()):
                about = (metric.family, metric.name, str(cell), str(name), str(scenario), int(seed))
                rows.append((*about, float(values.values[i, j]), REASONS[codes[i, j]]))
    return pd.DataFrame(rows, columns=list(COLUMNS))


class _LookedAtError(Exception):
    """Settings were fine: the source was looked at."""


class _Untouched(Study):
    """A study of which nothing is known."""

    def __init__(self) -> None:
        pass

    def __getattribute__(self, name: str) -> Any:
        """Nothing but what it is."""
        if name.startswith("__"):
            return object.__getattribute__(self, name)
        raise _LookedAtError


def check_settings(family: Family, settings: Mapping[str, Any]) -> None:
    """Refuse settings that `measure` would refuse, before there is anything to measure.

    `measure` looks at its settings before it looks at its source.
    """
    family.settings(settings)
    with contextlib.suppress(_LookedAtError):
        family.measure(_Untouched(), **settings)


def diagnose(
    study: Study,
    *,
    only: Sequence[str] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    fresh: bool = False,
    watch: Watch | None = None,
    executor: Executor | None = None,
) -> Diagnosis:
    """Measure every family that the study has the data for, or `only` the named families or metrics.

    `settings` goes by family. Results come from the cache where runs, settings and versions are what they were;
    `fresh` computes them again. A family that refuses is passed over, with its reason; asked for by name, it is an
    error. Seals are checked whenever a run's files changed since the last check. Long families are measured piece by
    piece, on `executor` if there is one, and go on where they were stopped.
    """
    if not study.entries:
        raise WaterjarError(f"{study.path} holds no runs: there is nothing to measure")
    for entry in study.entries:
        if entry.status == "damaged":
            raise WaterjarError(f'{entry.progress["error"]}. Leave it out with --where "status != damaged"')
    given = dict(settings or {})
    for name in given:
        if name not in families():
            raise unknown_name("settings: family", name, families())
    marks = {entry.name: fingerprint(study.path / entry.name) for entry in study.entries}
    diagnosis = Diagnosis(study, {}, {}, {}, _seals(study, marks))
    groups = {entry.name: _groups(study.path / entry.name) for entry in study.entries}
    for family in _wanted(only):
        full = family.settings(given.get(family.name, {}))
        able = [entry for entry in study.entries if _has(groups[entry.name], family.needs)]
        try:
            if not able:
                raise WaterjarError(f"no run has recorded {' and '.join(family.needs).replace('|', ' or ')}")
            part = Study(study.path, able)
            result, origin = _measure(family, part, full, fresh, watch, executor, marks)
        except WaterjarError as error:
            if only is not None:
                raise
            diagnosis.passed_over[family.name] = str(error)
            continue
        diagnosis.results[family.name] = label_cells(stamp(result, family, full, part), study)
        diagnosis.origin[family.name] = origin
    return diagnosis


def _wanted(only: Sequence[str] | None) -> list[Family]:
    known = families()
    if only is None:
        return list(known.values())
    found: dict[str, Family] = {}
    for name in only:
        if name not in known and name not in metrics():
            raise unknown_name("family or metric", name, [*known, *metrics()])
        family = known[name] if name in known else known[metrics()[name].family]
        found[family.name] = family
    return list(found.values())


def _groups(run: Path) -> set[str]:
    nodes = read_root(run)["consolidated_metadata"]["metadata"]
    return {key.rpartition("/")[0] for key, node in nodes.items() if node["node_type"] == "array"}


def _has(groups: set[str], needs: Sequence[str]) -> bool:
    """Whether what a family needs was recorded; `features|weights` needs one of the two."""

    def there(need: str) -> bool:
        return any(group == need or group.startswith(f"{need}/") for group in groups)

    return all(any(there(part) for part in need.split("|")) for need in needs)


def _measure(
    family: Family,
    study: Study,
    settings: dict[str, Any],
    fresh: bool,
    watch: Watch | None,
    executor: Executor | None,
    marks: Mapping[str, str],
) -> tuple[xr.Dataset, dict[str, str]]:
    """One family over a study, unit by unit, each from the cache where it can be."""
    results: dict[str, xr.Dataset] = {}
    origin: dict[str, str] = {}
    units = list(_units(family, study))
    for i, (unit, source, entries) in enumerate(units):
        if watch is not None:
            watch(family.name, i, len(units))
        runs = {entry.name: marks[entry.name] for entry in entries}
        compute = functools.partial(family.measure, source, **settings)
        parts = None
        if family.in_pieces:
            parts = Parts(study.path / FOLDER / "parts" / piece_key(family, unit, runs, settings))
            told = None if watch is None else functools.partial(_tell, watch, family.name, i, len(units))
            compute = functools.partial(compute, Job(executor, told, parts))
        results[unit], origin[unit] = cached(family, unit, runs, settings, study.path, compute, fresh=fresh)
        if parts is not None:
            parts.clear()
    if watch is not None:
        watch(family.name, len(units), len(units))
    if family.scope == "study":
        return results["study"], origin
    if family.scope == "cell":
        return put_cells_together(results), origin
    cells = {
        cell: join_runs({entry.name: results[entry.name] for entry in entries}) for cell, entries in study.cells.items()
    }
    return side_by_side(cells, study), origin


def _tell(watch: Watch, family: str, unit: int, units: int, done: int, pieces: int) -> None:
    watch(family, unit + done / pieces, units)


def _units(family: Family, study: Study) -> Iterator[tuple[str, Run | Study, list[Entry]]]:
    if family.scope == "study":
        yield "study", study, study.entries
    elif family.scope == "cell":
        for cell, entries in study.cells.items():
            yield cell, Study(study.path, entries), entries
    else:
        for entry in study.entries:
            yield entry.name, Run(study.path / entry.name), [entry]


def _seals(study: Study, marks: Mapping[str, str]) -> dict[str, str]:
    """run -> whether its seal holds; read anew only where a file has changed since."""
    file = f"{FOLDER}/seals.json"
    try:
        known = dict(json.loads((study.path / file).read_bytes()))
    except (OSError, ValueError, TypeError):
        known = {}
    found = {}
    for entry in study.entries:
        mark, before = marks[entry.name], known.get(entry.name)
        if isinstance(before, list) and len(before) == 2 and before[0] == mark and before[1] in _STATES:
            found[entry.name] = before
        else:
            found[entry.name] = [mark, verify(study.path / entry.name).state]
    if any(known.get(name) != value for name, value in found.items()):
        with contextlib.suppress(WaterjarError):  # a read-only study is checked every time
            LocalStore(study.path).put(file, json.dumps({**known, **found}).encode())
    return {name: state for name, (_, state) in found.items()}
