"""The random directions t and the dichotomies y of manifold capacity.

Both come from streams of their own, so that `manifold_geometry` and `simulated_capacity` see the same dichotomies for
the same `rng`, and the first draws stay the same when more are asked for.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry.inputs import Rng, checked_rng
from waterjar.errors import WaterjarError, unknown_name

Floats = NDArray[np.float64]
DichotomyKind: TypeAlias = Literal["uniform", "balanced", "one_vs_rest", "opposite_pairs"]
Dichotomies: TypeAlias = DichotomyKind | NDArray[np.generic]

_DIRECTIONS, _DICHOTOMIES, _PROJECTIONS = range(3)


def directions(n: int, dimension: int, rng: Rng) -> Floats:
    """T ~ N(0, I), (draw, dimension)."""
    return np.random.default_rng(_stream(rng, _DIRECTIONS)).standard_normal((n, dimension))


def projection_generator(rng: Rng) -> np.random.PCG64:
    """Where the random projections of `simulated_capacity` come from."""
    return np.random.PCG64(_stream(rng, _PROJECTIONS))


def dichotomies(kind: Dichotomies, n: int, manifolds: int, rng: Rng) -> Floats:
    """Y (draw, manifold) of -1 and +1.

    - uniform: every sign is tossed.
    - balanced: half of the manifolds +1; of an odd number, the one more is on either side.
    - one_vs_rest: one manifold +1.
    - opposite_pairs: uniform, but draws 2k and 2k + 1 have opposite signs (and the same t). Antithetic: the mean over
      such a pair varies less than that over two free draws.
    - an array: itself.

    >>> dichotomies("one_vs_rest", 2, 3, 0)
    array([[-1., -1.,  1.],
           [ 1., -1., -1.]])
    """
    if not isinstance(kind, str):
        given = np.asarray(kind, dtype=np.float64)
        if given.shape != (n, manifolds) or not np.isin(given, (-1.0, 1.0)).all():
            raise WaterjarError(
                f"dichotomies of shape {given.shape}: an array must be ({n}, {manifolds}), a row per draw and a column "
                "per manifold (labels sorted), with -1 and +1 only"
            )
        return given
    generator = np.random.default_rng(_stream(rng, _DICHOTOMIES))
    if kind == "uniform":
        return _signs(generator.random((n, manifolds)) < 0.5)
    if kind == "balanced":
        # In each row a random order; the last column tells on which side the odd one goes.
        keys = generator.random((n, manifolds + 1))
        ranks = np.argsort(np.argsort(keys[:, :-1], axis=1), axis=1)
        return _signs(ranks < (manifolds + (keys[:, -1:] < 0.5)) // 2)
    if kind == "one_vs_rest":
        one = (generator.random(n) * manifolds).astype(np.int64)
        return _signs(np.arange(manifolds) == one[:, None])
    if kind == "opposite_pairs":
        if n % 2:
            raise WaterjarError(f"n = {n} with dichotomies='opposite_pairs': it must be even")
        half = _signs(generator.random((n // 2, manifolds)) < 0.5)
        return np.stack([half, -half], axis=1).reshape(n, manifolds)
    raise unknown_name("dichotomies", kind, get_args(DichotomyKind))


def _signs(positive: NDArray[np.bool_]) -> Floats:
    return np.where(positive, 1.0, -1.0)


def _stream(rng: Rng, which: int) -> np.random.SeedSequence:
    """A stream of its own for each purpose, without state."""
    seed = checked_rng(rng)
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, which), pool_size=root.pool_size)
