"""Many tests at once: Holm against any false claim, Benjamini-Hochberg against too large a share of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy

from waterjar.errors import WaterjarError, unknown_name
from waterjar.stats.samples import Array, vector


def holm(p_values: npt.ArrayLike) -> Array:
    """Adjust p values by Holm's step-down (1979): p(i) -> max over j <= i of min(1, (m - j + 1) p(j)).

    Comparing the result with alpha holds the family-wise error at alpha, whatever the dependence. NaN stays NaN and
    does not count in m.

    >>> holm([0.01, 0.04, 0.03, float("nan")]).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    return _adjusted(p_values, _holm)


def benjamini_hochberg(p_values: npt.ArrayLike) -> Array:
    """Adjust p values by Benjamini and Hochberg (1995), as `scipy.stats.false_discovery_control` does.

    Comparing the result with q holds the expected share of false claims at q, for independent or positively dependent
    tests. NaN stays NaN and does not count.

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    return _adjusted(p_values, scipy.stats.false_discovery_control)


METHODS: dict[str, Callable[[npt.ArrayLike], Array]] = {"holm": holm, "benjamini_hochberg": benjamini_hochberg}


def correct(
    table: pd.DataFrame, *, family: Sequence[str] = (), method: str = "holm", p: str = "p_value"
) -> pd.DataFrame:
    """Correct the p values of a tidy table once, over families that are named.

    Parameters
    ----------
    family:
        Columns whose values, taken together, tell the families apart; without any, the whole table is one family.

    Returns
    -------
    A copy of the table with the columns `p_corrected`, `correction`, `family` (such as "metric=ad" or "all"),
    `family_size` (tests counted) and `family_missing` (tests without a p value: left out, still NaN).

    >>> table = pd.DataFrame({"metric": ["ad", "ad", "pd"], "p_value": [0.01, 0.04, 0.03]})
    >>> correct(table, family=["metric"])["p_corrected"].tolist()
    [0.02, 0.04, 0.03]
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if isinstance(family, str):
        raise WaterjarError(f"family='{family}' must be a list of columns: write family=['{family}']")
    for column in (p, *family):
        if column not in table.columns:
            raise unknown_name("column", column, table.columns)
    if "p_corrected" in table.columns:
        raise WaterjarError("the table has a column p_corrected: p values are corrected once, not twice")
    raw = table[p].to_numpy(dtype=np.float64, na_value=np.nan)
    names = _family_names(table, family)
    corrected = np.full(raw.size, np.nan)
    size, missing = np.zeros(raw.size, dtype=np.int64), np.zeros(raw.size, dtype=np.int64)
    for name in dict.fromkeys(names):
        rows = np.array([other == name for other in names])
        corrected[rows] = METHODS[method](raw[rows])
        missing[rows] = int(np.isnan(raw[rows]).sum())
        size[rows] = int(rows.sum()) - missing[rows]
    return table.assign(
        p_corrected=corrected, correction=method, family=names, family_size=size, family_missing=missing
    )


def _family_names(table: pd.DataFrame, family: Sequence[str]) -> list[str]:
    if not family:
        return ["all"] * len(table)
    rows = zip(*(table[column] for column in family), strict=True)
    return [", ".join(f"{column}={value}" for column, value in zip(family, row, strict=True)) for row in rows]


def _holm(p_values: Array) -> Array:
    order = np.argsort(p_values, kind="stable")
    stepped = np.arange(p_values.size, 0, -1) * p_values[order]
    adjusted = np.empty(p_values.size)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(stepped))
    return adjusted


def _adjusted(p_values: npt.ArrayLike, method: Callable[[Array], Array]) -> Array:
    raw = vector(p_values, "p_values")
    known = ~np.isnan(raw)
    if ((raw[known] < 0) | (raw[known] > 1)).any():
        raise WaterjarError(f"p values lie between 0 and 1: {raw[known & ~((raw >= 0) & (raw <= 1))].tolist()} do not")
    adjusted = np.full(raw.size, np.nan)
    if known.any():
        adjusted[known] = method(raw[known])
    return adjusted
