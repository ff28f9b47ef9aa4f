"""A metric as it goes on, seed by seed: over snapshots, over tasks, or so far at every evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.continual.so_far import SO_FAR, SoFar, of_own_task, over_steps
from waterjar.diagnose.registry import Metric, find_metric, metrics
from waterjar.diagnose.result import NO_RUN, NOT_RECORDED, UNDEFINED, Codes, Floats
from waterjar.diagnose.study import Diagnosis
from waterjar.diagnose.training_order import visit_names_of
from waterjar.errors import WaterjarError, given_as, unknown_name
from waterjar.run.schema import REASONS
from waterjar.view.results import by_cell, pick_layer, repeats_of
from waterjar.view.style import axis_end

EPOCH, TASK = "total_epoch", "task"
SNAPSHOTS = ("mean", "final")
_AT_TASKS = ("learning_accuracy",)
COLUMNS = ("metric", "cell", "seed", "layer", "axis", "place", "train_task", "x", "value", "reason")


def family_needs(names: Sequence[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """The families of the metrics named; `default` where none are. No metrics at all is an error.

    What is no metric was recorded, and takes no family; of what was neither, the diagnosis says so.
    """
    if names is None:
        return default
    if isinstance(names, str) or not names:
        raise WaterjarError(f"metrics={names!r}: expected a list of names, such as ['average_accuracy', 'forgetting']")
    return tuple(dict.fromkeys(metrics()[name].family for name in names if name in metrics()))


def main_metrics(diagnosis: Diagnosis, *, with_course: bool = False) -> list[str]:
    """The few that matter of what was measured; `with_course`: those of them that go on over training."""
    measured = [name for name in diagnosis.main_metrics() if name in metrics()]
    names = [name for name in measured if not with_course or has_course(diagnosis, name)]
    if not names:
        known = [name for name, metric in metrics().items() if metric.matters and metric.family in diagnosis.results]
        raise WaterjarError(
            f"none of {', '.join(known)} has a value here: name others with {given_as('metrics')}"
            if known
            else "no metric of this figure was measured; learning_curves shows what was recorded"
        )
    return names


def has_course(diagnosis: Diagnosis, name: str) -> bool:
    """Whether a metric that was measured has more than one number per seed."""
    result = diagnosis.results.get(diagnosis.declared(name).family, xr.Dataset())
    here = result[name].dims if name in result else ()
    return name in (*SO_FAR, *_AT_TASKS) or bool({"snapshot", "train_task", "eval_task"} & set(here))


def course(diagnosis: Diagnosis, name: str, *, layer: str | None = None) -> pd.DataFrame:
    """One row per cell, seed and place: metric, cell, seed, layer, axis, place, train_task, x, value, reason.

    `axis` is total_epoch (place is a snapshot or step) or task (x counts them from 1). Of a layer's metrics the layer
    is the last one by default; of similarities the one to the first snapshot is taken; over pairs of tasks, eval sets
    and parameters it is the mean of those that are defined, as in the family's own summary. Places that a cell has
    not, or at which nothing was recorded for it, are left out.
    """
    if name in diagnosis.recorded.quantities and name not in metrics():
        parts = [_rows(name, cell, "", EPOCH, made) for cell, made in _over_training(diagnosis, name)]
        return _joined(parts)
    metric, result = find_metric(name), _result(diagnosis, name)
    names = {str(cell): str(shown) for cell, shown in zip(result["cell_id"].values, result["cell"].values, strict=True)}
    study, settings = diagnosis.study, diagnosis.settings(metric.family)
    if name in SO_FAR:
        found = over_steps(study, name, settings)
        parts = [_rows(name, names[cell], "", EPOCH, made) for cell, made in found if cell in names]
    elif name in _AT_TASKS:
        found = of_own_task(study, settings)
        parts = [_rows(name, names[cell], "", TASK, made) for cell, made in found if cell in names]
    elif not has_course(diagnosis, name):
        raise WaterjarError(f"{name} is one number per repeat and has no course: metric_boxes shows it")
    elif "snapshot" in result[name].dims:
        parts = [_rows(name, cell, shown, EPOCH, made) for cell, shown, made in _over_snapshots(result, metric, layer)]
    else:
        parts = [_rows(name, cell, "", TASK, made) for cell, made in _over_tasks(result, metric)]
    return _joined(parts)


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    kept = [part for part in parts if len(part)]
    return pd.concat(kept, ignore_index=True) if kept else pd.DataFrame(columns=list(COLUMNS))


def per_repeat(diagnosis: Diagnosis, names: Sequence[str], *, snapshots: str = "mean") -> pd.DataFrame:
    """One row per metric, cell and seed: metric, cell, seed, value, missing (why), left_out, how.

    The mean over tasks of a metric of tasks, as the family takes it. Of a metric of snapshots `snapshots` says
    which: their mean (`left_out` counts those at which it is undefined), or the last one, which tables and tests use.
    Either is the mean over layers.
    """
    if snapshots not in SNAPSHOTS:
        raise unknown_name("snapshots", snapshots, SNAPSHOTS)
    table = diagnosis.table(names).assign(left_out=0, how="")
    for name in dict.fromkeys(names):
        if name in diagnosis.recorded.quantities and name not in metrics():
            table.loc[table["metric"] == name, "how"] = "at the last step"
            continue
        result = _result(diagnosis, name)
        if name in result and "snapshot" in result[name].dims:
            here = table["metric"] == name
            table.loc[here, "how"] = "mean over snapshots" if snapshots == "mean" else "at the end"
            if snapshots == "mean":
                table.loc[here, ["value", "reason", "left_out"]] = _means(result, name, table[here]).to_numpy()
        elif name in result and {"train_task", "eval_task"} & set(result[name].dims):
            table.loc[table["metric"] == name, "how"] = "mean over tasks"
    table = table.astype({"value": float, "left_out": int})
    table["missing"] = table["reason"].replace(REASONS[0], "")
    return table[["metric", "cell", "seed", "value", "missing", "left_out", "how"]]


def axis_title(diagnosis: Diagnosis, metric: str, units: str = "", *, name: str = "") -> str:
    """A metric's name, or the one that is given, with its unit and the arrow that says which way is better."""
    declared = diagnosis.declared(metric)
    known = {} if metric in metrics() else diagnosis.recorded.quantities
    words = known[metric].words if metric in known else metric.replace("_", " ")
    return (name or words) + axis_end(units or declared.units, declared.direction)


def flattened(diagnosis: Diagnosis, name: str, layer: str | None = None) -> str:
    """What a course shows of a metric that has more than a number per seed and snapshot; empty where it has not."""
    if name not in metrics():
        return ""
    result = _result(diagnosis, name)
    if name not in result or "snapshot" not in (dims := result[name].dims):
        return ""
    said = []
    if "layer" in dims and result.sizes["layer"] > 1:
        said.append(layer or str(result["layer"].values[-1]))
    said += ["to the first snapshot"] * ("reference" in dims)
    said += [f"mean over {word}s" for dim, word in (("eval_set", "set"), ("parameter", "parameter")) if dim in dims]
    return ", ".join(said)


def mean_of_defined(values: Floats, codes: Codes) -> tuple[Floats, Codes]:
    """(..., many) -> (...): undefined ones are left out; where any other is missing, so is the mean, as in families.

    >>> mean_of_defined(np.array([1.0, 3.0, np.nan]), np.array([0, 0, UNDEFINED], np.uint8))[0].item()
    2.0
    """
    kept = codes == 0
    missing = np.where(codes == UNDEFINED, 0, codes).max(-1, initial=0)
    count = kept.sum(-1)
    known = (count > 0) & (missing == 0)
    mean = np.where(known, np.where(kept, values, 0.0).sum(-1) / np.maximum(count, 1), np.nan)
    return mean, np.where(known, 0, np.where(missing > 0, missing, UNDEFINED)).astype(np.uint8)


def _result(diagnosis: Diagnosis, name: str) -> xr.Dataset:
    metric = find_metric(name)
    result = diagnosis.results.get(metric.family)
    if result is None or metric.scalar not in result:
        why = diagnosis.passed_over.get(metric.family, f"{metric.family} did not measure it")
        raise WaterjarError(f"metric '{name}' has no value here: {why}")
    return result


def _rows(name: str, cell: str, layer: str, axis: str, made: SoFar) -> pd.DataFrame:
    repeats, places = made.values.shape
    return pd.DataFrame({
        "metric": name, "cell": cell, "seed": np.repeat(made.seeds, places), "layer": layer, "axis": axis,
        "place": np.tile(made.place, repeats), "train_task": made.train_task * repeats, "x": np.tile(made.x, repeats),
        "value": made.values.ravel(), "reason": np.array(REASONS, object)[made.codes.ravel()],
    })  # fmt: skip


def _flat(one: xr.Dataset, name: str, along: str) -> tuple[Floats, Codes, Any]:
    """(repeat, along) of a variable, the mean over its other dimensions; of references the first."""
    if "reference" in one[name].dims:
        one = one.isel(reference=0)
    rest = [str(dim) for dim in one[name].dims if dim not in ("repeat", along)]
    values, codes, seeds = repeats_of(one, name, along, *rest)
    shape = (*values.shape[:2], math.prod(values.shape[2:]))
    return (*mean_of_defined(values.reshape(shape), codes.reshape(shape)), seeds)


def _there(values: Floats, codes: Codes) -> NDArray[np.bool_]:
    """(place,): where anything was recorded for any seed."""
    lacking = np.isnan(values) & np.isin(codes, (NOT_RECORDED, NO_RUN))
    found: NDArray[np.bool_] = np.asarray(~lacking.all(axis=0))
    return found


def _over_snapshots(result: xr.Dataset, metric: Metric, layer: str | None) -> Iterator[tuple[str, str, SoFar]]:
    for cell, whole in by_cell(result):
        one, chosen = pick_layer(whole, layer) if "layer" in whole[metric.name].dims else (whole, "")
        if "layer" in one[metric.name].dims:  # no layer was recorded at all
            continue
        values, codes, seeds = _flat(one, metric.name, "snapshot")
        x = one[EPOCH].values.astype(float)
        kept = _there(values, codes) & ~np.isnan(x)
        tasks = visit_names_of(one.isel(snapshot=kept))
        place = one["snapshot"].values[kept]
        yield cell, chosen, SoFar(values[:, kept], codes[:, kept], seeds, place, x[kept], tasks)


def _over_training(diagnosis: Diagnosis, name: str) -> Iterator[tuple[str, SoFar]]:
    """What was recorded at every step, of each cell that has it."""
    quantity = diagnosis.recorded.quantities[name]
    for cell, steps in diagnosis.recorded.group(quantity.group).items():
        own = quantity.eval_set
        if quantity.variable not in steps or (own and own not in steps["eval_set"].values):
            continue
        one = steps.sel(eval_set=own) if own else steps
        values, codes, seeds = repeats_of(one, quantity.variable, "step")
        kept = _there(values, codes)
        tasks = visit_names_of(one.isel(step=kept))
        x = one[EPOCH].values.astype(float)[kept]
        yield cell, SoFar(values[:, kept], codes[:, kept], seeds, one["step"].values[kept], x, tasks)


def _over_tasks(result: xr.Dataset, metric: Metric) -> Iterator[tuple[str, SoFar]]:
    along = "train_task" if "train_task" in result[metric.name].dims else "eval_task"
    for cell, one in by_cell(result):
        values, codes, seeds = _flat(one, metric.name, along)
        kept = _there(values, codes)
        tasks = one[along].values[kept]
        visits = along.replace("task", "visit")  # where one is trained again, these have names
        names = one[visits if visits in one.coords else along].values[kept].astype(str).tolist()
        yield cell, SoFar(values[:, kept], codes[:, kept], seeds, tasks, tasks + 1.0, names)


def _means(result: xr.Dataset, name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """value, reason, left_out of the mean over snapshots, for the rows of a table."""
    found: dict[tuple[str, int], tuple[float, str, int]] = {}
    for cell, one in by_cell(result):
        values, codes, seeds = _flat(one, name, "snapshot")
        kept = _there(values, codes)
        mean, why = mean_of_defined(values[:, kept], codes[:, kept])
        undefined = (codes[:, kept] == UNDEFINED).sum(-1)
        for seed, value, code, n in zip(seeds.tolist(), mean.tolist(), why.tolist(), undefined.tolist(), strict=True):
            found[cell, seed] = (value, REASONS[code], n if code == 0 else 0)
    none = (np.nan, REASONS[NOT_RECORDED], 0)
    made = [found.get((cell, int(seed)), none) for cell, seed in zip(rows["cell"], rows["seed"], strict=True)]
    return pd.DataFrame(made, columns=["value", "reason", "left_out"])
