"""Does a metric keep the contract? A check that strangers run on their own, as scikit-learn's check_estimator does.

    from waterjar.testing import check_metric

    def test_spread_keeps_the_contract():
        check_metric("spread")

A small study is recorded with everything that a family may read, and the metric is measured of it: alone, again, with
its runs in another order, and with one seed broken. `small_study` records it, for tests of a metric's numbers.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from waterjar.diagnose.analysis import analysis_of
from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.measuring import Unit, measure_unit, units_of
from waterjar.diagnose.registry import Direction, Family, Metric, families, find_metric, metrics
from waterjar.diagnose.result import Result
from waterjar.diagnose.settings import dump
from waterjar.diagnose.snapshots import PROBE_STEP
from waterjar.errors import WaterjarError
from waterjar.run.recorder import Recorder
from waterjar.run.schema import GROUPS, REASON, Variable
from waterjar.run.study import Study, create_study, open_study

if TYPE_CHECKING:
    import xarray as xr

SEEDS = (3, 1, 2)
_ROLES = (
    "shortcut_normal",
    "shortcut_masked",
    "shortcut_clean",
    "shortcut_random_mask",
    "nonshortcut_normal",
    "nonshortcut_masked",
    "nonshortcut_patched",
    "validation",
)
_SETS = {"t1_all": 0, "t2_all": 1, **{f"t2_{role}": 1 for role in _ROLES}}
_LAYERS = ("early", "penultimate")
_PROBES = ("sharpness", "random_label_epochs")
_OF_PROBES = [name + end for name in _PROBES for end in ("", PROBE_STEP)]
_EPOCHS, _CLASSES, _SAMPLES, _UNITS = 3, 3, 12, 64


class ContractError(AssertionError):
    """A metric that does not keep the contract, and what it does."""


def small_study(folder: str | Path, *, seeds: Sequence[int] = SEEDS, broken: int | None = None) -> Study:
    """Record a baseline and a learner, a run per seed, with all that our families read.

    Two tasks, ten evaluation sets, experts, features of two layers with labels, weights, gradient norms, probes and
    resources. Of the seed `broken` every number from the middle of training on is NaN.
    """
    place = Path(folder)
    create_study(place, {"analysis": {"baseline": "scratch_t2"}})
    for scenario in ("scratch_t2", "sequential"):
        for seed in seeds:
            _record(place / f"{scenario}-{seed}", scenario, seed, broken == seed)
    return open_study(place)


def _record(path: Path, scenario: str, seed: int, broken: bool) -> None:
    rng = np.random.default_rng([seed, len(scenario)])
    config = {"method": "sgd" if scenario == "sequential" else scenario, "scenario": scenario, "seed": seed}
    labels = np.tile(np.arange(_SAMPLES) % _CLASSES, (1, len(_SETS), 1))
    centres = np.random.default_rng(0).normal(size=(_CLASSES, _UNITS)) * 2
    classes = [f"class {i}" for i in range(_CLASSES)]
    rows = [(task, epoch) for task in ("t1", "t2") for epoch in range(_EPOCHS + 1)]
    with Recorder(
        path, config, seeds=[seed], eval_sets=_SETS, tasks=["t1", "t2"], classes=classes, provenance=False,
        variables={f"probes/{name}": Variable(("repeat", "moment"), name) for name in _OF_PROBES},
    ) as recorder:  # fmt: skip
        recorder.once("probe_samples", label=labels)
        probed: list[float] = []
        for place, (task, epoch) in enumerate(rows if scenario == "sequential" else rows[_EPOCHS + 1 :]):
            gone = np.nan if broken and epoch > _EPOCHS // 2 else 0.0
            high = 0.4 + 0.5 * epoch / _EPOCHS
            accuracy = {name: _accuracy(name, task, high, rng) + gone for name in _SETS}
            loss = {name: -math.log(value) if value > 0 else gone for name, value in accuracy.items()}
            layers = {
                layer: np.maximum(rng.normal(size=(len(_SETS), _SAMPLES, _UNITS)) + centres[labels[0]] + 0.3 * place, 0)
                for layer in _LAYERS
            }
            layers = {layer: features + gone for layer, features in layers.items()}
            weights = {"body": rng.normal(size=(4, _UNITS)), "head.weight": rng.normal(size=(_CLASSES, _UNITS))}
            recorder.log(
                train_task=task,
                epoch=epoch,
                performance={"accuracy": accuracy, "macro_accuracy": accuracy, "loss": loss},
                expert={"accuracy": accuracy, "macro_accuracy": accuracy, "loss": loss},
                train={"gradient_norm": rng.random() + gone},
                events={"patched_images": 5.0},
                resources={
                    "seconds": 1.0 + rng.random(), "images": 10, "flops": 1e9, "peak_memory": 1e8,
                    "peak_device_memory": 1e7, "buffer_bytes": 1e6,
                },
                snapshot={"features": layers, "weights": {name: value + gone for name, value in weights.items()}},
            )  # fmt: skip
            probed.append(1.0 + place + rng.random() + gone)
        for name in _PROBES:
            recorder.once("probes", **{name: [probed], name + PROBE_STEP: [list(range(len(probed)))]})


def _accuracy(name: str, task: str, high: float, rng: np.random.Generator) -> float:
    own = name.startswith(task)
    level = high if own else 0.5
    return float(np.clip(level * (0.6 if "masked" in name else 1.0) + 0.05 * rng.random(), 0.01, 0.99))


def check_metric(
    metric: str | Callable[..., Any],
    *,
    better: Any = None,
    worse: Any = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Refuse, with a `ContractError`, a metric that does not keep the contract.

    Looked at: its declaration; dimensions and labels of what it gives; that every NaN has a reason and no number has
    one; that all lies within its range; that the same comes again, whatever else is measured and in whatever order
    the runs stand; that its input is left as it was; that one broken seed costs no other its value (of a metric that
    compares seeds, that nothing breaks). `better` and `worse`, two inputs of it, tell whether its direction is right.

    >>> check_metric("average_accuracy")
    """
    declared = _find(metric)
    _check_declaration(declared)
    family = families()[declared.family]
    options = family.settings(settings or {})
    try:
        whole = _of_all(declared, options)
    except Exception as error:
        raise _refuse(declared, f"it could not be measured: {type(error).__name__}: {error}") from error
    values = [result[declared.scalar].values for result in whole.values() if declared.scalar in result]
    if all(np.isnan(found).all() for found in values):
        raise _refuse(declared, "it has no number anywhere in the study it is tried on: does it need other settings?")
    for unit, result in whole.items():
        _check_labels(declared, family, result, unit)
        _check_numbers(declared, result, unit)
    for unit, alone in _alone(declared, family, options).items():
        _same(declared, whole[unit], alone, "where it is measured alone, or again")
    for unit, turned in _of_all(declared, options, turned=True).items():
        _same(declared, whole[unit], turned, "where runs stand in another order")
    _check_untouched(declared, family, options)
    for unit, broken in _of_all(declared, options, broken=SEEDS[-1]).items():
        _check_numbers(declared, broken, unit)
        if not declared.between_seeds:
            _same(declared, whole[unit], broken, "where another seed is broken", without=SEEDS[-1])
    if better is not None and worse is not None:
        _check_direction(declared, better, worse)


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
    if metric.direction not in get_args(Direction):
        raise _refuse(metric, f"its direction is {metric.direction!r}: expected one of {get_args(Direction)}")
    if not metric.range[0] < metric.range[1]:
        raise _refuse(metric, f"its range {metric.range} has no width")
    for need in metric.needs:
        group = re.split(r"[/\[]", need)[0]
        if group not in (*GROUPS, "probe_samples"):
            raise _refuse(metric, f"it needs '{need}': expected what runs record, such as {', '.join(GROUPS)}")
    own = families()[metric.family].inputs[metric.input]
    if not metric.summary and (metric.dims or own != ("repeat",)):
        raise _refuse(metric, "it has more than one number per seed and no summary, which names the one for tables")


@functools.cache
def _study(broken: int | None = None) -> Study:
    folder = tempfile.TemporaryDirectory(prefix="waterjar-contract-")
    study = small_study(folder.name, broken=broken)
    study.folder = folder  # type: ignore[attr-defined] # it goes when the study does
    return study


def _units(family: Family, settings: Any, study: Study) -> list[Unit]:
    return units_of(family, study, analysis_of(study, families=[family.name], settings={family.name: dump(settings)}))


def _of_all(metric: Metric, settings: Any, *, broken: int | None = None, turned: bool = False) -> dict[str, xr.Dataset]:
    """Unit -> all metrics of the family, kept for the next one that is looked at."""
    declared = families()[metric.family].metrics
    known = tuple((name, one.version, one.compute) for name, one in declared.items())  # by identity, held here
    return _kept(metric.family, json.dumps(dump(settings)), known, broken, turned)


@functools.lru_cache(maxsize=24)
def _kept(name: str, settings: str, known: tuple[Any, ...], broken: int | None, turned: bool) -> dict[str, xr.Dataset]:
    family, study = families()[name], _study(broken)
    options, found = family.settings(json.loads(settings)), {}
    for unit in _units(family, options, study):
        title = _title(unit, study)
        if turned:
            unit = dataclasses.replace(unit, runs=unit.runs[::-1], kept=None if unit.kept is None else {})  # noqa: PLW2901
        found[title] = measure_unit(family, unit, options)
    return found


def _alone(metric: Metric, family: Family, settings: Any) -> dict[str, xr.Dataset]:
    """Unit -> the metric by itself; a family that judges its metrics together measures them all."""
    study, wanted = _study(), None if family.compared else [metric]
    units = _units(family, settings, study)[-1:]
    return {_title(unit, study): measure_unit(family, unit, settings, wanted) for unit in units}


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


def _check_numbers(metric: Metric, result: xr.Dataset, unit: str) -> None:
    low, high = metric.range
    for name in {metric.name, metric.scalar} & set(map(str, result.data_vars)):
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
    for name in {metric.name, metric.scalar} & set(map(str, one.data_vars)):
        mine, theirs = _by_seed(one, name), _by_seed(other, name)
        for seed in mine.keys() & theirs.keys() - {without}:
            if not np.allclose(mine[seed], theirs[seed], rtol=1e-9, atol=1e-12, equal_nan=True):
                raise _refuse(metric, f"{name} of seed {seed} is another one {when}")


def _check_untouched(metric: Metric, family: Family, settings: Any) -> None:
    """The metric leaves its input as it was."""
    unit = _units(family, settings, _study())[-1]
    for given, _ in family.load(unit, settings).inputs({metric.input}):
        if type(given) is metric.input:
            before = [array.copy() for array in _arrays(given)]
            metric.compute(given, **{name: getattr(settings, name) for name in metric.takes})
            for old, new in zip(before, _arrays(given), strict=False):
                if old.shape != new.shape or not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
                    raise _refuse(metric, "it changes its input, which other metrics get, too")
            return


def _arrays(given: Any, depth: int = 3) -> list[Any]:
    """The arrays that an input was built with, however deep; what is worked out later is its own."""
    if isinstance(given, np.ndarray):
        return [given]
    if depth == 0:
        return []
    if dataclasses.is_dataclass(given):
        parts = [getattr(given, field.name) for field in dataclasses.fields(given)]
    elif isinstance(given, Mapping):
        parts = list(given.values())
    else:
        parts = list(given) if isinstance(given, list | tuple) else []
    return [array for part in parts for array in _arrays(part, depth - 1)]


def _check_direction(metric: Metric, better: Any, worse: Any) -> None:
    values = []
    for given in (better, worse):
        made = metric.compute(given)
        result: Result = made[0] if isinstance(made, tuple) else made
        values.append(float(np.nanmean(np.asarray(result))))
    right = {"higher": values[0] > values[1], "lower": values[0] < values[1], "zero": abs(values[0]) < abs(values[1])}
    if metric.direction in right and not right[metric.direction]:
        raise _refuse(
            metric, f"it is {values[0]:g} of the better and {values[1]:g} of the worse, and says '{metric.direction}'"
        )
