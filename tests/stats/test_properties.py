"""What holds for any values: order, missing seeds, scale, shift, and inputs left alone."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waterjar.stats import (
    compare,
    hedges_g,
    interquartile_mean,
    mean_interval,
    probability_of_improvement,
    restricted_mean_difference,
    summarise,
    tost,
)

# Multiples of 1/8: sums and powers of two are exact, so that equalities need no tolerance for the data themselves.
NUMBERS = st.integers(-400, 400).map(lambda k: k / 8)
GROUPS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=6)
WITH_GAPS = st.lists(st.tuples(st.one_of(NUMBERS, st.just(math.nan)), NUMBERS), min_size=1, max_size=6)
TESTS = st.sampled_from(["welch", "paired_t", "mann_whitney", "wilcoxon", "permutation"])


def columns(pairs: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(pairs, dtype=float)
    return table[:, 0], table[:, 1]


@given(WITH_GAPS, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=25)
def test_permuting_seeds_changes_nothing(pairs: list[tuple[float, float]], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    (a, b), (c, d) = columns(pairs), columns(shuffled)
    assert repr(summarise(a)) == repr(summarise(c))
    for test in ("welch", "paired_t", "mann_whitney", "wilcoxon", "permutation"):
        assert repr(compare(a, b, test=test)) == repr(compare(c, d, test=test))
    assert repr(tost(a, b, margin=1.0, paired=True)) == repr(tost(c, d, margin=1.0, paired=True))


@given(st.lists(NUMBERS, min_size=10, max_size=15), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=15)
def test_permuting_seeds_leaves_the_bootstrap_alone(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first = mean_interval(values, method="bca", n_resamples=300)
    assert first == mean_interval(shuffled, method="bca", n_resamples=300)


@given(GROUPS, TESTS, st.integers(0, 9))
@settings(deadline=None, max_examples=60)
def test_nan_in_one_seed_is_that_seed_left_out(pairs: list[tuple[float, float]], test: str, place: int) -> None:
    a, b = columns(pairs)
    place %= a.size
    holed = a.copy()
    holed[place] = np.nan
    keep = np.arange(a.size) != place
    partner = b[keep] if test in ("paired_t", "wilcoxon") else b
    with_gap = compare(holed, b, test=test).as_row()
    without = compare(a[keep], partner, test=test).as_row()
    assert with_gap.pop("n_missing") == 1 and without.pop("n_missing") == 0
    assert repr(with_gap) == repr(without)


@given(GROUPS, TESTS, st.sampled_from([0.25, 2.0, 1024.0]), st.integers(-50, 50))
@settings(deadline=None, max_examples=80)
def test_scale_and_shift(pairs: list[tuple[float, float]], test: str, scale: float, shift: int) -> None:
    a, b = columns(pairs)
    first, second = compare(a, b, test=test), compare(scale * (a + shift), scale * (b + shift), test=test)
    for name in ("p_value", "effect_size", "effect_low", "effect_high", "improvement"):
        assert getattr(second, name) == pytest.approx(getattr(first, name), rel=1e-6, abs=1e-9, nan_ok=True), name
    for name in ("difference", "low", "high"):
        expected = scale * getattr(first, name)
        assert getattr(second, name) == pytest.approx(expected, rel=1e-9, abs=1e-7 * scale, nan_ok=True), name


@given(st.lists(NUMBERS, min_size=2, max_size=12), st.sampled_from([0.5, 8.0]), st.integers(-50, 50))
def test_intervals_scale_and_shift(values: list[float], scale: float, shift: int) -> None:
    x = np.array(values)
    first, second = mean_interval(x), mean_interval(scale * (x + shift))
    for name in ("estimate", "low", "high"):
        assert getattr(second, name) == pytest.approx(scale * (getattr(first, name) + shift), abs=1e-9 * scale)


@given(GROUPS)
@settings(deadline=None, max_examples=50)
def test_swapping_the_groups_turns_the_signs(pairs: list[tuple[float, float]]) -> None:
    a, b = columns(pairs)
    for paired in (True, False):
        one, other = compare(a, b, paired=paired), compare(b, a, paired=paired)
        assert other.difference == pytest.approx(-one.difference)
        assert other.low == pytest.approx(-one.high, nan_ok=True)
        assert other.p_value == pytest.approx(one.p_value, nan_ok=True)
        assert other.effect_size == pytest.approx(-one.effect_size, nan_ok=True)
        assert other.improvement == pytest.approx(1 - one.improvement)
        assert 0 <= one.improvement_low <= one.improvement <= one.improvement_high <= 1


def test_nothing_is_mutated() -> None:
    a, b = np.array([3.0, 1.0, np.nan, 2.0]), np.array([2.0, 5.0, 1.0, 0.0])
    flags = np.array([False, False, False, True])
    for array in (a, b, flags):
        array.flags.writeable = False  # an assignment would raise
    mean_interval(a)
    summarise(a)
    hedges_g(a, b, variant="g_av")
    probability_of_improvement(a, b, paired=True)
    for test in ("welch", "paired_t", "mann_whitney", "wilcoxon", "permutation"):
        compare(a, b, test=test)
    tost(a, b, margin=1.0, paired=True)
    restricted_mean_difference(a, ~flags & False, b, flags, limit=0.0)
    interquartile_mean(np.stack([a, b], axis=1))
    assert a[0] == 3.0 and b[0] == 2.0


@pytest.mark.parametrize("command", ["import waterjar", "import waterjar.cli.main"])
def test_the_package_and_its_command_start_without_scipy_stats(command: str) -> None:
    code = f"{command}\nimport sys\nprint('scipy.stats' in sys.modules, 'waterjar.stats' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]


def test_statistics_do_not_bring_torch() -> None:
    code = "import waterjar.stats, sys\nprint('torch' in sys.modules, 'jax' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]
