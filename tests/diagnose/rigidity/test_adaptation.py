from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from waterjar import WaterjarError
from waterjar.diagnose.rigidity import adaptation_delay

CURVES = st.lists(st.floats(0, 1), min_size=1, max_size=20)


def test_by_hand() -> None:
    # trailing means of three: 0.1, 0.3, 0.4667, 0.7, 0.8333 -> 0.6 at epoch 4
    learner = [0.1, 0.5, 0.8, 0.8, 0.9]
    # 0.6, 0.65, ... -> 0.6 at epoch 1
    baseline = [0.6, 0.7, 0.8, 0.8, 0.8]
    assert float(adaptation_delay(learner, baseline)) == 3.0
    assert float(adaptation_delay(learner, baseline, window=1)) == 2.0
    assert float(adaptation_delay(baseline, learner)) == -3.0


def test_thresholds_by_hand() -> None:
    curve = [0.2, 0.4, 0.6, 0.8]  # trailing means: 0.2, 0.3, 0.4, 0.6
    delays = {tau: float(adaptation_delay(curve, threshold=tau)) for tau in (0.2, 0.3, 0.4, 0.6)}
    assert delays == {0.2: 1.0, 0.3: 2.0, 0.4: 3.0, 0.6: 4.0}


def test_epochs_of_either_side() -> None:
    assert float(adaptation_delay([0, 0.9], [0.9, 0.9], epochs=[0, 7.5], window=1)) == 7.5
    delay = adaptation_delay([0, 0.9], [0, 0, 0.9], epochs=[0, 7.5], baseline_epochs=[0, 1, 2], window=1)
    assert float(delay) == 5.5


def test_without_a_baseline_it_is_the_epoch_and_says_so() -> None:
    result = adaptation_delay([0.1, 0.9], window=1)
    assert float(result) == 2.0
    assert "no baseline" in result.note


@pytest.mark.parametrize(
    ("learner", "baseline", "named", "spared"),
    [
        ([0.9, 0.9], [0.1, 0.2], "the baseline", "the curve"),
        ([0.1, 0.2], [0.9, 0.9], "the curve", "the baseline"),
    ],
)
def test_censoring_names_the_side(learner: list[float], baseline: list[float], named: str, spared: str) -> None:
    result = adaptation_delay(learner, baseline)
    assert math.isnan(float(result)) and result.censored and result.reason == "never_reached" and result.n == 2
    assert named in result.note and spared not in result.note


def test_both_sides_censored() -> None:
    note = adaptation_delay([0.1], [0.2]).note
    assert note == "the curve never reached 0.6 in 1 evaluations; the baseline never reached 0.6 in 1 evaluations"
    assert adaptation_delay([0.1]).censored


def test_nan_is_not_censoring() -> None:
    result = adaptation_delay([0.1, math.nan, 0.2], [0.9, 0.9, 0.9])
    assert math.isnan(float(result)) and result.reason == "not_a_number" and not result.censored
    assert "the curve" in result.note
    assert adaptation_delay([0.1, 0.1], [math.nan, 0.1]).reason == "not_a_number"
    assert float(adaptation_delay([0.9, math.nan], [0.9, 0.9])) == 0.0


@given(CURVES, st.floats(0.01, 1), st.integers(1, 5))
def test_of_a_curve_with_itself_it_is_0(curve: list[float], tau: float, window: int) -> None:
    result = adaptation_delay(curve, curve, threshold=tau, window=window)
    assert float(result) == 0.0 or result.censored


@given(CURVES, CURVES, st.integers(1, 30), st.integers(1, 4))
def test_shifting_the_epochs_shifts_it(curve: list[float], baseline: list[float], k: int, window: int) -> None:
    epochs, theirs = np.arange(len(curve)), np.arange(len(baseline))
    plain = adaptation_delay(curve, baseline, epochs=epochs, baseline_epochs=theirs, window=window)
    shifted = adaptation_delay(curve, baseline, epochs=epochs + k, baseline_epochs=theirs, window=window)
    assert shifted.reason == plain.reason
    assume(not plain.censored)
    assert float(shifted) == float(plain) + k


@given(CURVES, st.integers(1, 30))
def test_a_curve_that_waits_k_evaluations_is_k_later(curve: list[float], k: int) -> None:
    plain = adaptation_delay(curve, curve, window=1)
    assume(not plain.censored)
    assert float(adaptation_delay([0.0] * k + curve, curve, window=1)) == k


@given(CURVES, CURVES)
def test_exchanging_the_sides_changes_the_sign(one: list[float], other: list[float]) -> None:
    there, back = adaptation_delay(one, other), adaptation_delay(other, one)
    assert there.censored == back.censored
    assert there.censored or float(there) == -float(back)


def test_nothing_is_mutated() -> None:
    curve, baseline, epochs = np.array([0.1, 0.9]), np.array([0.2, 0.8]), np.array([1.0, 2.0])
    for array in (curve, baseline, epochs):
        array.setflags(write=False)
    adaptation_delay(curve, baseline, epochs=epochs, baseline_epochs=epochs)
    assert curve.tolist() == [0.1, 0.9]


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (([],), {}, r"shape \(0,\)"),
        (([[0.1, 0.2]],), {}, "once per seed"),
        ((["a"],), {}, "numbers are needed"),
        (([0.1, 60.0],), {}, r"position \(1\).*in \[0, 1\].*percentages"),
        (([0.1, -0.1],), {}, r"in \[0, 1\]"),
        (([0.1, math.inf],), {}, r"in \[0, 1\]"),
        (([0.1, 0.2], [2.0]), {}, "baseline has 2"),
        (([0.1, 0.2],), {"epochs": [1]}, "one epoch each"),
        (([0.1, 0.2],), {"epochs": ["x", "y"]}, "numbers are needed"),
        (([0.1, 0.2],), {"epochs": [1, 1]}, "1 twice"),
        (([0.1, 0.2],), {"epochs": [2, 1]}, "goes back from 2 to 1"),
        (([0.1, 0.2],), {"epochs": [1, math.nan]}, "finite"),
        (([0.1, 0.2], [0.1]), {"epochs": [1, 2]}, "give baseline_epochs"),
        (([0.1, 0.2], [0.1, 0.2]), {"baseline_epochs": [3, 3]}, "baseline_epochs has 3 twice"),
        (([0.1],), {"baseline_epochs": [1]}, "without a baseline"),
        (([0.1],), {"threshold": 60}, "threshold=60"),
        (([0.1],), {"window": 0}, "window=0"),
    ],
)
def test_wrong_input_is_an_error(arguments: tuple[object, ...], settings: dict[str, object], message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        adaptation_delay(*arguments, **settings)  # type: ignore[arg-type]
