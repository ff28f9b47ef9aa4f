from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from waterjar import WaterjarError
from waterjar.diagnose.rigidity.curves import NEVER_REACHED, check_threshold, first_epoch_at, trailing_mean
from waterjar.run.schema import REASONS

CURVES = arrays(np.float64, st.integers(1, 15), elements=st.floats(0, 1, width=32))


def test_the_trailing_mean_is_never_centred() -> None:
    assert trailing_mean([0.3, 0.6, 0.9, 0.0], 3) == pytest.approx([0.3, 0.45, 0.6, 0.5])


@given(CURVES, st.integers(1, 20))
def test_the_trailing_mean_is_that_of_pandas(curve: np.ndarray, window: int) -> None:
    expected = pd.Series(curve).rolling(window, min_periods=1).mean().to_numpy()
    np.testing.assert_allclose(trailing_mean(curve, window), expected, atol=1e-12)


def test_nan_stays_within_its_window() -> None:
    smoothed = trailing_mean([0.1, np.nan, 0.3, 0.4, 0.5], 2)
    assert np.isnan(smoothed).tolist() == [False, True, True, False, False]


def test_rounding_costs_no_epoch() -> None:
    assert first_epoch_at(trailing_mean([0.1] * 5, 3), 0.1).epoch == 1
    assert first_epoch_at(trailing_mean([0.5, 0.6, 0.7], 3), 0.6).epoch == 3


def test_first_epoch_of_a_batch_and_a_grid() -> None:
    curves = np.array([[0.1, 0.5, 0.9], [0.2, 0.3, 0.4]])
    found = first_epoch_at(curves[:, None, :], [0.3, 0.5, 0.95], epochs=[0, 2, 5])
    np.testing.assert_array_equal(found.epoch, [[2, 2, np.nan], [2, np.nan, np.nan]])
    assert (found.reason == NEVER_REACHED).tolist() == [[False, False, True], [False, True, True]]


@given(CURVES, st.floats(0.01, 1))
def test_first_epoch_is_that_of_a_plain_loop(curve: np.ndarray, tau: float) -> None:
    expected = next((i + 1.0 for i, value in enumerate(curve) if value >= tau - 1e-12), np.nan)
    np.testing.assert_array_equal(first_epoch_at(curve, tau).epoch, expected)


def test_a_hole_before_the_crossing_hides_it_and_one_behind_it_does_not() -> None:
    before = first_epoch_at([0.1, np.nan, 0.9], 0.6)
    assert np.isnan(before.epoch) and REASONS[int(before.reason)] == "not_a_number"
    assert first_epoch_at([0.1, 0.9, np.nan], 0.6).epoch == 2
    why = first_epoch_at([0.1, np.nan, 0.3], 0.6, reasons=[0, REASONS.index("run_ended"), 0])
    assert REASONS[int(why.reason)] == "run_ended"


@pytest.mark.parametrize("window", [0, -1, 1.5, True])
def test_a_window_is_a_whole_number(window: object) -> None:
    with pytest.raises(WaterjarError, match="window="):
        trailing_mean([0.1], window)  # type: ignore[arg-type]


def test_no_curve_is_refused() -> None:
    with pytest.raises(WaterjarError, match="single number"):
        trailing_mean(0.5)
    with pytest.raises(WaterjarError, match="at least one evaluation"):
        first_epoch_at([], 0.5)


@pytest.mark.parametrize("threshold", [0, 1.01, -0.5, float("nan"), "high", None])
def test_a_threshold_is_an_accuracy(threshold: object) -> None:
    with pytest.raises(WaterjarError, match=r"in \(0, 1\]"):
        check_threshold(threshold)
