"""Power by published tables, by simulation, and against statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from waterjar.errors import WaterjarError
from waterjar.stats import detectable_difference, power_of, seeds_needed


@pytest.mark.parametrize(("d", "n"), [(0.2, 394), (0.5, 64), (0.8, 26)])
def test_cohens_table_two_groups(d: float, n: int) -> None:
    # Small, medium and large effects at power 0.80, alpha 0.05 two-sided: Cohen 1992, "A power primer", table 2,
    # gives 393, 64, 26; the first is 394 when computed exactly (G*Power).
    assert seeds_needed(d, 1.0, paired=False).n == n


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("difference", "spread", "power"), [(0.02, 0.01, 0.8), (-0.05, 0.04, 0.9), (3.0, 9.0, 0.8)])
def test_the_fewest_seeds_are_enough_and_one_less_is_not(
    difference: float, spread: float, power: float, paired: bool
) -> None:
    answer = seeds_needed(difference, spread, paired=paired, power=power)
    n = int(answer.n)
    assert answer.reached_power == power_of(n, difference, spread, paired=paired) >= power
    assert n == 2 or power_of(n - 1, difference, spread, paired=paired) < power
    assert float(answer) == answer.n


def test_power_is_how_often_the_test_succeeds() -> None:
    generator = np.random.default_rng(0)
    d = generator.normal(1.2, 1.0, (20_000, 5))
    seen = np.mean(stats.ttest_1samp(d, 0.0, axis=1).pvalue <= 0.05)
    assert power_of(5, 1.2, 1.0, paired=True) == pytest.approx(seen, abs=0.012)
    one_sided = np.mean(stats.ttest_1samp(d, 0.0, axis=1, alternative="greater").pvalue <= 0.05)
    assert power_of(5, 1.2, 1.0, paired=True, alternative="one-sided") == pytest.approx(one_sided, abs=0.012)


@pytest.mark.parametrize("paired", [True, False])
def test_the_detectable_difference_has_that_power(paired: bool) -> None:
    difference = detectable_difference(4, 0.03, paired=paired, power=0.9)
    assert power_of(4, difference, 0.03, paired=paired) == pytest.approx(0.9, abs=1e-9)
    assert detectable_difference(4, 0.0, paired=paired) == 0.0
    assert math.isnan(detectable_difference(4, float("nan"), paired=paired))


def test_two_seeds_need_a_huge_difference() -> None:
    assert detectable_difference(2, 1.0, paired=True) > 8


def test_no_number_of_seeds() -> None:
    zero = seeds_needed(0.0, 1.0, paired=True)
    assert math.isnan(zero.n) and "tost" in zero.reason
    tiny = seeds_needed(0.001, 1.0, paired=True)
    assert math.isnan(tiny.n) and tiny.reason == "more than 10000 seeds" and tiny.reached_power < 0.8
    unknown = seeds_needed(float("nan"), 1.0, paired=True)
    assert math.isnan(unknown.n) and "not a finite number" in unknown.reason
    sure = seeds_needed(0.1, 0.0, paired=True)
    assert sure.n == 2 and "no spread" in sure.reason
    assert sure.as_row()["n"] == 2


def test_the_cap_is_reachable() -> None:
    n = int(seeds_needed(0.5, 1.0, paired=False).n)
    assert seeds_needed(0.5, 1.0, paired=False, cap=n).n == n
    assert math.isnan(seeds_needed(0.5, 1.0, paired=False, cap=n - 1).n)


def test_power_without_spread_or_value() -> None:
    assert power_of(3, 0.1, 0.0, paired=True) == 1.0
    assert power_of(3, 0.0, 0.0, paired=True) == 0.05
    assert power_of(3, 0.0, 1.0, paired=True) == pytest.approx(0.05)
    assert math.isnan(power_of(3, float("nan"), 1.0, paired=True))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: power_of(1, 1.0, 1.0, paired=True), "two seeds at least"),
        (lambda: detectable_difference(1, 1.0, paired=True), "two seeds at least"),
        (lambda: seeds_needed(1.0, -1.0, paired=True), "not negative"),
        (lambda: seeds_needed(1.0, 1.0, paired=True, power=0.01), "power=0.01 is impossible"),
        (lambda: power_of(3, 1.0, 1.0, paired=True, alternative="greater"), "alternative 'greater' is unknown"),
    ],
)
def test_settings_that_cannot_be(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(WaterjarError, match=words):
        call()


@pytest.mark.oracle
@pytest.mark.parametrize("d", [0.3, 0.9, 2.5])
@pytest.mark.parametrize(("ours", "theirs"), [("two-sided", "two-sided"), ("one-sided", "larger")])
def test_statsmodels_power(d: float, ours: str, theirs: str) -> None:
    power = pytest.importorskip("statsmodels.stats.power")
    for n in (3, 10, 40):
        for paired, solver in ((True, power.TTestPower()), (False, power.TTestIndPower())):
            expected = solver.power(d, n, 0.05, alternative=theirs)
            if d == 2.5 and n == 40 and math.isnan(expected):
                expected = 1.0  # statsmodels hands on scipy's NaN of a vanishing tail
            assert power_of(n, d, 1.0, paired=paired, alternative=ours) == pytest.approx(expected, rel=1e-9)
    if d < 2:
        needed = power.TTestPower().solve_power(d, alpha=0.05, power=0.8, alternative=theirs)
        assert seeds_needed(d, 1.0, paired=True, alternative=ours).n == math.ceil(needed)
        needed = power.TTestIndPower().solve_power(d, alpha=0.05, power=0.8, alternative=theirs)
        assert seeds_needed(d, 1.0, paired=False, alternative=ours).n == math.ceil(needed)
    smallest = power.TTestPower().solve_power(nobs=8, alpha=0.05, power=0.8, alternative=theirs)
    assert detectable_difference(8, 1.0, paired=True, alternative=ours) == pytest.approx(smallest, rel=1e-6)
