"""learning_time, forgetting_rate, max_dip and the stability gap: what only whole curves tell."""

import numpy as np
import pytest

from diagnose.continual.by_hand import EPOCHS, NAN, A, P
from waterjar.diagnose.continual import (
    average_anytime_accuracy,
    forgetting_rate,
    learning_time,
    max_dip,
    min_accuracy,
    worst_case_accuracy,
)
from waterjar.errors import WaterjarError


def test_learning_time_by_hand():
    # b: (.8, .4, 0) at 0, 1, 2; (.4, .2, 0) at 0, 1, 3; (.6, 0) at 0, 2
    first = 0.8**2 / (0.4 + 0.08)
    second = (0.3 + 2 * 0.1) ** 2 / (0.1 + 2 * 0.02)
    third = 0.6**2 / (0.36 / 2 * 2)
    np.testing.assert_allclose(learning_time(P, EPOCHS), [first, second, third])
    np.testing.assert_allclose(learning_time(A, EPOCHS), [first, second, third])  # chance cancels
    np.testing.assert_allclose(learning_time(-A, EPOCHS), [first, second, third])  # so does the sign


def test_learning_time_of_an_exponential():
    t = np.linspace(0, 40, 4001)  # b = exp(-t / s): s^2 / (s / 2) = 2 s
    assert learning_time((1 - np.exp(-t / 2))[None, None], t)[0] == pytest.approx(4.0, rel=1e-4)


def test_learning_time_at_the_edges():
    assert learning_time([[[0.4, 0.4, 0.4]]])[0] == 0.0
    assert np.isnan(learning_time([[[0.4]]])[0])
    assert np.isnan(learning_time([[[0.4, NAN]]])[0])
    assert np.isnan(learning_time([[[NAN, NAN]]])[0])


def test_forgetting_rate_by_hand():
    # P of task 0 while task 1 is trained: (.8, .2, .4) at (0, 1, 3); offsets (-4, -1, 5)/3, their squares sum to 14/3
    first = (0.8 * -4 + 0.2 * -1 + 0.4 * 5) / 3 / (14 / 3)
    expected = [[NAN, NAN, NAN], [first, NAN, NAN], [-0.2, 0.1, NAN]]
    np.testing.assert_allclose(forgetting_rate(P, EPOCHS), expected, atol=1e-15)


def test_forgetting_rate_is_numpys_covariance():
    rng = np.random.default_rng(3)
    curves, t = rng.random((4, 2, 2, 6)), np.array([0.0, 1, 2, 4, 8, 9])
    for curve, found in zip(curves[:, 1, 0], forgetting_rate(curves, t)[:, 1, 0], strict=True):
        covariance = np.cov(t, curve)
        assert found == pytest.approx(covariance[0, 1] / covariance[0, 0])
    holed = curves.copy()
    holed[2, 1, 0, [0, 3]] = NAN
    there = [1, 2, 4, 5]
    covariance = np.cov(t[there], curves[2, 1, 0, there])
    found = forgetting_rate(holed, t)[:, 1, 0]
    assert found[2] == pytest.approx(covariance[0, 1] / covariance[0, 0])
    np.testing.assert_allclose(found[[0, 1, 3]], forgetting_rate(curves, t)[[0, 1, 3], 1, 0])


def test_one_epoch_has_no_rate():
    assert np.isnan(forgetting_rate(np.ones((2, 2, 1)))).all()
    assert np.isnan(forgetting_rate([[[1, 1], [1, 1]], [[0.5, NAN], [1, 1]]])).all()


def test_max_dip_by_hand():
    # from .8: (.8, .2, .4), then (.4, 0); from .6: (.6, .8)
    np.testing.assert_allclose(max_dip(P), [[NAN, NAN, NAN], [0.6, NAN, NAN], [0.8, 0.2, NAN]])


def test_average_anytime_accuracy_by_hand():
    # epoch 0 left out: (.7 + .9)/2; ((.6 + .7)/2 + (.7 + .8)/2)/2; (.5 + .9 + 1)/3
    assert average_anytime_accuracy(A, EPOCHS) == pytest.approx((0.8 + 0.7 + 0.8) / 3)
    assert np.isnan(average_anytime_accuracy([[[0.5]]], [0.0]))


def test_stability_gap_by_hand():
    # lowest since learned, epoch 0 left out: task 0 .5 (of .6 .7 .5), task 1 .9
    assert min_accuracy(A, EPOCHS) == pytest.approx((0.5 + 0.9) / 2)
    assert worst_case_accuracy(A, EPOCHS) == pytest.approx(1.0 / 3 + 2 / 3 * 0.7)


def test_the_gap_is_not_seen_at_the_ends():
    dips = np.array([[[0.9, 0.9], [0.1, 0.1]], [[0.2, 0.9], [0.8, 0.9]]])
    assert min_accuracy(dips) == pytest.approx(0.2)
    assert min_accuracy(dips[..., -1:]) == pytest.approx(0.9)


def test_a_task_that_was_never_evaluated_makes_the_minimum_unknown():
    gone = A.copy()
    gone[1, 0] = NAN
    assert np.isnan(min_accuracy(gone, EPOCHS)) and np.isnan(worst_case_accuracy(gone, EPOCHS))
    assert np.isnan(min_accuracy(np.ones((2, 2, 1)), [0.0]))


def test_single_task():
    assert np.isnan(min_accuracy([[[0.5, 0.7]]]))
    assert min_accuracy([[[0.5, 0.7]]]).reason == "undefined" and min_accuracy([[[0.5, NAN]]]).reason == "not_a_number"
    assert float(worst_case_accuracy([[[0.5, 0.7]]])) == 0.7
    assert average_anytime_accuracy([[[0.5, 0.7]]]) == pytest.approx(0.6)


def test_wrong_shapes_are_told():
    with pytest.raises(WaterjarError, match="train, eval, epoch"):
        learning_time(np.zeros((2, 3, 4)))
    with pytest.raises(WaterjarError, match=r"expected \(4,\) or \(2, 4\)"):
        forgetting_rate(np.zeros((2, 2, 4)), [1, 2, 3])
    with pytest.raises(WaterjarError, match="epochs must rise"):
        min_accuracy(np.zeros((2, 2, 2)), [2, 1])
