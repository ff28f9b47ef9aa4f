"""Integrators, against values worked out by hand and against scipy and numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import integrate as scipy_integrate

from diagnose.continual.by_hand import EPOCHS, A, P
from waterjar.diagnose.continual import INTEGRATORS, above_chance, integrate
from waterjar.errors import WaterjarError

BY_HAND = {
    "final": [[0.8, 0.2, 0.0], [0.4, 0.6, 0.4], [0.0, 0.8, 1.0]],
    # trapezoids: task 0 over (0, 1, 2), task 1 over (0, 1, 3), task 2 over (0, 2)
    "auc": [
        [(0.2 + 0.6) / 2, (0.0 + 0.1) / 2, (-0.1 - 0.1) / 2],
        [(0.5 + 2 * 0.3) / 3, (0.3 + 2 * 0.5) / 3, (0.0 + 2 * 0.2) / 3],
        [0.2, 0.7, 0.7],
    ],
    "mean": [[1.2 / 3, 0.2 / 3, -0.2 / 3], [1.4 / 3, 1.2 / 3, 0.4 / 3], [0.2, 0.7, 0.7]],
    "min": [[0.0, 0.0, -0.2], [0.2, 0.2, 0.0], [0.0, 0.6, 0.4]],
    "max": [[0.8, 0.2, 0.0], [0.8, 0.6, 0.4], [0.4, 0.8, 1.0]],
    "median": [[0.4, 0.0, 0.0], [0.4, 0.4, 0.0], [0.2, 0.7, 0.7]],
}


@pytest.mark.parametrize("how", INTEGRATORS)
def test_by_hand(how):
    np.testing.assert_allclose(integrate(P, EPOCHS[:, None, :], how), BY_HAND[how], atol=1e-15)


@pytest.mark.parametrize("how", INTEGRATORS)
def test_one_epoch_is_its_own_integral(how):
    assert integrate([0.3], [7.0], how) == 0.3
    assert integrate([np.nan, 0.3, np.nan], [0.0, 1.0, 2.0], how) == 0.3


@pytest.mark.parametrize("how", INTEGRATORS)
def test_no_evaluation_is_nan(how):
    np.testing.assert_array_equal(integrate([[np.nan, np.nan], [0.5, 0.5]], None, how), [np.nan, 0.5])


lengths = st.integers(2, 12)


@given(st.data())
def test_auc_is_scipys_trapezoid_over_what_is_there(data):
    n = data.draw(lengths)
    curves = data.draw(hnp.arrays(np.float64, (3, n), elements=st.floats(-1, 1)))
    epochs = np.cumsum(data.draw(hnp.arrays(np.float64, n, elements=st.floats(0.1, 5))))
    holes = data.draw(hnp.arrays(np.bool_, (3, n)))
    holes[:, :2] = False
    before = curves.copy()
    whole = scipy_integrate.trapezoid(curves, epochs, axis=-1) / (epochs[-1] - epochs[0])
    np.testing.assert_allclose(integrate(curves, epochs, "auc"), whole, atol=1e-12)
    np.testing.assert_array_equal(curves, before)
    for hole, curve, found in zip(
        holes, curves, integrate(np.where(holes, np.nan, curves), epochs, "auc"), strict=True
    ):
        x, y = epochs[~hole], curve[~hole]
        np.testing.assert_allclose(found, scipy_integrate.trapezoid(y, x) / (x[-1] - x[0]), atol=1e-12)


@given(st.data(), st.sampled_from(INTEGRATORS))
def test_padding_changes_nothing(data, how):
    n = data.draw(lengths)
    curves = data.draw(hnp.arrays(np.float64, (2, n), elements=st.floats(0, 1)))
    epochs = np.arange(n, dtype=float)
    longer = np.pad(curves, ((0, 0), (0, 3)), constant_values=np.nan)
    padded = integrate(longer, np.pad(epochs, (0, 3), constant_values=np.nan), how)
    np.testing.assert_allclose(padded, integrate(curves, epochs, how), atol=1e-12)


@given(hnp.arrays(np.float64, (2, 5), elements=st.floats(0, 1)), st.sampled_from(INTEGRATORS))
def test_integral_lies_between_lowest_and_highest(curves, how):
    found = integrate(curves, None, how)
    assert (found >= curves.min(-1) - 1e-12).all() and (found <= curves.max(-1) + 1e-12).all()


def test_refusals():
    with pytest.raises(WaterjarError, match="did you mean 'median'"):
        integrate([0.1], None, "medain")
    with pytest.raises(WaterjarError, match="at least one epoch"):
        integrate(np.empty((2, 0)))
    with pytest.raises(WaterjarError, match="epochs must rise"):
        integrate([0.1, 0.2], [1.0, 1.0], "auc")
    with pytest.raises(WaterjarError, match="only at the end"):
        integrate([0.1, np.nan, 0.2], [1.0, np.nan, 2.0], "auc")
    with pytest.raises(WaterjarError, match="do not fit"):
        integrate([0.1, 0.2], [1.0, 2.0, 3.0], "auc")
    with pytest.raises(WaterjarError, match="NaN epochs are for padding"):
        integrate([0.1, 0.2], [1.0, np.nan], "auc")


def test_above_chance():
    np.testing.assert_allclose(above_chance(A, 0.5), P)
    np.testing.assert_allclose(above_chance([1 / 60, 1.0, 0.0], 1 / 60), [0, 1, -1 / 59], atol=1e-15)
    np.testing.assert_allclose(above_chance([0.2, 0.6], [0.5, 0.2], floor_at_chance=True), [0, 0.5])
    for wrong in (1.0, -0.1, np.nan):
        with pytest.raises(WaterjarError, match="0 <= chance < 1"):
            above_chance(0.5, wrong)
