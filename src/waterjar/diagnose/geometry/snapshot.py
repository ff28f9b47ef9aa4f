"""One snapshot of a run: which points make which manifolds, and the finished geometry that the metrics read.

A piece of work is one layer at one snapshot. It runs anywhere and is kept as plain arrays, over repeats; `unpack` makes
of them what a metric reads.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry.capacity import simulated_capacity
from waterjar.diagnose.geometry.manifold import Geometry, manifold_geometry
from waterjar.diagnose.pieces import Arrays
from waterjar.diagnose.result import EMPTY_SET, Result
from waterjar.diagnose.snapshots import RunArrays
from waterjar.run.reader import Run

ManifoldKind: TypeAlias = Literal["class", "task_class"]
DrawKind: TypeAlias = Literal["independent", "common"]
SIMULATED = ("capacity", "capacity_low", "capacity_high")
_DRAW, _SUBSAMPLE = range(2)
PLAIN = ("_all", "_normal")
_WORD = 2**32


@dataclass(frozen=True)
class SnapshotGeometry:
    """The finished geometry of one repeat, snapshot and layer: what every metric of the family reads.

    `found["radius"]` is a number of `manifold_geometry` by its name, with its reason and standard error.
    """

    geometry: Geometry
    simulated: Mapping[str, Result]
    """Capacity by simulation and its bounds, as `SIMULATED` names them; `not_asked` where nothing was simulated."""
    manifolds: tuple[str, ...]
    """All manifolds of the run: the coordinate `manifold` of the result."""

    def __getitem__(self, name: str) -> Result:
        return self.geometry[name]

    def over_manifolds(self, name: str) -> Result:
        """Numbers of each manifold along the run's manifolds; `empty_set` where the repeat has no sample of one."""
        own = self[name]
        values = np.full(len(self.manifolds), np.nan)
        reasons = np.full(len(self.manifolds), EMPTY_SET, np.uint8)
        places = [self.manifolds.index(label) for label in self.geometry.labels.tolist()]
        values[places], reasons[places] = own.value, own.reason
        return Result.of(values, reasons, n=own.n)


def samples(arrays: RunArrays, layer: str, settings: Mapping[str, Any]) -> tuple[list[int], NDArray[np.str_]]:
    """Positions of the eval sets that count, and the manifold (repeat, eval_set x sample) of each of their samples."""
    names = [str(name) for name in arrays.whole(f"features/{layer}/eval_set")]
    sets = arrays.eval_sets(f"features/{layer}", settings["eval_sets"])
    if settings["eval_sets"] is None:
        sets = [i for i in sets if names[i].endswith(PLAIN)] or sets
    order = [str(name) for name in arrays.whole("probe_samples/eval_set")]
    labels = arrays.whole("probe_samples/label")[:, [order.index(names[i]) for i in sets]]
    text = np.char.mod("%d", labels.astype(np.int64))
    if settings["manifolds"] == "task_class":
        text = np.char.add(np.array([f"{names[i]}:" for i in sets])[:, None], text)
    return sets, text.reshape(len(text), -1)


@functools.lru_cache(maxsize=1)
def _opened(path: str, _digest: str) -> RunArrays:
    """The run that the pieces before were of, too, unless its root has changed since."""
    return RunArrays(Run(Path(path)))


@functools.lru_cache(maxsize=4)
def _chosen(
    path: str, digest: str, layer: str, eval_sets: tuple[str, ...] | None, manifolds: str, count: int | None, seed: int
) -> tuple[list[int], NDArray[np.str_], list[NDArray[np.int64]]]:
    """`samples` of a run that is open, and which of them count in each repeat: the same at all snapshots."""
    arrays = _opened(path, digest)
    sets, manifold_of = samples(arrays, layer, {"eval_sets": eval_sets, "manifolds": manifolds})
    streams = [_stream(seed, (own,), _SUBSAMPLE) for own in arrays.seeds]
    return sets, manifold_of, [_subsample(of, count, rng) for of, rng in zip(manifold_of, streams, strict=True)]


def geometry_of_snapshot(
    path: str,
    digest: str,
    layer: str,
    position: int,
    label: int,
    simulate: bool,
    task: int,
    settings: Mapping[str, Any],
) -> Arrays:
    """One layer at one snapshot, all repeats: every number over (repeat, ...). Repeats with fewer manifolds are padded.

    Parameters
    ----------
    digest : that of the run's root, and those of its annotations.
    position, label : where the snapshot stands among those of the layer, and in the run.
    simulate : whether capacity is simulated as well.
    task : the place of the task in training; with the label it says which random numbers the snapshot has.
    """
    arrays = _opened(path, digest)
    asked = None if settings["eval_sets"] is None else tuple(settings["eval_sets"])
    how = settings["manifolds"], settings["subsamples"], settings["seed"]
    sets, manifold_of, chosen = _chosen(path, digest, layer, asked, *how)
    found = []
    for repeat, (seed, own) in enumerate(zip(arrays.seeds, chosen, strict=True)):
        features = arrays.row(f"features/{layer}/features", position, slice(repeat, repeat + 1))[0][sets]
        points = features.reshape(-1, features.shape[-1])[own]
        moment = (seed, task + 1, label) if settings["draws"] == "independent" else (seed,)
        rng = _stream(settings["seed"], moment, _DRAW)
        found.append(_measured(points, manifold_of[repeat][own], rng, simulate, settings))
    return {name: _stacked([one[name] for one in found]) for name in found[0]}


def unpack(piece: Arrays, manifolds: tuple[str, ...], settings: Any) -> Iterator[SnapshotGeometry]:
    """The geometry of every repeat of a piece."""
    for repeat, count in enumerate(piece["count"].tolist()):
        own = {name: _of_repeat(values, repeat, count) for name, values in piece.items()}
        how = settings.n_t, settings.dichotomies, settings.inactive, settings.center
        geometry = Geometry(own, own["labels"], own["n_points"], *how, own["reason"], own["note"])
        simulated = {
            name: Result(own[f"simulated_{name}"], own[f"simulated_{name}_reason"], settings.n_trials)
            for name in SIMULATED
        }
        yield SnapshotGeometry(geometry, simulated, manifolds)


def _of_repeat(values: NDArray[Any], repeat: int, manifolds: int) -> Any:
    """What `_stacked` made one array of: a number, a word, or an array over manifolds."""
    if values.ndim == 1:
        return values[repeat].item()
    part: tuple[Any, ...] = (repeat, *[slice(manifolds)] * (values.ndim - 1))
    return values[part]


def _measured(
    points: NDArray[Any],
    manifold_of: NDArray[np.str_],
    rng: np.random.SeedSequence,
    simulate: bool,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """The numbers of one repeat, by name, and why some are missing."""
    shared = {"dichotomies": settings["dichotomies"], "center": settings["center"]}
    found = manifold_geometry(
        points, manifold_of, n_t=settings["n_t"], rng=rng, inactive=settings["inactive"], **shared
    )
    about = {"labels": found.labels, "n_points": found.n_points, "count": len(found.labels)}
    made: Mapping[str, Any] = dict.fromkeys(SIMULATED, Result.missing("not_asked"))
    if simulate:
        made = simulated_capacity(
            points, manifold_of, n_trials=settings["n_trials"], rng=rng, bias=settings["bias"], **shared
        )
    for name in SIMULATED:
        about |= {f"simulated_{name}": made[name].value, f"simulated_{name}_reason": made[name].reason}
    return {**found.numbers, **about, "reason": found.reason, "note": found.note}


def _stacked(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers, words or arrays of repeats in one array; smaller arrays fill the beginning of their row."""
    arrays = [np.asarray(value) for value in values]
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    shape = np.max([array.shape for array in arrays], axis=0)
    whole = np.zeros((len(arrays), *shape), np.result_type(*arrays))
    for row, array in zip(whole, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return whole


def _subsample(manifold_of: NDArray[np.str_], count: int | None, rng: np.random.SeedSequence) -> NDArray[np.int64]:
    """Positions of at most `count` samples of each manifold, in their order."""
    if count is None:
        return np.arange(len(manifold_of))
    order = np.random.default_rng(rng).permutation(len(manifold_of))
    kept = [order[manifold_of[order] == name][:count] for name in np.unique(manifold_of)]
    return np.sort(np.concatenate(kept))


def _stream(seed: int, moment: tuple[int, ...], kind: int) -> np.random.SeedSequence:
    """A stateless stream; whole numbers of any size and sign become words of 32 bits."""
    words = [word for number in moment for word in (number % _WORD, number // _WORD % _WORD)]
    return np.random.SeedSequence(seed, spawn_key=(*words, kind))
