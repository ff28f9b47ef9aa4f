"""Showing that two groups do NOT differ by more than a margin: two one-sided tests (Schuirmann 1987)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from waterjar.errors import WaterjarError
from waterjar.stats.samples import check_between, observed, observed_pairs
from waterjar.stats.significance import difference_interval, standard_error

_NAN = float("nan")


@dataclass(frozen=True)
class Equivalence:
    """Whether mean(a) - mean(b) lies inside the margin. The interval is at 1 - 2 alpha: inside it means equivalent."""

    equivalent: bool
    p_value: float
    p_lower: float
    p_upper: float
    difference: float
    low: float
    high: float
    margin_low: float
    margin_high: float
    n_a: int
    n_b: int
    n_missing: int
    paired: bool
    alpha: float
    reason: str = ""

    def as_row(self) -> dict[str, Any]:
        """Return the fields as one row of a table."""
        return asdict(self)


def tost(
    a: npt.ArrayLike, b: npt.ArrayLike, *, margin: float | tuple[float, float], paired: bool, alpha: float = 0.05
) -> Equivalence:
    """Test by TOST whether the means differ by less than `margin`, either way.

    Parameters
    ----------
    a, b:
        Shapes (seed,); NaN is a missing seed, left out (with its partner, when paired) and counted.
    margin:
        The largest difference that does not matter, in units of the values: m for (-m, m), or (low, high). There is no
        default: only the person who asks knows it.

    p_lower tests difference <= margin_low, p_upper tests difference >= margin_high, both by t (Welch or paired), and
    `p_value` is the larger. A difference that is not significant is no evidence of equivalence; this is.

    >>> tost([0.70, 0.71, 0.72], [0.70, 0.72, 0.71], margin=0.05, paired=False).equivalent
    True
    """
    check_between(alpha, 0.0, 0.5, "alpha")
    margin_low, margin_high = margin if isinstance(margin, tuple) else (-margin, margin)
    if not margin_low < margin_high:
        raise WaterjarError(f"margin ({margin_low}, {margin_high}) is empty: give a positive number, or (low, high)")
    if paired:
        first, second, n_missing = observed_pairs(a, b)
    else:
        first, missing_a = observed(a, "a")
        second, missing_b = observed(b, "b")
        n_missing = missing_a + missing_b
    difference, low, high, reason = difference_interval(first, second, paired, 1 - 2 * alpha)
    p_lower = p_upper = _NAN
    if not reason:
        error, df = standard_error(first, second, paired)
        if error == 0:
            reason = "no spread in the differences: the t tests have no scale"
        else:
            p_lower = float(scipy.stats.t.sf((difference - margin_low) / error, df))
            p_upper = float(scipy.stats.t.cdf((difference - margin_high) / error, df))
    p_value = float(np.maximum(p_lower, p_upper))
    return Equivalence(
        equivalent=bool(p_value <= alpha),
        p_value=p_value,
        p_lower=p_lower,
        p_upper=p_upper,
        difference=difference,
        low=low,
        high=high,
        margin_low=margin_low,
        margin_high=margin_high,
        n_a=first.size,
        n_b=second.size,
        n_missing=n_missing,
        paired=paired,
        alpha=alpha,
        reason=reason,
    )
