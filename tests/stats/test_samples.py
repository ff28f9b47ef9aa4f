"""Observed values, pairs, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from waterjar.errors import WaterjarError
from waterjar.stats import pair_by_seed
from waterjar.stats.samples import constant, observed, why_undefined


def test_pairs_are_joined_by_label_and_the_rest_is_counted() -> None:
    pairs = pair_by_seed([10.0, 20.0, 30.0, 40.0], ["d", "a", "c", "x"], [1.0, 2.0, 3.0], ["a", "b", "c"])
    assert pairs.a.tolist() == [20.0, 30.0]
    assert pairs.b.tolist() == [1.0, 3.0]
    assert pairs.seeds == ("a", "c")
    assert (pairs.n_unmatched_a, pairs.n_unmatched_b) == (2, 1)


def test_no_common_seed_is_an_empty_join() -> None:
    pairs = pair_by_seed([1.0], [1], [2.0], [2])
    assert pairs.a.size == 0 and pairs.n_unmatched_a == 1 and pairs.n_unmatched_b == 1


def test_a_seed_twice_is_an_error() -> None:
    with pytest.raises(WaterjarError, match="seeds_b names a seed twice: 7"):
        pair_by_seed([1.0, 2.0], [7, 8], [1.0, 2.0], [7, 7])


def test_labels_must_fit_the_values() -> None:
    with pytest.raises(WaterjarError, match="values_a has 2 values but seeds_a has 3"):
        pair_by_seed([1.0, 2.0], [1, 2, 3], [1.0], [1])


@pytest.mark.parametrize("wrong", [[[1.0, 2.0]], 3.0])
def test_the_shape_is_one_number_per_seed(wrong: object) -> None:
    with pytest.raises(WaterjarError, match="one number per seed"):
        observed(wrong)  # type: ignore[arg-type]


def test_text_is_refused_in_words() -> None:
    with pytest.raises(WaterjarError, match="numbers are needed"):
        observed(["high", "low"])


def test_rounding_is_no_spread() -> None:
    assert constant(np.array([0.1 + 0.2, 0.3, 0.3]))
    assert not constant(np.array([0.3, 0.3 + 1e-12]))
    assert constant(np.array([]))
    assert constant(np.zeros(3))


def test_what_is_missing_has_words() -> None:
    assert "no value" in why_undefined(np.array([]), 2)
    assert "one value" in why_undefined(np.array([1.0]), 2)
    assert "2 values, at least 3" in why_undefined(np.array([1.0, 2.0]), 3)
    assert "1 of 2 values are infinite" in why_undefined(np.array([1.0, np.inf]), 2)
    assert not why_undefined(np.array([1.0, 2.0]), 2)
