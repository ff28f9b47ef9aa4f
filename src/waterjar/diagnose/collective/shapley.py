"""Fair shares of streams in what their collective reaches, and what pairs of them add to each other.

With v(S) what the collective reaches when only the streams S are present, and n streams,

    phi_i  = 1 / n       sum over k of mean over |S| = k, without i, of v(S + i) - v(S)
    I_ij   = 1 / (n - 1) sum over k of mean over |S| = k, without i and j, of v(S + ij) - v(S + i) - v(S + j) + v(S)

(Shapley 1953, and the interaction index of Grabisch & Roubens 1999). Where not all coalitions are known, the means are
over those that are: of sampled coalitions an estimate, stratified by size.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.result import Floats
from waterjar.errors import WaterjarError

Bools = NDArray[np.bool_]


def all_coalitions(n: int) -> Bools:
    """(coalition, stream): every coalition of n streams; stream i is present in number m if bit i of m is set.

    >>> all_coalitions(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    found: Bools = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.bool_)
    return found


def shapley_values(values: ArrayLike, n: int) -> Floats:
    """(stream, ...): Shapley values of a game of n players; values (coalition, ...) are in the order of bits.

    >>> shapley_values([0.0, 0.0, 0.0, 1.0], 2)
    array([0.5, 0.5])
    """
    return shapley_of(all_coalitions(n), _of_all(values, n))


def shapley_interactions(values: ArrayLike, n: int) -> Floats:
    """(stream, stream, ...): Shapley interaction index of every pair, NaN of a stream with itself.

    >>> shapley_interactions([0.0, 0.0, 0.0, 1.0], 2)
    array([[nan,  1.],
           [ 1., nan]])
    """
    return interactions_of(all_coalitions(n), _of_all(values, n))


def _of_all(values: ArrayLike, n: int) -> Floats:
    array = np.asarray(values, np.float64)
    if len(array) != 2**n:
        raise WaterjarError(f"values of {len(array)} coalitions; expected {2**n}, all of {n} streams")
    return array


def shapley_of(present: Bools, values: Floats) -> Floats:
    """(stream, ...) of coalitions (coalition, stream) with values (coalition, ...); NaN where a size is not covered.

    >>> shapley_of(np.array([[False], [True]]), np.array([0.25, 1.0]))
    array([0.75])
    """
    n, rows = present.shape[1], _rows(present)
    weights = np.zeros((n, len(present)))
    for stream in range(n):
        strata: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for code, row in rows.items():
            other = rows.get(code | 1 << stream)
            if not code >> stream & 1 and other is not None:
                strata[code.bit_count()].append((row, other))
        weights[stream] = _weights(strata, n, (-1, 1), len(present))
    return _applied(weights, values)


def interactions_of(present: Bools, values: Floats) -> Floats:
    """(stream, stream, ...) of coalitions with values (coalition, ...); NaN where a size is not covered."""
    n, rows = present.shape[1], _rows(present)
    weights = np.full((n, n, len(present)), np.nan)
    for one, other in itertools.combinations(range(n), 2):
        both = 1 << one | 1 << other
        strata: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for code, row in rows.items():
            four = (row, *(rows.get(code | more, -1) for more in (1 << one, 1 << other, both)))
            if not code & both and min(four) >= 0:
                strata[code.bit_count()].append(four)
        weights[one, other] = weights[other, one] = _weights(strata, n - 1, (1, -1, -1, 1), len(present))
    return _applied(weights, values)


def _rows(present: Bools) -> dict[int, int]:
    """Coalition, as a number with a bit for each stream -> its row."""
    codes = [sum(1 << i for i in np.flatnonzero(one).tolist()) for one in present]
    return {code: row for row, code in enumerate(codes)}


def _weights(strata: dict[int, list[tuple[int, ...]]], sizes: int, signs: tuple[int, ...], count: int) -> Floats:
    """(coalition,): how much each counts in the mean over sizes of the mean over entries; NaN if a size has none."""
    found = np.full(count, np.nan if len(strata) < sizes else 0.0)
    for entries in strata.values():
        for place, sign in enumerate(signs):
            np.add.at(found, [entry[place] for entry in entries], sign / (sizes * len(entries)))
    return found


def _applied(weights: Floats, values: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # infinite less infinite is not a number
        return np.asarray(np.tensordot(weights, values, 1), np.float64)


def drawn_orders(n: int, samples: int, seed: int) -> NDArray[np.int64]:
    """(order, stream): random orders of n streams, each followed by itself backwards, which halves the noise.

    >>> drawn_orders(3, 2, seed=0).tolist()
    [[2, 1, 0], [0, 1, 2]]
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n, 1)))
    forth = np.array([rng.permutation(n) for _ in range(-(-samples // 2))])
    return np.stack([forth, forth[:, ::-1]], 1).reshape(-1, n)
