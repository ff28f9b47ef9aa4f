"""Certified digits: NIST Statistical Reference Datasets, univariate (https://www.itl.nist.gov/div898/strd/univ).

The log relative error is the number of digits that agree with the certified value: -log10(|found - certified| /
|certified|), 15 at most. Ours is not below that of scipy and statsmodels. The data sets are those that NIST gives by a
rule (NumAcc1-4) or that are short enough to be typed in (Mavro, Michelso): exact arithmetic on them gives the certified
digits, which a mistyped one would not. There are no functions here for the analysis of variance or regression.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from waterjar.stats import summarise

MAVRO = [
    2.00180, 2.00170, 2.00180, 2.00190, 2.00180, 2.00170, 2.00150, 2.00140, 2.00150, 2.00150, 2.00170, 2.00180, 2.00180,
    2.00190, 2.00190, 2.00210, 2.00200, 2.00160, 2.00140, 2.00130, 2.00130, 2.00150, 2.00150, 2.00160, 2.00150, 2.00140,
    2.00130, 2.00140, 2.00150, 2.00140, 2.00150, 2.00160, 2.00150, 2.00160, 2.00190, 2.00200, 2.00200, 2.00210, 2.00220,
    2.00230, 2.00240, 2.00250, 2.00270, 2.00260, 2.00260, 2.00260, 2.00270, 2.00260, 2.00250, 2.00240,
]  # fmt: skip
MICHELSO = [
    299.85, 299.74, 299.90, 300.07, 299.93, 299.85, 299.95, 299.98, 299.98, 299.88, 300.00, 299.98, 299.93, 299.65,
    299.76, 299.81, 300.00, 300.00, 299.96, 299.96, 299.96, 299.94, 299.96, 299.94, 299.88, 299.80, 299.85, 299.88,
    299.90, 299.84, 299.83, 299.79, 299.81, 299.88, 299.88, 299.83, 299.80, 299.79, 299.76, 299.80, 299.88, 299.88,
    299.88, 299.86, 299.72, 299.72, 299.62, 299.86, 299.97, 299.95, 299.88, 299.91, 299.85, 299.87, 299.84, 299.84,
    299.85, 299.84, 299.84, 299.84, 299.89, 299.81, 299.81, 299.82, 299.80, 299.77, 299.76, 299.74, 299.75, 299.76,
    299.91, 299.92, 299.89, 299.86, 299.88, 299.72, 299.84, 299.85, 299.85, 299.78, 299.89, 299.84, 299.78, 299.81,
    299.76, 299.81, 299.79, 299.81, 299.82, 299.85, 299.87, 299.87, 299.81, 299.74, 299.81, 299.94, 299.95, 299.80,
    299.81, 299.87,
]  # fmt: skip
# name: (values, certified mean, certified standard deviation)
CERTIFIED = {
    "Mavro": (MAVRO, 2.00185600000000, 0.000429123454003053),
    "Michelso": (MICHELSO, 299.852400000000, 0.0790105478190518),
    "NumAcc1": ([10000001.0, 10000003.0, 10000002.0], 10000002.0, 1.0),
    "NumAcc2": ([1.2, *[1.1, 1.3] * 500], 1.2, 0.1),
    "NumAcc3": ([1000000.2, *[1000000.1, 1000000.3] * 500], 1000000.2, 0.1),
    "NumAcc4": ([10000000.2, *[10000000.1, 10000000.3] * 500], 10000000.2, 0.1),
}


def digits(found: float, certified: float) -> float:
    """The log relative error, 15 at most."""
    return 15.0 if found == certified else min(15.0, -math.log10(abs(found - certified) / abs(certified)))


@pytest.mark.parametrize("name", CERTIFIED)
def test_the_data_are_those_that_nist_certified(name: str) -> None:
    """Exact arithmetic on what was typed in gives the certified digits, so that no digit is mistyped."""
    values, mean, std = CERTIFIED[name]
    exact = [Fraction(str(value)) for value in values]
    middle = sum(exact) / len(exact)
    variance = sum((value - middle) ** 2 for value in exact) / (len(exact) - 1)
    assert float(middle) == pytest.approx(mean, rel=1e-14)
    assert math.sqrt(variance) == pytest.approx(std, rel=1e-14)


@pytest.mark.parametrize("name", CERTIFIED)
def test_means_and_deviations_have_as_many_certified_digits_as_scipys(name: str) -> None:
    values, mean, std = CERTIFIED[name]
    found, theirs = summarise(values), stats.describe(values)
    assert digits(found.mean, mean) >= min(14.0, digits(float(theirs.mean), mean))
    # a deviation of 0.1 beside a mean of 1e7 cannot have more: the data themselves are rounded there
    assert digits(found.std, std) >= digits(math.sqrt(float(theirs.variance)), std) - 0.3
    assert digits(found.mean, mean) >= 14.0 and digits(found.std, std) >= (8.0 if name == "NumAcc4" else 9.0)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CERTIFIED)
def test_not_below_statsmodels(name: str) -> None:
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    values, mean, std = CERTIFIED[name]
    theirs, found = weightstats.DescrStatsW(np.array(values), ddof=1), summarise(values)
    assert digits(found.mean, mean) >= min(14.0, digits(float(theirs.mean), mean))
    assert digits(found.std, std) >= digits(float(theirs.std), std) - 0.3
    low, high = theirs.tconfint_mean(0.05)
    assert found.confidence_interval == pytest.approx((low, high), rel=1e-12)
