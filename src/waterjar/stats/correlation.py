"""Which diagnostics move together over runs: correlations with intervals, and an order that shows the blocks.

Runs of one learner resemble each other, so a correlation pooled over learners may be one of learners. `within_groups`
asks the other question: do they move together among the runs of one learner?
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy

from waterjar.errors import WaterjarError, unknown_name
from waterjar.stats.corrections import METHODS as CORRECTIONS
from waterjar.stats.corrections import correct
from waterjar.stats.samples import Array, check_between, constant, observed_pairs, vector, why_undefined

METHODS = ("spearman", "pearson")
EXACT_UP_TO = 7  # runs: 5,040 pairings
_NAN = float("nan")


@dataclass(frozen=True)
class Correlation:
    """How far two metrics go together over runs; `p_method` says how p was found."""

    r: float
    low: float
    high: float
    p_value: float
    n: int
    n_missing: int
    method: str
    confidence: float
    p_method: str = ""
    reason: str = ""

    def __float__(self) -> float:
        return self.r

    def as_row(self) -> dict[str, Any]:
        """Return the fields as one row of a table."""
        return asdict(self)


def correlate_pair(
    x: npt.ArrayLike, y: npt.ArrayLike, *, method: str = "spearman", confidence: float = 0.95
) -> Correlation:
    """Correlate two metrics over runs, shapes (run,); runs that lack one of them are left out and counted.

    Bounds: tanh(atanh r ± z s), with s² = 1/(n-3) for Pearson (Fisher 1921) and (1 + r²/2)/(n-3) for Spearman (Bonett
    & Wright 2000, Psychometrika 65). They are NaN, with a reason, below four runs and at r = ±1, where atanh is
    infinite. p of Spearman is exact up to seven runs, where the t approximation would call four ordered runs
    certain; from eight on, and for Pearson, it is scipy's.

    >>> result = correlate_pair([1, 2, 3, 4, 5], [1, 3, 2, 5, 4])
    >>> round(result.r, 2), round(result.p_value, 3)
    (0.8, 0.133)
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    check_between(confidence, 0.0, 1.0, "confidence")
    first, second, n_missing = observed_pairs(x, y)
    n = first.size
    reason = why_undefined(first, 3, "x") or why_undefined(second, 3, "y")
    if not reason and (constant(first) or constant(second)):
        reason = f"{'x' if constant(first) else 'y'} is the same in all {n} runs"
    if reason:
        return Correlation(_NAN, _NAN, _NAN, _NAN, n, n_missing, method, confidence, reason=reason)
    if method == "pearson":
        result = scipy.stats.pearsonr(first, second)
        r, p, p_method = float(result.statistic), float(result.pvalue), "beta"
    else:
        r, p, p_method = _spearman(scipy.stats.rankdata(first), scipy.stats.rankdata(second))
    # Rounding may leave r one unit beside ±1.
    if n < 4 or 1 - abs(r) < 1e-12:
        why = f"{n} runs: Fisher's interval needs four" if n < 4 else "r is ±1, where Fisher's interval has no width"
        return Correlation(r, _NAN, _NAN, p, n, n_missing, method, confidence, p_method, why)
    variance = (1.0 if method == "pearson" else 1 + r**2 / 2) / (n - 3)
    half = float(scipy.stats.norm.isf((1 - confidence) / 2)) * np.sqrt(variance)
    low, high = np.tanh(np.arctanh(r) - half), np.tanh(np.arctanh(r) + half)
    return Correlation(r, float(low), float(high), p, n, n_missing, method, confidence, p_method)


def within_groups(
    x: npt.ArrayLike, y: npt.ArrayLike, groups: Sequence[Hashable], *, confidence: float = 0.95
) -> Correlation:
    """Correlate two metrics among the runs of a group (repeated measures correlation), shapes (run,).

    One slope for all groups, an intercept for each (Bakdash & Marusich 2017, Frontiers in Psychology 8:456): Pearson's
    r of what is left when each group's mean is taken away, with N - k - 1 degrees of freedom for N runs in k groups.
    p by t, bounds by Fisher's z. A group of one run says nothing here, and is left out. `n` is N.

    >>> within_groups([1, 2, 3, 11, 12, 13], [3, 2, 1, 9, 8, 7], ["a"] * 3 + ["b"] * 3).r
    -1.0
    """
    check_between(confidence, 0.0, 1.0, "confidence")
    first, second = vector(x, "x"), vector(y, "y")
    labels = pd.Series(list(groups), dtype=object)
    if not first.size == second.size == len(labels):
        raise WaterjarError(f"one x, one y and one group a run: got {first.size}, {second.size} and {len(labels)}")
    there = ~(np.isnan(first) | np.isnan(second))
    kept = pd.DataFrame({"x": first, "y": second, "group": labels})[there]
    kept = kept[kept.groupby("group", sort=False)["x"].transform("size") > 1]
    n, free = len(kept), len(kept) - kept["group"].nunique() - 1

    def answer(r: float, low: float, high: float, p: float, reason: str = "") -> Correlation:
        missing = int((~there).sum())
        return Correlation(
            r, low, high, p, n, missing, "within_groups", confidence, "t" if not np.isnan(p) else "", reason
        )

    if free < 1:
        return answer(_NAN, _NAN, _NAN, _NAN, f"{n} runs in groups of two or more: too few to correlate within them")
    if not np.isfinite(kept[["x", "y"]].to_numpy()).all():
        return answer(_NAN, _NAN, _NAN, _NAN, "a value is infinite")
    inner = kept[["x", "y"]] - kept.groupby("group", sort=False)[["x", "y"]].transform("mean")
    for name in ("x", "y"):
        if constant(inner[name].to_numpy(), float(np.abs(kept[name]).max())):
            return answer(_NAN, _NAN, _NAN, _NAN, f"{name} is the same in all runs of each group")
    r = float(np.clip(scipy.stats.pearsonr(inner["x"], inner["y"]).statistic, -1.0, 1.0))
    if 1 - abs(r) < 1e-12:
        return answer(float(round(r)), _NAN, _NAN, 0.0, "r is ±1, where Fisher's interval has no width")
    p = 2 * float(scipy.stats.t.sf(abs(r) * np.sqrt(free / (1 - r**2)), free))
    if free < 2:
        return answer(r, _NAN, _NAN, p, "Fisher's interval needs two degrees of freedom")
    half = float(scipy.stats.norm.isf((1 - confidence) / 2)) / np.sqrt(free - 1)
    return answer(r, float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half)), p)


def correlate(
    table: pd.DataFrame,
    columns: Sequence[str] | None = None,
    *,
    method: str = "spearman",
    confidence: float = 0.95,
    correction: str = "benjamini_hochberg",
    groups: Sequence[Hashable] | None = None,
    coupled: Callable[[str, str], bool] | None = None,
) -> pd.DataFrame:
    """Correlate every pair of columns over the rows of a table, one row per run.

    Parameters
    ----------
    columns:
        All numeric ones by default.
    groups:
        The group of every row (its learner), for correlations within groups beside the pooled ones.
    coupled:
        Whether two columns go together by arithmetic, because one is made of the other or both of the same numbers.
        Such a pair is told, and tests nothing: it is no member of the family that p is corrected over.

    Returns
    -------
    A tidy table, one row per pair: x, y, the fields of `Correlation`, `coupled`, `p_corrected` over all pairs that are
    not (one family), and with groups r_within, low_within, high_within, p_within, p_within_corrected (a
    family of its own), n_within, reason_within: see `within_groups`. `table.attrs["columns"]` of the result keeps the
    order of columns.

    >>> runs = pd.DataFrame({"ad": [1, 2, 3, 4], "pd": [2, 1, 4, 3], "sfr": [4, 3, 2, 1]})
    >>> correlate(runs)[["x", "y", "r", "n"]].round(2).values.tolist()
    [['ad', 'pd', 0.6, 4], ['ad', 'sfr', -1.0, 4], ['pd', 'sfr', -0.6, 4]]
    """
    if correction not in CORRECTIONS:
        raise unknown_name("correction", correction, CORRECTIONS)
    names = list(table.select_dtypes("number").columns) if columns is None else list(columns)
    for name in names:
        if name not in table.columns:
            raise unknown_name("column", name, table.columns)
    if len(set(names)) < max(2, len(names)):
        raise WaterjarError(f"two different columns or more are needed to correlate: got {names}")
    rows = []
    for x, y in itertools.combinations(names, 2):
        pair = correlate_pair(_numbers(table, x), _numbers(table, y), method=method, confidence=confidence)
        row = {"x": x, "y": y, **pair.as_row(), "coupled": coupled is not None and coupled(x, y)}
        if groups is not None:
            inner = within_groups(_numbers(table, x), _numbers(table, y), groups, confidence=confidence)
            row |= {"r_within": inner.r, "low_within": inner.low, "high_within": inner.high}
            row |= {"p_within": inner.p_value, "n_within": inner.n, "reason_within": inner.reason}
        rows.append(row)
    found = pd.DataFrame(rows)
    if groups is not None:
        found["p_within_corrected"] = CORRECTIONS[correction](found["p_within"].where(~found["coupled"]))
    tested = found.assign(p_value=found["p_value"].where(~found["coupled"]))
    result = correct(tested, method=correction).assign(p_value=found["p_value"])
    result.attrs["columns"] = names
    return result


def correlation_matrix(correlations: pd.DataFrame) -> pd.DataFrame:
    """Lay the pairs of `correlate` out as a symmetric matrix with ones on its diagonal."""
    names = list(dict.fromkeys([*correlations["x"], *correlations["y"]]))
    matrix = pd.DataFrame(np.eye(len(names)), index=names, columns=names)
    for x, y, r in zip(correlations["x"], correlations["y"], correlations["r"], strict=True):
        matrix.loc[x, y] = matrix.loc[y, x] = r
    return matrix


def cluster_order(correlations: pd.DataFrame) -> list[str]:
    """Order the columns for a heatmap so that those which move together, or against each other, stand together.

    Average linkage on the distance 1 - |r|, leaves in optimal order; a pair without r counts as unrelated (distance 1).
    """
    matrix = correlation_matrix(correlations)
    distance = 1 - np.nan_to_num(np.abs(matrix.to_numpy(copy=True)), nan=0.0)
    np.fill_diagonal(distance, 0.0)
    condensed = scipy.spatial.distance.squareform(np.maximum(distance, 0.0))  # rounding: |r| may exceed 1 by a bit
    leaves = scipy.cluster.hierarchy.leaves_list(
        scipy.cluster.hierarchy.linkage(condensed, "average", optimal_ordering=True)
    )
    return [str(matrix.index[leaf]) for leaf in leaves]


def _spearman(x: Array, y: Array) -> tuple[float, float, str]:
    result = scipy.stats.spearmanr(x, y)
    r = float(result.statistic)
    if x.size > EXACT_UP_TO:
        return r, float(result.pvalue), "t"
    centred = y - y.mean()

    def products(ranks: Array, axis: int = -1) -> Any:
        # r is this sum times a constant, so both have one permutation distribution.
        return np.sum(ranks * centred, axis=axis)

    exact = scipy.stats.permutation_test(
        (x,), products, permutation_type="pairings", vectorized=True, n_resamples=np.inf, alternative="two-sided"
    )
    return r, float(exact.pvalue), "exact"


def _numbers(table: pd.DataFrame, name: str) -> Array:
    if not pd.api.types.is_numeric_dtype(table[name]):
        raise WaterjarError(f"column '{name}' holds {table[name].dtype}, not numbers: leave it out of columns")
    values: Array = table[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return values
