"""McNemar's test: against statsmodels, scipy and a published example."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from waterjar import WaterjarError
from waterjar.stats import mcnemar_p


@pytest.mark.oracle
@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 50))
def test_against_statsmodels(one: int, other: int, both: int) -> None:
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    table = np.array([[both, one], [other, both]])
    assert mcnemar_p(one, other, "exact") == pytest.approx(tables.mcnemar(table, exact=True).pvalue, abs=1e-12)
    if abs(one - other) > 0:  # statsmodels corrects a difference of 0 to 1
        theirs = tables.mcnemar(table, exact=False, correction=True).pvalue
        assert mcnemar_p(one, other, "chi2") == pytest.approx(theirs, abs=1e-12)


def test_mid_p_of_a_published_example() -> None:
    """Fagerland, Lydersen & Laake 2013, table 1: 1 and 7 discordant pairs; exact 0.0703, mid-p 0.0391."""
    assert mcnemar_p(1, 7, "exact") == pytest.approx(0.0703, abs=5e-5)
    assert mcnemar_p(1, 7) == pytest.approx(0.0391, abs=5e-5)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mid_p_is_the_exact_one_less_half_of_what_was_seen_on_either_side(one: int, other: int) -> None:
    n = one + other
    mid, exact = mcnemar_p(one, other), mcnemar_p(one, other, "exact")
    assert mid == mcnemar_p(other, one)
    assert 0.0 < mid <= 1.0 + 1e-12
    if one == other:
        assert mid == pytest.approx(1.0)
    else:
        assert exact - mid == pytest.approx(scipy.stats.binom.pmf(one, n, 0.5), abs=1e-12)


def test_faults() -> None:
    with pytest.raises(WaterjarError, match="mid_p"):
        mcnemar_p(1, 2, "midp")
    with pytest.raises(WaterjarError, match="expected two counts"):
        mcnemar_p(-1, 2)
