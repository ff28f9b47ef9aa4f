"""What a user sees of a diagnosis: the metrics without what stands beside them, and a few lines, not all numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.registry import find_family, metrics
from waterjar.errors import WaterjarError, brief, unknown_name
from waterjar.run.notebook import counted, numbers_in_words, table
from waterjar.run.schema import REASONS
from waterjar.run.shown import visible

if TYPE_CHECKING:
    from waterjar.diagnose.study import Diagnosis

_LONGEST = 160
_MOST_CELLS = 8


def result_of(found: Diagnosis, family: str) -> xr.Dataset:
    """Everything that was measured of a family; of one that was not, why."""
    if family in found.results:
        return found.results[family]
    if family in found.passed_over:
        raise WaterjarError(f"{family} was not measured: {found.passed_over[family]}")
    known = [*found.results, *found.passed_over]
    if family not in known:
        owner = metrics().get(family)
        hint = "" if owner is None else f"{family} is a metric of {owner.family}: [{owner.family!r}][{family!r}]"
        raise unknown_name("family", family, known, hint)
    raise AssertionError(family)


def metrics_of(found: Diagnosis, family: str) -> xr.Dataset:
    """The metrics of a family in full, without their companions."""
    result = result_of(found, family)
    return _only(result, [name for name in find_family(family).metrics if name in result])


def per_seed(found: Diagnosis, family: str) -> xr.Dataset:
    """One number per cell and seed of every metric of a family: what enters tables and tests."""
    result = result_of(found, family)
    own = {m.scalar: m.name for m in find_family(family).metrics.values() if m.scalar in result}
    made = {own[name]: result[name] for name in own}
    return xr.Dataset(made, attrs=result.attrs)


def reasons_in(found: Diagnosis, family: str) -> xr.Dataset:
    """Why values of the metrics are missing, in words; empty where they are there."""
    shown = metrics_of(found, family)
    words = np.array(["", *REASONS[1:]], object)
    made = {}
    for name in shown.data_vars:
        codes = reasons_of(found.results[family], str(name))
        made[str(name)] = codes.copy(data=words[codes.values.astype(int)])
        made[str(name)].attrs = {"long_name": f"why {name} is missing"}
    return xr.Dataset(made)


def beside(found: Diagnosis, family: str) -> xr.Dataset:
    """What stands beside the metrics of a family: standard errors, bounds, counts, codes of reasons, notes."""
    result = result_of(found, family)
    return result.drop_vars([name for name in find_family(family).metrics if name in result])


def _only(result: xr.Dataset, names: list[str]) -> xr.Dataset:
    """Some variables with the coordinates that they have, and no others."""
    kept = result[names]
    dims = {dim for name in names for dim in result[name].dims}
    gone = [name for name, item in kept.coords.items() if not set(item.dims) <= dims]
    return kept.drop_vars(gone)


def text(found: Diagnosis) -> str:
    """Families, cells, seeds, and what was passed over and why, in a line each."""
    lines = [f"<waterjar.Diagnosis of {found.study.path}", f"  {_cells(found)}"]
    lines += [f"  {family}: {words}" for family, words in _families(found)]
    lines += [f"  recorded, and compared at the end: {', '.join(found.ends)}"] * bool(found.ends)
    lines += [f"  not measured: {family}: {why}" for family, why in _passed_over(found)]
    lines += [f"  {line}" for line in (*found.study.notes, *_seals(found))]
    return visible_lines(lines) + ">"


def visible_lines(lines: list[str]) -> str:
    """Lines as a terminal may have them: names come from files."""
    return "\n".join(map(visible, lines))


def page(found: Diagnosis) -> str:
    """The same as a small table."""
    rows = [*_families(found), *((family, f"not measured: {why}") for family, why in _passed_over(found))]
    notes = [
        _cells(found),
        *found.study.notes,
        *_seals(found),
        'found["family"]: its metrics; .summary(): means over seeds; .table(): all',
    ]
    return table(f"waterjar diagnosis of {found.study.path.name}", ("family", "measured"), rows, notes)


def annotation_lines(found: Diagnosis) -> list[str]:
    """A line per file of annotations that counted: of how many runs, and the hash of the file."""
    whose: dict[str, list[str]] = {}
    for run, known in found.annotations.items():
        for digest in known.digest.split():
            whose.setdefault(digest, []).append(run)
    return [
        f"annotated: {len(runs)} of {len(found.study)} runs ({', '.join(runs[:3])}{', …' if len(runs) > 3 else ''}), "
        f"sha256 {digest}"
        for digest, runs in whose.items()
    ]


def _families(found: Diagnosis) -> Iterator[tuple[str, str]]:
    for family in found.order:
        own = [m for m in find_family(family).metrics.values() if m.scalar in found.results[family]]
        there = sum(bool(found.results[family][m.scalar].notnull().any()) for m in own)
        more = "" if there == len(own) else f", {len(own) - there} of them without a value: see .reasons({family!r})"
        yield family, f"{counted(len(own), 'metric')}{more}"


def _passed_over(found: Diagnosis) -> Iterator[tuple[str, str]]:
    for family, why in found.passed_over.items():
        yield family, brief(" ".join(why.split()), _LONGEST)


def _cells(found: Diagnosis) -> str:
    study = found.study
    names = [brief(name, 40) for name in study.cell_names.values()]
    more = f" and {len(names) - _MOST_CELLS} more" if len(names) > _MOST_CELLS else ""
    seeds = sorted({seed for entry in study.entries for seed in entry.seeds})
    return (
        f"{counted(len(study), 'run')}; cells {', '.join(names[:_MOST_CELLS])}{more}; seeds {numbers_in_words(seeds)}"
    )


def _seals(found: Diagnosis) -> list[str]:
    words = {"tampered": "changed since they were sealed", "open": "not sealed yet"}
    counts = {state: sum(one == state for one in found.seals.values()) for state in words}
    return [f"{count} of {len(found.seals)} runs {words[state]}" for state, count in counts.items() if count]
