"""What became of an example: by hand, against strings, and against other people's margins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import waterjar
from waterjar import WaterjarError
from waterjar.diagnose.examples import area_under_margin, error_consistency, first_learned, forgetting_events
from waterjar.diagnose.result import NEVER_REACHED, NOT_RECORDED, UNDEFINED

ANSWERS = arrays.arrays(
    np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 6)), elements=st.sampled_from([0, 1, 255])
)
RIGHT = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


def texts(answers: np.ndarray) -> list[str]:
    """Every example as a string of 0 and 1, without the evaluations at which nobody looked."""
    return ["".join(str(one) for one in column if one != 255) for column in answers.T]


@given(ANSWERS)
def test_events_are_falls_in_a_string(answers: np.ndarray) -> None:
    found = forgetting_events(answers)
    for text, value, code in zip(texts(answers), found.value, found.reason, strict=True):
        if "1" in text:
            assert value == text.count("10")  # none overlaps another
        else:
            assert np.isnan(value) and code == (NEVER_REACHED if text else NOT_RECORDED)


@given(ANSWERS)
def test_learned_first_and_for_good(answers: np.ndarray) -> None:
    epochs = np.arange(len(answers)) * 2.0
    first, good = (first_learned(answers, epochs, learned=how) for how in ("first", "for_good"))
    for place, column in enumerate(answers.T):
        right = np.flatnonzero(column == 1)
        lasting = [row for row in right if not (column[row:] == 0).any()]
        for found, rows in ((first, right), (good, lasting)):
            if len(rows):
                assert found.value[place] == epochs[rows[0]]
            else:
                assert found.reason[place] == (NEVER_REACHED if (column != 255).any() else NOT_RECORDED)
                assert found.censored[place] == (column != 255).any()


def test_by_hand() -> None:
    correct = np.array([[0, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [1, 0, 0, 1]])
    assert forgetting_events(correct).value.tolist()[:2] == [1, 2]
    assert forgetting_events(correct).value[3] == 0
    assert forgetting_events(correct).reason.tolist() == [0, 0, NEVER_REACHED, 0]
    assert forgetting_events([[1.0], [np.nan], [0.0]]).value.tolist() == [1]  # nobody looked in between
    assert area_under_margin([[1.0, 4.0], [-3.0, np.inf]]).value[0] == -1.0
    assert area_under_margin([[1.0, 4.0], [-3.0, np.inf]]).reason.tolist() == [0, UNDEFINED]
    assert area_under_margin([[np.nan]]).reason.tolist() == [NOT_RECORDED]
    with pytest.raises(WaterjarError, match="expected 1 or 0"):
        forgetting_events([[2, 0]])
    with pytest.raises(WaterjarError, match=r"expected \(evaluation, example\)"):
        area_under_margin([1.0])


def test_kappa_of_a_table_by_hand() -> None:
    """Both right 40, one alone 10, the other alone 20, neither 30: c_obs .7, p .5, q .6, c_exp .5, kappa .4."""
    one = [1] * 40 + [1] * 10 + [0] * 20 + [0] * 30
    other = [1] * 40 + [0] * 10 + [1] * 20 + [0] * 30
    found = error_consistency(one, other)
    assert (found.observed, found.expected) == pytest.approx((0.7, 0.5))
    assert float(found.kappa) == pytest.approx(0.4)
    assert (float(found.lowest), float(found.highest)) == pytest.approx(((0.1 - 0.5) / 0.5, (0.9 - 0.5) / 0.5))


@given(RIGHT)
def test_kappa_lies_between_its_bounds_and_is_the_same_both_ways(pairs: list[tuple[bool, bool]]) -> None:
    one, other = (np.array(side, int) for side in zip(*pairs, strict=True))
    found, back = error_consistency(one, other), error_consistency(other, one)
    if found.kappa.is_missing:
        assert len(set(one)) == len(set(other)) == 1
        return
    assert float(found.kappa) == pytest.approx(float(back.kappa))
    assert float(found.lowest) - 1e-9 <= float(found.kappa) <= float(found.highest) + 1e-9


@pytest.mark.oracle
@given(RIGHT)
def test_kappa_against_scikit_learn(pairs: list[tuple[bool, bool]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    one, other = (np.array(side, int) for side in zip(*pairs, strict=True))
    found = error_consistency(one, other).kappa
    if not found.is_missing:
        assert float(found) == pytest.approx(metrics.cohen_kappa_score(one, other))


@pytest.mark.oracle
def test_margins_against_cleanlab() -> None:
    """Its normalised margin of probabilities is (margin + 1) / 2; the area of one evaluation is the margin."""
    rank = pytest.importorskip("cleanlab.rank")
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(5), size=200)
    labels = rng.integers(0, 5, 200)
    margin = waterjar.judge_examples({"test": shares}, {"test": labels})["margin"]["test"]
    theirs = rank.get_normalized_margin_for_each_label(labels, shares)
    np.testing.assert_allclose((area_under_margin(margin[None]).value + 1) / 2, theirs)
