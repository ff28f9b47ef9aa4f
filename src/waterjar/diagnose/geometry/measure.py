"""Manifold geometry over the snapshots of a run, layer by layer and repeat by repeat."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import Any, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.geometry.capacity import simulated_capacity
from waterjar.diagnose.geometry.draws import DichotomyKind
from waterjar.diagnose.geometry.estimates import SCALARS
from waterjar.diagnose.geometry.inputs import at_least
from waterjar.diagnose.geometry.manifold import Inactive, manifold_geometry
from waterjar.diagnose.job import Arrays, Job
from waterjar.diagnose.labelled import NOT_RECORDED, stamp, variable
from waterjar.diagnose.registry import families
from waterjar.diagnose.snapshots import Recording, measure_each
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.reader import Run
from waterjar.run.schema import REASONS
from waterjar.run.study import Study

MANIFOLDS = ("class", "task_class")
DRAWS = ("independent", "common")
SIMULATED = ("simulated_capacity", "simulated_capacity_low", "simulated_capacity_high")
PER_MANIFOLD = ("manifold_dimension", "manifold_radius", "manifold_inactive_share")
_MANIFOLD_CODES = tuple(f"{name}_code" for name in PER_MANIFOLD)
EMPTY_SET = REASONS.index("empty_set")
_ABOUT = {
    "nonunique_share": {
        "long_name": "share of draws in which the anchors' coefficients are not unique",
        "comment": "capacity is the same for all; dimension, radius and alignments are those of the one that was found",
    }
}
_DRAW, _SUBSAMPLE = range(2)
_PLAIN = ("_all", "_normal")
_WORD = 2**32


def measure(
    source: Run | Study,
    job: Job | None = None,
    *,
    n_t: int = 100,
    seed: int = 0,
    manifolds: str = "class",
    eval_sets: Sequence[str] | None = None,
    layers: Sequence[str] | None = None,
    subsamples: int | None = 50,
    dichotomies: str = "uniform",
    inactive: str = "zero",
    center: bool = False,
    draws: str = "independent",
    simulate_every: float | None = None,
    n_trials: int = 100,
    bias: bool = False,
) -> xr.Dataset:
    """Capacity, dimension, radius and alignments at every snapshot, over (repeat, snapshot, layer).

    Parameters
    ----------
    job : an executor, a watcher and a place for pieces, for long ones; the numbers are the same with any.
    n_t : draws of t per snapshot.
    seed : of all randomness. A snapshot and repeat has its own stream: the same bits alone or among others.
    manifolds : `class` pools the eval sets under their labels; `task_class` takes every class of every eval set apart.
    eval_sets : whose samples; by default those called `..._all` or `..._normal`, so that masked and patched copies
        of images do not enter beside them, or all where none is called so.
    layers : which; all that were recorded by default.
    subsamples : points per manifold, drawn once per repeat and the same at every snapshot; None for all.
    draws : `independent` per snapshot, or `common`: the same t and y at all of them, so that differences over time are
        less noisy.
    simulate_every : also simulated capacity, at snapshots whose total epoch is a multiple of this, and at the last one;
        None for never.
    n_trials, bias : of the simulation.

    Returns
    -------
    Each measure with its standard error over draws (`<name>_se`), `simulated_capacity` with bounds,
    `capacity_relative_error` = |simulated - capacity| / capacity; over (repeat, snapshot, layer, manifold) per manifold
    its dimension, radius, share of inactive draws; `nonunique_share`, the share of draws with other coefficients as
    good (see `manifold_geometry`). `<name>_final` (repeat): at the last snapshot, the mean over layers.
    """
    settings: dict[str, Any] = {
        "n_t": n_t, "seed": seed, "manifolds": manifolds, "eval_sets": eval_sets, "layers": layers,
        "subsamples": subsamples, "dichotomies": dichotomies, "inactive": inactive, "center": center, "draws": draws,
        "simulate_every": simulate_every, "n_trials": n_trials, "bias": bias,
    }  # fmt: skip
    _check(settings)
    settings |= {"layers": _listed("layers", layers), "eval_sets": _listed("eval_sets", eval_sets)}
    how = job or Job()
    result = measure_each(source, ("features",), lambda runs: [measure_run(run, settings, how) for run in runs])
    return stamp(result, families()["geometry"], settings, source)


def _check(settings: dict[str, Any]) -> None:
    known = {
        "manifolds": MANIFOLDS, "draws": DRAWS, "inactive": get_args(Inactive), "dichotomies": get_args(DichotomyKind)
    }  # fmt: skip
    for name, options in known.items():
        if settings[name] not in options:
            raise unknown_name(name, settings[name], options)
    at_least("seed", settings["seed"], 0, "from 0 on")
    at_least("n_t", settings["n_t"], 2, "at least 2 draws are needed for a mean with an error")
    at_least("n_trials", settings["n_trials"], 1, "there must be at least one")
    if settings["subsamples"] is not None:
        at_least("subsamples", settings["subsamples"], 1, "at least one point per manifold, or None for all")
    every = settings["simulate_every"]
    if every is not None and (isinstance(every, bool) or not isinstance(every, Real) or not float(every) > 0):
        raise WaterjarError(f"simulate_every={every}: a number of epochs above 0, or None for never")


def _listed(what: str, names: Sequence[str] | None) -> list[str] | None:
    """Names, each once and at least one, or None."""
    if names is None:
        return None
    told = isinstance(names, Sequence) and not isinstance(names, str) and all(isinstance(name, str) for name in names)
    if not told or len(names) == 0 or len(set(names)) < len(names):
        wrong = "no list of names" if not told else "a name stands twice" if len(names) else "there is none"
        raise WaterjarError(f"{what}={names!r}: {wrong}; a list of names, each once, or None for all would be right")
    return [str(name) for name in names]


def measure_run(run: Run, settings: dict[str, Any], job: Job) -> xr.Dataset:
    """One run, snapshot by snapshot; each piece is one layer at one snapshot."""
    recording = Recording(run)
    if "probe_samples/label" not in recording:
        raise WaterjarError(f"{run.path}: labels of the probe samples were not recorded (probe_samples/label)")
    layers = recording.layers
    for name in settings["layers"] or ():
        if name not in layers:
            raise unknown_name(f"{run.path}: layers", name, layers)
    layers = layers if settings["layers"] is None else list(settings["layers"])
    snapshots = sorted({label for layer in layers for label in recording.labels(f"features/{layer}")})
    where = recording.coordinates(snapshots)
    simulated = _simulated_at(where["total_epoch"][1], settings["simulate_every"])
    pieces = {
        f"{layer}/{label}": (str(run.path), layer, position, label, bool(simulated[snapshots.index(label)]),
                             int(where["train_task_index"][1][snapshots.index(label)]), settings)
        for layer in layers
        for position, label in enumerate(recording.labels(f"features/{layer}"))
    }  # fmt: skip
    shape = (len(run.seeds), len(snapshots), len(layers))
    tables: dict[str, NDArray[Any]] = {}
    codes: dict[str, NDArray[np.uint8]] = {}
    done = dict(job.run(geometry_of_snapshot, pieces))
    names = sorted({str(name) for found in done.values() for name in found["names"]})
    for name, found in done.items():
        layer, _, label = name.rpartition("/")
        place = (slice(None), snapshots.index(int(label)), layers.index(layer))
        own = [names.index(str(one)) for one in found.pop("names")]
        for key, values in found.items():
            if key in PER_MANIFOLD:
                tables.setdefault(key, np.full((*shape, len(names)), np.nan))[place][:, own] = values
            elif key in _MANIFOLD_CODES:
                whole = codes.setdefault(
                    key.removesuffix("_code"), np.full((*shape, len(names)), NOT_RECORDED, np.uint8)
                )[place]
                whole[:] = EMPTY_SET  # no sample of it, unless it is one of these
                whole[:, own] = values
            elif key.endswith("_code"):
                codes.setdefault(key.removesuffix("_code"), np.full(shape, NOT_RECORDED, np.uint8))[place] = values
            else:
                tables.setdefault(key, np.full(shape, np.nan))[place] = values
    dims = ("repeat", "snapshot", "layer")
    result: dict[str, xr.Variable] = {}
    for key, values in tables.items():
        more = ("manifold",) if key in PER_MANIFOLD else ()
        result |= variable(key, (*dims, *more), values, codes.get(key), _ABOUT.get(key))
    error, why = _relative_error(tables, codes)
    result |= variable("capacity_relative_error", dims, error, why)
    last = [snapshots.index(recording.labels(f"features/{layer}")[-1]) for layer in layers]
    for metric in families()["geometry"].metrics.values():
        values = result[metric.name].values[:, last, range(len(layers))]
        reasons = (
            result[metric.name + "_reason"].values if metric.name + "_reason" in result else np.zeros(shape, np.uint8)
        )
        final = values.mean(axis=1)
        gone = reasons[:, last, range(len(layers))].max(axis=1)
        result |= variable(metric.scalar, ["repeat"], final, np.where(np.isnan(final), gone, 0).astype(np.uint8))
    coordinates: dict[str, Any] = {"repeat": np.arange(len(run.seeds)), "seed": ("repeat", run.seeds)}
    coordinates |= {"snapshot": snapshots, **where, "layer": np.array(layers, object)}
    return xr.Dataset(result, coordinates | {"manifold": np.array(names, object)})


def _simulated_at(epochs: NDArray[np.float64], every: float | None) -> NDArray[np.bool_]:
    """At multiples of `every`, and at the last snapshot."""
    if every is None:
        return np.zeros(len(epochs), bool)
    turns = epochs / every
    found = np.abs(turns - np.round(turns)) < 1e-9
    found[-1] = True
    return found


def _relative_error(
    tables: dict[str, NDArray[Any]], codes: dict[str, NDArray[np.uint8]]
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    capacity, simulated = tables["capacity"], tables["simulated_capacity"]
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(simulated - capacity) / capacity
    why = np.where(np.isnan(simulated), codes["simulated_capacity"], codes["capacity"])
    return error, np.where(np.isnan(error), why, 0).astype(np.uint8)


def geometry_of_snapshot(
    path: str, layer: str, position: int, label: int, simulate: bool, task: int, settings: dict[str, Any]
) -> Arrays:
    """One layer at one snapshot, all repeats: measure -> values (repeat, ...), and `<measure>_code` (repeat).

    `names` are the manifolds of all repeats; those that a repeat does not have are NaN.
    """
    recording = Recording(Run(Path(path)))
    sets = recording.eval_sets(f"features/{layer}", settings["eval_sets"])
    if settings["eval_sets"] is None:
        plain = [i for i in sets if str(recording.whole(f"features/{layer}/eval_set")[i]).endswith(_PLAIN)]
        sets = plain or sets
    key = f"features/{layer}/features"
    of_samples = [str(name) for name in recording.whole("probe_samples/eval_set")]
    labels = recording.whole("probe_samples/label")
    set_names = [str(name) for name in recording.whole(f"features/{layer}/eval_set")]
    columns: dict[str, list[Any]] = {}
    names: list[list[str]] = []
    for repeat, repeat_seed in enumerate(recording.seeds):
        features = recording.row(key, position, slice(repeat, repeat + 1))[0][sets]
        own = labels[repeat][[of_samples.index(set_names[i]) for i in sets]]
        groups = _manifold_of(own, [set_names[i] for i in sets], settings["manifolds"])
        chosen = _subsample(groups, settings["subsamples"], _stream(settings["seed"], (repeat_seed,), _SUBSAMPLE))
        points = features.reshape(-1, features.shape[-1])[chosen]
        moment = (repeat_seed, task + 1, label) if settings["draws"] == "independent" else (repeat_seed,)
        rng = _stream(settings["seed"], moment, _DRAW)
        names.append(sorted(set(groups[chosen].tolist())))
        for name, value in _measured(points, groups[chosen], rng, simulate, settings).items():
            columns.setdefault(name, []).append(value)
    every = sorted({name for own in names for name in own})
    for key in (*PER_MANIFOLD, *_MANIFOLD_CODES):
        absent = EMPTY_SET if key in _MANIFOLD_CODES else np.nan
        columns[key] = [_spread(value, own, every, absent) for value, own in zip(columns[key], names, strict=True)]
    return {"names": np.array(every), **{name: np.array(values) for name, values in columns.items()}}


def _spread(values: NDArray[Any], own: Sequence[str], every: Sequence[str], absent: float) -> NDArray[Any]:
    """Values of the manifolds `own` at their places among `every`, and `absent` at the others."""
    spread = np.full(len(every), absent, values.dtype)
    spread[[every.index(name) for name in own]] = values
    return spread


def _measured(
    points: NDArray[Any], groups: NDArray[Any], rng: np.random.SeedSequence, simulate: bool, settings: dict[str, Any]
) -> dict[str, Any]:
    shared = {"dichotomies": settings["dichotomies"], "center": settings["center"]}
    found = manifold_geometry(points, groups, n_t=settings["n_t"], rng=rng, inactive=settings["inactive"], **shared)
    values: dict[str, Any] = {}
    for name in SCALARS:
        values[name], values[f"{name}_se"] = found[name], found[f"{name}_se"]  # type: ignore[literal-required]
        values[f"{name}_code"] = _code(values[name], found["reasons"].get(name, "undefined"))
        values[f"{name}_se_code"] = _code(values[f"{name}_se"], found["reasons"].get(f"{name}_se", "undefined"))
    whole = found["reasons"].get("capacity", "undefined")
    for name in PER_MANIFOLD:
        values[name] = found[name]  # type: ignore[literal-required]
        values[f"{name}_code"] = np.array([_code(value, whole) for value in values[name]], np.uint8)
    values["nonunique_share"] = found["nonunique_share"]
    values["nonunique_share_code"] = _code(found["nonunique_share"], whole)
    values |= dict.fromkeys(SIMULATED, np.nan) | {f"{name}_code": NOT_RECORDED for name in SIMULATED}
    if simulate:
        made = simulated_capacity(
            points, groups, n_trials=settings["n_trials"], rng=rng, bias=settings["bias"], **shared
        )
        for name, value in zip(SIMULATED, (made["capacity"], made["capacity_low"], made["capacity_high"]), strict=True):
            values[name] = value
            values[f"{name}_code"] = _code(value, made["reason"] if made["reason"] != "present" else "undefined")
    return values


def _code(value: float, reason: str) -> int:
    return REASONS.index(reason) if np.isnan(value) else 0


def _manifold_of(labels: NDArray[Any], set_names: Sequence[str], kind: str) -> NDArray[Any]:
    """The manifold of every sample, (eval_set x sample): its class, or its class within its eval set."""
    text = np.char.mod("%d", labels.astype(np.int64))
    if kind == "task_class":
        text = np.char.add(np.char.add(np.array(set_names, str)[:, None], ":"), text)
    return text.ravel()


def _subsample(groups: NDArray[Any], count: int | None, rng: np.random.SeedSequence) -> NDArray[np.int64]:
    """Positions of at most `count` samples of each manifold, in their order."""
    if count is None:
        return np.arange(len(groups))
    order = np.random.default_rng(rng).permutation(len(groups))
    kept = [order[groups[order] == name][:count] for name in np.unique(groups)]
    return np.sort(np.concatenate(kept))


def _stream(seed: int, moment: tuple[int, ...], kind: int) -> np.random.SeedSequence:
    """A stateless stream; whole numbers of any size and sign become words of 32 bits."""
    words = [word for number in moment for word in (number % _WORD, number // _WORD % _WORD)]
    return np.random.SeedSequence(seed, spawn_key=(*words, kind))
