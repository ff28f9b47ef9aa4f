"""What every reader expects: ACC, LA, BWT, FWT, forgetting, intransigence; on the matrix worked out by hand."""

import numpy as np
import pytest

from diagnose.continual.by_hand import ENDS, NAN
from waterjar.diagnose.continual import (
    REFERENCES,
    average_accuracy,
    average_anytime_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer_gem,
    intransigence,
    learning_accuracy,
)
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS

# ENDS = [[.9, .6, .5], [.7, .8, .7], [.5, .9, 1.]]


def test_by_hand():
    assert average_accuracy(ENDS) == pytest.approx((0.5 + 0.9 + 1.0) / 3)
    assert learning_accuracy(ENDS) == pytest.approx((0.9 + 0.8 + 1.0) / 3)
    assert backward_transfer(ENDS) == pytest.approx((0.5 - 0.9 + 0.9 - 0.8) / 2)
    assert forward_transfer_gem(ENDS, [0.3, 0.5, 0.4]) == pytest.approx((0.6 - 0.5 + 0.7 - 0.4) / 2)
    np.testing.assert_allclose(intransigence(ENDS, [0.9, 0.85, 0.95]), [0, 0.05, -0.05], atol=1e-15)
    incremental = (0.9 + (0.7 + 0.8) / 2 + (0.5 + 0.9 + 1.0) / 3) / 3
    assert average_anytime_accuracy(ENDS[..., None]) == pytest.approx(incremental)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("max", [0.7 - 0.4, 0.6 - 0.65]),  # task 0 was better after task 1 than when it was learned
        ("learned", [0.5 - 0.4, 0.6 - 0.65]),
        ("max_or_last", [0.7 - 0.4, 0.0]),  # the end counts too: never below 0
    ],
)
def test_forgetting_by_hand(reference, expected):
    R = [[0.5, 0.2, 0.1], [0.7, 0.6, 0.3], [0.4, 0.65, 0.8]]
    np.testing.assert_allclose(forgetting(R, reference), [*expected, NAN], atol=1e-15)


def test_before_its_training_a_task_counts_where_it_was_evaluated():
    early = [[0.5, 0.9, 0.1], [0.4, 0.6, 0.3], [0.4, 0.5, 0.8]]  # task 1 was best before it was trained
    unknown = np.where(np.triu(np.ones((3, 3)), 1) > 0, NAN, early)
    np.testing.assert_allclose(forgetting(early), [0.1, 0.4, NAN])
    np.testing.assert_allclose(forgetting(unknown), [0.1, 0.1, NAN])
    np.testing.assert_allclose(forgetting(early, "learned"), [0.1, 0.1, NAN])
    np.testing.assert_allclose(forgetting(unknown, "learned"), [0.1, 0.1, NAN])


def test_after_its_training_an_unknown_value_makes_the_highest_unknown():
    holed = [[0.5, NAN, NAN], [NAN, 0.6, NAN], [0.4, 0.5, 0.8]]
    np.testing.assert_allclose(forgetting(holed), [NAN, 0.1, NAN])
    assert [REASONS[code] for code in forgetting(holed).reason] == ["not_a_number", "present", "undefined"]
    assert forgetting(holed).n.tolist() == [1, 1, 0]  # of the last task there is none by definition
    np.testing.assert_allclose(forgetting(holed, "learned"), [0.1, 0.1, NAN])
    np.testing.assert_allclose(forgetting(holed, "max_or_last"), [NAN, 0.1, NAN])


def test_single_task():
    assert float(average_accuracy([[0.4]])) == 0.4 == float(learning_accuracy([[0.4]]))
    assert np.isnan(backward_transfer([[0.4]]))
    assert np.isnan(forward_transfer_gem([[0.4]], [0.1]))
    assert backward_transfer([[0.4]]).reason == "undefined" and average_accuracy([[0.4]]).reason == "present"
    assert backward_transfer([[0.4, NAN], [NAN, 0.4]]).reason == "not_a_number"
    for reference in REFERENCES:
        np.testing.assert_array_equal(forgetting([[0.4]], reference), [NAN])


def test_refusals():
    with pytest.raises(WaterjarError, match="did you mean 'learned'"):
        forgetting(ENDS, "lerned")
    with pytest.raises(WaterjarError, match="with 3 tasks"):
        forward_transfer_gem(ENDS, 0.5)
    with pytest.raises(WaterjarError, match="with 3 tasks"):
        intransigence(ENDS, [0.5])
