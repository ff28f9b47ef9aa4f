"""Does a metric keep the contract?

A small study is recorded with everything that a family may read, and the metric is measured of it: alone, again, before
and after the others of its family, with its runs in another order, and with one seed broken, in part and as a whole.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel

from waterjar.diagnose.analysis import analysis_of
from waterjar.diagnose.calling import note_of
from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.measuring import METRIC, Unit, measure_unit, units_of
from waterjar.diagnose.registry import Family, Metric, families, find_metric, metrics
from waterjar.diagnose.result import Result
from waterjar.diagnose.settings import dump
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASON
from waterjar.run.study import Study
from waterjar.testing.recorded import MIDDLE, SEEDS, small_study

if TYPE_CHECKING:
    import xarray as xr


class ContractError(AssertionError):
    """A metric that does not keep the contract, and what it does."""


def check_metric(
    metric: str | Callable[..., Any],
    *,
    better: Any = None,
    worse: Any = None,
    settings: Mapping[str, Any] | None = None,
) -> tuple[str, ...]:
    """Refuse, with a `ContractError`, a metric that does not keep the contract.

    Looked at: its declaration; dimensions and labels of what it gives; that every NaN has a reason and no number has
    one; that all lies within its range; that the same comes again, whatever else is measured and in whatever order
    the runs stand; that each of its inputs is left as it was, with all that was worked out of it, and that the numbers
    of the other metrics are the same to the bit whether they are measured before or after it; that one broken seed
    costs no other its value (of a metric that compares seeds, that nothing breaks); that of a seed of which all is NaN
    it has no number, but where NaN changes nothing (a count of steps, say). What it gives beside itself is looked at
    likewise, but has no range. Its direction is looked at only where two inputs of it, `better` and `worse`, are given:
    no change of a study is better for every metric. What was not looked at is returned.

    >>> check_metric("average_accuracy")
    ("direction 'higher' was not looked at: give better= and worse=, two inputs of it",)
    """
    declared = _find(metric)
    if (better is None) != (worse is None):
        raise WaterjarError("better and worse tell a direction together: expected both, or neither")
    _check_declaration(declared)
    family = families()[declared.family]
    options = family.settings(settings or {})
    try:
        _check_measured(declared, family, options)
        if better is not None:
            _check_direction(declared, options, better, worse)
    except ContractError:
        raise
    except Exception as error:
        if isinstance(error.__cause__, ContractError):  # of a metric from outside, named as any error of it is
            raise error.__cause__ from None
        what = f"it could not be measured: {type(error).__name__}: {error}"
        for other in family.metrics.values():
            if other is not declared and note_of(other) in getattr(error, "__notes__", ()):
                raise _refuse(other, f"{what}. '{declared.name}' can be looked at when that is put right") from error
        raise _refuse(declared, what) from error
    seen = better is not None or declared.direction == "none"
    return (
        ()
        if seen
        else (f"direction '{declared.direction}' was not looked at: give better= and worse=, two inputs of it",)
    )


def _check_measured(metric: Metric, family: Family, settings: Any) -> None:
    by_itself = _alone(metric, family, settings)
    whole = _of_all(metric, settings)
    values = [result[metric.scalar].values for result in whole.values() if metric.scalar in result]
    if all(np.isnan(found).all() for found in values):
        raise _refuse(metric, "it has no number anywhere in the study it is tried on: does it need other settings?")
    for unit, result in whole.items():
        _check_labels(metric, family, result, unit)
        _check_numbers(metric, result, unit)
    backwards = _of_all(metric, settings, order="backwards")
    if _others_that_differ(metric, whole, backwards):  # whoever did it: was it this one?
        first, last = (_of_all(metric, settings, order=order) for order in ("first", "last"))
        for name in _others_that_differ(metric, first, last):
            raise _refuse(metric, f"it changes {name}, which is another one where it is measured after it")
    for unit, alone in by_itself.items():
        _same(metric, whole[unit], alone, "where it is measured alone, or again")
    for unit, turned in _of_all(metric, settings, turned=True).items():
        _same(metric, whole[unit], turned, "where runs stand in another order")
    for unit, broken in _of_all(metric, settings, broken=SEEDS[-1]).items():
        _check_numbers(metric, broken, unit)
        if not metric.between_seeds:
            _same(metric, whole[unit], broken, "where another seed is broken", without=SEEDS[-1])
    for unit, gone in _of_all(metric, settings, broken=SEEDS[-1], since=0).items():
        _check_numbers(metric, gone, unit)
        _check_gone(metric, whole[unit], gone, unit)


def _find(metric: str | Callable[..., Any]) -> Metric:
    if isinstance(metric, str):
        return find_metric(metric)
    for declared in metrics().values():
        if declared.compute is metric:
            return declared
    raise WaterjarError(f"{getattr(metric, '__name__', metric)!r} is no metric: declare it with @metric")


def _refuse(metric: Metric, what: str) -> ContractError:
    return ContractError(f"metric '{metric.name}' of {metric.family}: {what}")


def _check_declaration(metric: Metric) -> None:
    for key in ("long_name", "formula", "units", "citation"):
        if not getattr(metric, key).strip():
            raise _refuse(metric, f"its {key} is empty")
    if not metric.range[0] < metric.range[1]:
        raise _refuse(metric, f"its range {metric.range} has no width")
    own = families()[metric.family].inputs[metric.input]
    if not metric.summary and (metric.dims or own != ("repeat",)):
        raise _refuse(metric, "it has more than one number per seed and no summary, which names the one for tables")


@functools.cache
def _study(broken: int | None, since: int) -> Study:
    folder = tempfile.TemporaryDirectory(prefix="waterjar-contract-")
    study = small_study(folder.name, broken=broken, since=since)
    study.folder = folder  # type: ignore[attr-defined] # it goes when the study does
    return study


def _units(family: Family, settings: Any, study: Study) -> list[Unit]:
    return units_of(family, study, analysis_of(study, families=[family.name], settings={family.name: dump(settings)}))


def _of_all(
    metric: Metric,
    settings: Any,
    *,
    broken: int | None = None,
    since: int = MIDDLE,
    turned: bool = False,
    order: str = "by name",
    again: bool = False,
) -> dict[str, xr.Dataset]:
    """Unit -> all metrics of the family, kept for the next one that is looked at.

    They are measured in an order: "by name", "backwards", or this metric "first" or "last". `again` asks
    for the last unit once more, unwatched.
    """
    declared = list(families()[metric.family].metrics.values())
    if order in ("first", "last"):
        declared.sort(key=lambda one: (one.name == metric.name) == (order == "last"))
    elif order == "backwards":
        declared.reverse()
    known = tuple((one.name, one.version, one.compute) for one in declared)  # by identity, held here
    return _kept(metric.family, json.dumps(dump(settings)), known, broken, since, turned, again)


@functools.lru_cache(maxsize=64)
def _kept(
    name: str, settings: str, known: tuple[Any, ...], broken: int | None, since: int, turned: bool, again: bool
) -> dict[str, xr.Dataset]:
    family, study = families()[name], _study(broken, since)
    options, found = family.settings(json.loads(settings)), {}
    wanted = [family.metrics[one] for one, *_ in known]
    if broken is None and not turned and not again:
        wanted = _watched(wanted)
    for unit in _units(family, options, study)[-1 if again else 0 :]:
        title = _title(unit, study)
        if turned:
            unit = dataclasses.replace(unit, runs=unit.runs[::-1], kept=None if unit.kept is None else {})  # noqa: PLW2901
        with warnings.catch_warnings():
            if broken is not None:  # numpy's mean of nothing is NaN, which is right
                warnings.simplefilter("ignore", RuntimeWarning)
            found[title] = measure_unit(family, unit, options, wanted)
    return found


def _watched(metrics: Sequence[Metric]) -> list[Metric]:
    """The same metrics; one that does not leave its input as it was is refused."""
    last: list[Any] = [None, {}]  # an input and its state, as the metric before left it

    def watch(metric: Metric) -> Callable[..., Any]:
        def compute(given: Any, **settings: Any) -> Any:
            before = last[1] if given is last[0] else _state(given)
            made = metric.compute(given, **settings)
            last[:] = given, _state(given)
            if any(last[1].get(place) != value for place, value in before.items()):
                raise _refuse(metric, "it changes its input, which other metrics get, too")
            return made

        return compute

    return [dataclasses.replace(metric, compute=watch(metric)) for metric in metrics]


def _state(given: Any, place: str = "", found: dict[str, object] | None = None) -> dict[str, object]:
    """Place -> what stands there, of all that an input holds: what it was built with, and what was worked out of it."""
    found = {} if found is None else found
    if isinstance(given, np.ndarray):
        numbers = given.tobytes() if given.dtype != object else repr(given.tolist())
        found[place] = given.dtype, given.shape, hash(numbers)
        return found
    parts: Mapping[Any, Any] = {}
    if isinstance(given, list | tuple):
        parts = dict(enumerate(given))
    elif isinstance(given, Mapping) and not dataclasses.is_dataclass(given):
        parts = given
    elif dataclasses.is_dataclass(given) or isinstance(given, BaseModel):
        parts = vars(given)
    elif isinstance(given, str | int | float | None | np.generic):
        found[place] = repr(given)
    found.setdefault(place, type(given))
    for key, part in parts.items():
        _state(part, f"{place}/{key}", found)
    return found


def _others_that_differ(metric: Metric, one: Mapping[str, xr.Dataset], other: Mapping[str, xr.Dataset]) -> list[str]:
    """Variables of the family's other metrics that are not the same to the bit."""
    found = []
    for unit, result in one.items():
        mine, theirs = (
            {str(k): _state(v.values) for k, v in part.variables.items() if v.encoding.get(METRIC) != metric.name}
            for part in (result, other[unit])
        )
        found += [name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name)]
    return found


def _alone(metric: Metric, family: Family, settings: Any) -> dict[str, xr.Dataset]:
    """Unit -> the metric by itself; a family that judges its metrics together measures them all, once more."""
    if family.compared:
        return _of_all(metric, settings, again=True)
    study = _study(None, MIDDLE)
    units = _units(family, settings, study)[-1:]
    return {_title(unit, study): measure_unit(family, unit, settings, [metric]) for unit in units}


def _title(unit: Unit, study: Study) -> str:
    return unit.name if unit.name in {entry.name for entry in study.entries} else unit.title


def _check_labels(metric: Metric, family: Family, result: xr.Dataset, unit: str) -> None:
    if metric.name not in result:
        if metric.optional:
            return
        raise _refuse(metric, f"it is not in the result of {unit}")
    expected = (*family.inputs[metric.input], *metric.dims)
    if result[metric.name].dims != expected:
        raise _refuse(metric, f"it has the dimensions {result[metric.name].dims}, and declares {expected}")
    if metric.scalar not in result or result[metric.scalar].dims != ("repeat",):
        raise _refuse(metric, f"'{metric.scalar}', its one number per seed, is not there over (repeat,)")
    if list(result["seed"].dims) != ["repeat"]:
        raise _refuse(metric, "seeds do not stand at their repeats")


def _given(metric: Metric, result: xr.Dataset) -> list[str]:
    """The variables that a metric gives, of those that are there."""
    return [name for name in dict.fromkeys((metric.name, metric.scalar, *metric.beside)) if name in result]


def _check_numbers(metric: Metric, result: xr.Dataset, unit: str) -> None:
    for name in _given(metric, result):
        low, high = metric.range if name in (metric.name, metric.scalar) else (-math.inf, math.inf)
        values, codes = result[name].values, reasons_of(result, name).values
        if ((codes == 0) == np.isnan(values)).any():
            raise _refuse(metric, f"{name} of {unit} has a NaN without a reason, or a reason beside a number")
        if np.isnan(values).any() and name + REASON not in result:
            raise _refuse(metric, f"{name} of {unit} has NaN, and no {name + REASON}")
        there = values[~np.isnan(values)]
        if np.isinf(there).any():
            raise _refuse(metric, f"{name} of {unit} is infinite: expected a number, or NaN with its reason")
        slack = 1e-9 * max(1.0, *(abs(bound) for bound in (low, high) if math.isfinite(bound)), 0.0)
        if there.size and (there.min() < low - slack or there.max() > high + slack):
            raise _refuse(metric, f"{name} of {unit} has {there.min():g} to {there.max():g}: outside of {metric.range}")


def _by_seed(result: xr.Dataset, name: str) -> dict[int, Any]:
    return {int(seed): result[name].values[place] for place, seed in enumerate(np.atleast_1d(result["seed"].values))}


def _same(metric: Metric, one: xr.Dataset, other: xr.Dataset, when: str, without: int | None = None) -> None:
    for name in _given(metric, one):
        mine, theirs = _by_seed(one, name), _by_seed(other, name)
        for seed in mine.keys() & theirs.keys() - {without}:
            if not np.allclose(mine[seed], theirs[seed], rtol=1e-9, atol=1e-12, equal_nan=True):
                raise _refuse(metric, f"{name} of seed {seed} is another one {when}")


def _check_gone(metric: Metric, whole: xr.Dataset, gone: xr.Dataset, unit: str) -> None:
    """Refuse a number of a seed of which all is NaN, where it is not the one that it is without any NaN."""
    for name in _given(metric, gone):
        had, has = (_by_seed(result, name).get(SEEDS[-1], np.nan) for result in (whole, gone))
        if (~np.isnan(has) & ~np.isclose(has, had, rtol=1e-9, atol=1e-12)).any():
            raise _refuse(
                metric,
                f"{name} of {unit} has a number of seed {SEEDS[-1]} where all that was recorded of it is NaN: it takes "
                "NaN as a number; expected NaN with its reason",
            )


def _check_direction(metric: Metric, settings: Any, better: Any, worse: Any) -> None:
    values = []
    for word, given in (("better", better), ("worse", worse)):
        made = metric.compute(given, **{name: getattr(settings, name) for name in metric.takes})
        result: Result = made[0] if isinstance(made, tuple) else made
        numbers = np.asarray(result, np.float64)
        if np.isnan(numbers).all():
            raise _refuse(metric, f"it has no number of the {word} input: its direction cannot be told")
        values.append(float(np.nanmean(numbers)))
    right = {"higher": values[0] > values[1], "lower": values[0] < values[1], "zero": abs(values[0]) < abs(values[1])}
    if not right.get(metric.direction):
        raise _refuse(
            metric, f"it is {values[0]:g} of the better and {values[1]:g} of the worse, and says '{metric.direction}'"
        )
