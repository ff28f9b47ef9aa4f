"""Intervals of shares against scipy, closed forms, and coverage that is counted in full."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from waterjar import WaterjarError
from waterjar.stats import mean_share_interval, paired_share_difference, share_interval


class TestShare:
    @pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
    @pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 5), (5, 5), (37, 100), (999, 1000)])
    def test_is_scipys(self, k, n, confidence):
        expected = stats.binomtest(k, n).proportion_ci(confidence, method="wilson")
        share, low, high = share_interval(k, n, confidence=confidence)
        np.testing.assert_allclose([share, low, high], [k / n, expected.low, expected.high], atol=1e-12)

    def test_element_by_element(self):
        share, low, high = share_interval([[0, 3], [5, 2]], 5)
        assert share.shape == low.shape == high.shape == (2, 2)
        assert low[0, 0] == 0.0 and high[1, 0] == 1.0

    def test_no_sample_is_no_number(self):
        assert np.isnan(share_interval(0, 0)).all()

    def test_what_is_no_share(self):
        with pytest.raises(WaterjarError, match="from none to all"):
            share_interval(3, 2)


class TestMean:
    @pytest.mark.parametrize(("k", "n"), [(0, 8), (3, 8), (8, 8), (61, 100)])
    def test_of_zeros_and_ones_is_agresti_and_coulls(self, k, n):
        z = stats.norm.ppf(0.975)
        middle = (k + z**2 / 2) / (n + z**2)
        half = z * np.sqrt(middle * (1 - middle) / (n + z**2))
        found = mean_share_interval([1.0] * k + [0.0] * (n - k))
        np.testing.assert_allclose(found, [k / n, max(middle - half, 0), min(middle + half, 1)], atol=1e-12)

    def test_covers(self):
        """The mean over four conditions of correlated answers, 4,000 times."""
        rng = np.random.default_rng(0)
        easy = rng.beta(2, 1, (4000, 60))
        values = (rng.random((4000, 60, 4)) < easy[..., None]).mean(-1)
        _, low, high = mean_share_interval(values)
        assert 0.94 < ((low <= 2 / 3) & (high >= 2 / 3)).mean() < 0.975

    def test_what_is_outside(self):
        for wrong in ([0.5, 1.5], 0.5, [np.nan]):
            with pytest.raises(WaterjarError, match="expected an array of numbers in"):
                mean_share_interval(wrong)

    def test_no_sample_is_no_number(self):
        assert np.isnan(mean_share_interval(np.empty((2, 0)))).all()


class TestDifference:
    @pytest.mark.parametrize(("b", "c", "n"), [(9, 2, 40), (0, 0, 25), (12, 0, 12), (1, 30, 100)])
    def test_is_bonett_and_prices(self, b, c, n):
        """Their equation: one added to each of the discordant counts, two to all."""
        z = stats.norm.ppf(0.975)
        p, q = (b + 1) / (n + 2), (c + 1) / (n + 2)
        half = z * np.sqrt((p + q - (p - q) ** 2) / (n + 2))
        found = paired_share_difference([1] * b + [-1] * c + [0] * (n - b - c))
        np.testing.assert_allclose(found, [(b - c) / n, max(p - q - half, -1), min(p - q + half, 1)], atol=1e-12)

    @pytest.mark.parametrize(("p", "q"), [(0.1, 0.1), (0.25, 0.05), (0.02, 0.0), (0.4, 0.1)])
    @pytest.mark.parametrize("n", [20, 60])
    def test_covers_at_every_count(self, p, q, n):
        """All outcomes, weighed by their probabilities: no simulation."""
        covered = 0.0
        for b, c in itertools.product(range(n + 1), repeat=2):
            weight = stats.multinomial.pmf([b, c, n - b - c], n, [p, q, 1 - p - q]) if b + c <= n else 0.0
            if weight > 1e-9:
                _, low, high = paired_share_difference([1] * b + [-1] * c + [0] * (n - b - c))
                covered += weight * (low <= p - q <= high)
        assert covered > 0.935

    @given(st.lists(st.sampled_from([-1, -0.5, 0, 0.5, 1]), min_size=1, max_size=30))
    def test_turned_round(self, values):
        one, low, high = paired_share_difference(values)
        other, under, over = paired_share_difference([-value for value in values])
        np.testing.assert_allclose([one, low, high], [-other, -over, -under], atol=1e-12)
        assert low <= one <= high

    def test_equal_answers_do_not_show_that_there_is_no_difference(self):
        _, low, high = paired_share_difference(np.zeros(50))
        assert low < -0.03 and high > 0.03
