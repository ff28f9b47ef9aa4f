from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterjar import WaterjarError
from waterjar.diagnose import Result
from waterjar.diagnose.rigidity import (
    performance_deficit,
    rigidity_composite,
    shortcut_reliance,
    worst_group_accuracy,
)

ACCURACY = st.floats(0, 1)


def test_the_published_table() -> None:
    """Gu & Shi: A patch and A mask of scratch and naive; their PD of -0.147 is not the difference, which is -0.143."""
    assert float(performance_deficit(0.729, 0.586)) == pytest.approx(-0.143)
    scratch = shortcut_reliance(0.586, 0.003)
    assert float(scratch) == pytest.approx(0.583)
    assert float(shortcut_reliance(0.729, 0.007, scratch)) == pytest.approx(0.139)


@given(ACCURACY, ACCURACY, ACCURACY, ACCURACY)
def test_ranges_and_signs(normal: float, masked: float, their_normal: float, their_masked: float) -> None:
    sfr = float(shortcut_reliance(normal, masked))
    assert -1 <= sfr <= 1
    assert -2 <= float(shortcut_reliance(normal, masked, shortcut_reliance(their_normal, their_masked))) <= 2
    assert float(shortcut_reliance(masked, normal)) == -sfr
    assert float(performance_deficit(normal, masked)) == -sfr
    assert float(performance_deficit(normal, normal)) == 0.0


def test_missing_keeps_its_reason() -> None:
    gone = Result.missing("empty_set")
    assert performance_deficit(gone, 0.5).reason == "empty_set"
    assert performance_deficit(0.5, math.nan).reason == "not_a_number"
    assert shortcut_reliance(0.5, 0.1, gone).reason == "empty_set"
    assert shortcut_reliance(math.nan, 0.1).reason == "not_a_number"


@pytest.mark.parametrize("wrong", [1.5, -0.1, math.inf, 73, "a", [0.1, 0.2], None])
def test_what_is_no_accuracy_is_refused(wrong: object) -> None:
    for call in (performance_deficit, shortcut_reliance):
        with pytest.raises(WaterjarError, match="expected"):
            call(0.5, wrong)  # type: ignore[arg-type]
        with pytest.raises(WaterjarError, match="expected"):
            call(wrong, 0.5)  # type: ignore[arg-type]


def test_a_baseline_reliance_may_be_negative() -> None:
    assert float(shortcut_reliance(0.5, 0.4, -0.2)) == pytest.approx(0.3)
    with pytest.raises(WaterjarError, match="baseline=-1.5"):
        shortcut_reliance(0.5, 0.4, -1.5)


def test_the_worst_group() -> None:
    result = worst_group_accuracy({"a": 0.9, "b": 0.2, "c": 0.4})
    assert (float(result), result.note, result.n) == (0.2, "b", 3)
    assert worst_group_accuracy({"a": 0.9, "b": math.nan}).reason == "not_a_number"


def test_the_composite_is_signed() -> None:
    # 0.4 * -5/10 + 0.4 * -0.1 + 0.2 * 0.3 = -0.2 - 0.04 + 0.06
    assert float(rigidity_composite(-5, -0.1, 0.3, budget=10)) == pytest.approx(-0.18)
    assert float(rigidity_composite(5, 0.1, 0.3, budget=10, weights=(1, 1, 1))) == pytest.approx(0.9)
    censored = rigidity_composite(Result.missing("never_reached", censored=True), 0.1, 0.1, budget=10)
    assert censored.reason == "never_reached" and censored.censored
    with pytest.raises(WaterjarError, match="budget=0"):
        rigidity_composite(1, 0.1, 0.1, budget=0)
