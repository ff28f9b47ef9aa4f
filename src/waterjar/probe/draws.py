"""Random numbers of every image by itself: those of an image do not depend on which others are drawn with it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError

Floats = NDArray[np.float64]


class Draws:
    """A generator for each image, from a seed, what is drawn for, and the image's own number.

    `what` are words and whole numbers: the name of a shift and its severity, or that of an attack. Batches of any size,
    in any order, give an image the same numbers.

    >>> both = Draws(0, [4, 7], "noise", 3).uniform()
    >>> alone = Draws(0, [7], "noise", 3).uniform()
    >>> bool(both[1] == alone[0])
    True
    """

    def __init__(self, seed: int, index: Sequence[int] | NDArray[np.int64], *what: str | int) -> None:
        if seed < 0:
            raise WaterjarError(f"seed={seed}: expected a whole number from 0 on")
        key = tuple(zlib.crc32(word.encode()) if isinstance(word, str) else int(word) for word in what)
        self._generators = [
            np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*key, int(place)))) for place in index
        ]

    def __len__(self) -> int:
        return len(self._generators)

    def uniform(self, shape: Sequence[int] = (), low: float = 0.0, high: float = 1.0) -> Floats:
        """(image, *shape), evenly from [low, high)."""
        return self._stacked([one.uniform(low, high, tuple(shape)) for one in self._generators], shape)

    def normal(self, shape: Sequence[int] = ()) -> Floats:
        """(image, *shape), of mean 0 and standard deviation 1."""
        return self._stacked([one.standard_normal(tuple(shape)) for one in self._generators], shape)

    def of(self, places: Sequence[int] | NDArray[np.int64]) -> Draws:
        """Those of some of the images; they go on where these are."""
        found = object.__new__(Draws)
        found._generators = [self._generators[int(place)] for place in places]
        return found

    @staticmethod
    def _stacked(parts: Sequence[object], shape: Sequence[int]) -> Floats:
        return np.asarray(parts, np.float64).reshape(len(parts), *shape)
