"""Fair shares of streams in what their collective reaches, and what pairs of them add to each other.

With v(S) what the collective reaches when only the streams S are present, and n streams,

    phi_i  = 1 / n       sum over k of mean over |S| = k, without i, of v(S + i) - v(S)
    I_ij   = 1 / (n - 1) sum over k of mean over |S| = k, without i and j, of v(S + ij) - v(S + i) - v(S + j) + v(S)

(Shapley 1953, and the interaction index of Grabisch & Roubens 1999). Where not all coalitions are known, phi is an
estimate: by orders in which streams joined (`shapley_of_orders`), or by walks from none to all through the coalitions
that are known (`shapley_of_walks`). Both sum to v(all) - v(none).
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


def shapley_of_walks(present: Bools, values: Floats) -> Floats:
    """(stream, ...): the mean over walks from no stream to all, one more at a time, through the coalitions there are.

    Each step is a fair choice among those that do not end before all are there. Of coalitions that were drawn without
    regard to who the streams are, the mean over draws is the Shapley value. NaN where no walk arrives.

    >>> shapley_of_walks(all_coalitions(2), np.array([0.0, 0.0, 0.0, 1.0]))
    array([0.5, 0.5])
    """
    n, rows = present.shape[1], _rows(present)
    last = (1 << n) - 1
    weights = np.full((n, len(present)), np.nan)
    by_size = sorted(rows, key=int.bit_count)
    steps: dict[int, list[int]] = {last: []} if last in rows else {}
    for code in reversed(by_size):
        onwards = [i for i in range(n) if not code >> i & 1 and code | 1 << i in steps]
        if onwards:
            steps[code] = onwards
    if 0 not in steps:
        return _applied(weights, values)
    weights[:] = 0.0
    share = dict.fromkeys(steps, 0.0) | {0: 1.0}
    for code in by_size:
        for i in steps.get(code, ()):
            part = share[code] / len(steps[code])
            share[code | 1 << i] += part
            weights[i, rows[code | 1 << i]] += part
            weights[i, rows[code]] -= part
    return _applied(weights, values)


def shapley_of_orders(present: Bools, values: Floats, places: NDArray[np.int64]) -> tuple[Floats, Floats] | None:
    """(stream, sample) by orders in which streams join, and (stream,) the standard error that their choice brings.

    What a stream adds hangs on how early it joins more than on whom it meets. So the first and the last place, where it
    meets nobody and everybody, are taken exactly, and the places between by what it adds beyond the others that had
    the same place in other pairs of orders. Shares sum to v(all) - v(none), their expectation is the Shapley value, and
    where streams do not interact they are exact. The error is that of a mean over pairs, NaN of a single one; it leans
    half on the spread that streams have on average, since one that never came early looks surer than it is.

    Parameters
    ----------
    values : (coalition, sample).
    places : (order, stream), the place at which each one joins; every second order is the one before it backwards.

    None where a coalition of these orders, a stream alone or all but one is not among the coalitions.

    >>> present, worth = all_coalitions(4), np.array([1.0, 2.0, 3.0, 4.0])
    >>> places = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [2, 1, 3, 0], [1, 2, 0, 3]])
    >>> shares, error = shapley_of_orders(present, (present @ worth)[:, None], places)
    >>> shares[:, 0], error
    (array([1., 2., 3., 4.]), array([0., 0., 0., 0.]))
    """
    n, rows = present.shape[1], _rows(present)
    bits = [1 << i for i in range(n)]
    alone, without = ([rows.get(code, -1) for code in codes] for codes in (bits, [sum(bits) - bit for bit in bits]))
    orders = np.argsort(places, axis=1)
    chains = np.array([[rows.get(sum(bits[i] for i in own[:k]), -1) for k in range(n + 1)] for own in orders])
    if min(chains.min(), *alone, *without) < 0:
        return None
    none, every = values[chains[0, 0]], values[chains[0, -1]]
    pairs = len(places) // 2
    with np.errstate(invalid="ignore"):  # infinite less infinite is not a number
        if pairs == 1:
            gains = [np.diff(values[chain], axis=0)[own] for chain, own in zip(chains, places, strict=True)]
            return np.mean(gains, axis=0), np.full(n, np.nan)
        ends = values[alone] - none + every - values[without]
        usual = values[without].mean(0) - values[without]  # by what each one adds to all others, its least
        shares = (ends + values[without].mean(0) - values[alone].mean(0) + (n - 2) * usual) / n
        inside = orders[:, 1:-1]

        def beyond(order: int) -> Floats:
            """(place, sample): what the stream at each place adds, beyond what is usual for it."""
            return np.asarray(np.diff(values[chains[order, 1:-1]], axis=0) - usual[inside[order]])

        whole = np.zeros((n - 2, values.shape[1]))
        for order in range(len(orders)):
            whole += beyond(order)
        means = np.zeros((pairs, n))
        for pair in range(pairs):
            two = [(order, beyond(order)) for order in (2 * pair, 2 * pair + 1)]
            others = (whole - two[0][1] - two[1][1]) / (len(orders) - 2)
            for order, own in two:
                shares[inside[order]] += (own - others) / len(orders)
                means[pair, inside[order]] += (own - others).mean(1) / 2
        spread = means.var(0, ddof=1)
        return shares, np.sqrt((spread + spread.mean()) / (2 * pairs))


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
