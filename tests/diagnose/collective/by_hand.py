"""Collectives whose answers are known: by construction, not by computation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import waterjar
from waterjar.diagnose import collective

Array = NDArray[Any]
SURE = 8.0


def sure_of(answers: Array, classes: int, scale: float = SURE) -> Array:
    """(sample, class): logits that are sure of these answers."""
    return scale * np.eye(classes)[answers]


def thirds(n: int = 90) -> tuple[dict[str, Array], Array, Array]:
    """Three streams that each know a third of nine classes, and say the class after the right one elsewhere.

    The collective knows all: streams are sure of what they know, and hardly of the rest.
    """
    labels = np.arange(n) % 9
    streams = {}
    for i, name in enumerate("abc"):
        knows = labels // 3 == i
        logits = sure_of(labels, 9)
        logits[~knows] = sure_of((labels[~knows] + 3) % 9, 9, 0.1)
        streams[name] = logits
    return streams, labels, sure_of(labels, 9)


def parity(n: int = 64) -> tuple[dict[str, Array], Array, Array]:
    """The label is the parity of two bits; each stream sees one and guesses it: right half of the time."""
    left, right = np.arange(n) % 2, np.arange(n) // 2 % 2
    labels = left ^ right
    streams = {"left": sure_of(left, 2, 0.5), "right": sure_of(right, 2, 0.5)}
    return streams, labels, sure_of(labels, 2)


def alike(n: int = 60, count: int = 3, seed: int = 0) -> tuple[dict[str, Array], Array, Array]:
    """Streams that are all the same, and a collective that is like them."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=n)
    logits = rng.normal(size=(n, 4)) + sure_of(labels, 4, 1.0)
    return {f"s{i}": logits for i in range(count)}, labels, logits


def random_streams(n: int = 200, count: int = 3, classes: int = 4, seed: int = 0) -> tuple[dict[str, Array], Array]:
    """Independent streams, each somewhat right."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    return {f"s{i:02d}": rng.normal(size=(n, classes)) + sure_of(labels, classes, 1.5) for i in range(count)}, labels


def measured(
    path: Path, streams: dict[str, Any], *, settings: dict[str, Any] | None = None, **given: Any
) -> xr.Dataset:
    """The family, of streams that are written as a run."""
    run = waterjar.from_logits(path / "run", streams, **given)
    return collective.measure(run, **{"resamples": 50, **(settings or {})})


def last(result: xr.Dataset, name: str) -> Any:
    """The value at the last snapshot of the only repeat."""
    return result[name].values[0, -1]


def why(result: xr.Dataset, name: str) -> str:
    """Why a number is missing."""
    from waterjar.diagnose.labelled import reasons_of
    from waterjar.run.schema import REASONS

    return REASONS[int(np.max(reasons_of(result, name).values))]
