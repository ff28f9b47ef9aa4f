"""remembering, zero_shot, forward_transfer: contrasts of performance above chance."""

import numpy as np
import pytest

from diagnose.continual.by_hand import NAN, R
from waterjar.diagnose.continual import forward_transfer, remembering, zero_shot
from waterjar.errors import WaterjarError

# R = [[.8, .2, 0], [.4, .6, .4], [0, .8, 1]]


def test_remembering_by_hand():
    expected = [[NAN, NAN, NAN], [(0.4 - 0.8) / 1.2, NAN, NAN], [-1.0, (0.8 - 0.6) / 1.4, NAN]]
    np.testing.assert_allclose(remembering(R), expected)
    np.testing.assert_allclose(remembering(R, bounded=False), expected)  # the same: all is above chance


def test_zero_shot_by_hand():
    expected = [[NAN, (0.2 - 0.6) / 0.8, -1.0], [NAN, NAN, (0.4 - 1.0) / 1.4], [NAN, NAN, NAN]]
    np.testing.assert_allclose(zero_shot(R), expected)


def test_below_chance_the_raw_denominator_leaves_the_range():
    below = [[0.2, 0.0], [-0.1, 0.5]]
    assert remembering(below)[1, 0] == pytest.approx(-1.0)
    assert remembering(below, bounded=False)[1, 0] == pytest.approx(-0.3 / 0.1)


def test_both_at_chance_is_undefined():
    at_chance = [[0.0, 0.1], [0.0, 0.5]]
    assert np.isnan(remembering(at_chance)[1, 0])
    assert np.isnan(remembering([[0.1, 0.1], [-0.1, 0.5]], bounded=False)[1, 0])
    assert np.isnan(remembering([[0.01, 0.1], [0.02, 0.5]], eps=0.05)[1, 0])
    assert not np.isnan(remembering([[0.01, 0.1], [0.02, 0.5]], eps=0.02)[1, 0])


def test_kept_and_gained():
    assert remembering([[0.7, 0.0], [0.7, 0.5]])[1, 0] == 0.0
    assert remembering([[0.0, 0.0], [0.7, 0.5]])[1, 0] == 1.0


def test_forward_transfer_by_hand():
    # diagonal .8, .6, 1; lower is better
    found = forward_transfer(R, [0.8, 0.7, 0.9])
    np.testing.assert_allclose(found, [0.0, 0.1 / 1.3, -0.1 / 1.9], atol=1e-8)
    assert forward_transfer([[0.5]], [0.7], eps=0.1) == pytest.approx(0.2 / 1.3)
    assert np.isnan(forward_transfer([[0.0]], [0.0])).all()


def test_single_task():
    assert np.isnan(remembering([[0.5]])).all() and np.isnan(zero_shot([[0.5]])).all()


def test_wrong_shapes_are_told():
    for wrong in (np.zeros(3), np.zeros((2, 3)), np.zeros((0, 0))):
        with pytest.raises(WaterjarError, match="the same tasks along both"):
            remembering(wrong)
    with pytest.raises(WaterjarError, match="with 3 tasks"):
        forward_transfer(R, [0.5, 0.5])
