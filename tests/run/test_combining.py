"""Rules that make one output of several."""

from __future__ import annotations

import numpy as np
import pytest

from waterjar import WaterjarError
from waterjar.run.combining import averaged_parts, combine, log_softmax, reproducing_rule

LOGITS = np.random.default_rng(0).normal(size=(5, 3, 4))


@pytest.mark.parametrize("rule", ["mean_probability", "mean_logit", "vote"])
def test_streams_without_weight_are_not_there(rule: str) -> None:
    gone = LOGITS.copy()
    gone[:, 1] = np.nan
    np.testing.assert_allclose(combine(gone, rule, [1, 0, 1]), combine(LOGITS[:, [0, 2]], rule))
    np.testing.assert_allclose(combine(LOGITS, rule, [2, 0, 2]), combine(LOGITS, rule, [1, 0, 1]))
    assert np.isnan(combine(gone, rule)).any(-1).all()


def test_weights_count() -> None:
    shares = np.exp(log_softmax(LOGITS))
    np.testing.assert_allclose(
        np.exp(combine(LOGITS, "mean_probability", [3, 1, 0])), (3 * shares[:, 0] + shares[:, 1]) / 4
    )


@pytest.mark.parametrize("rule", ["mean_probability", "vote"])
def test_parts_are_what_is_averaged(rule: str) -> None:
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.log(averaged_parts(LOGITS, rule).mean(1)), combine(LOGITS, rule))


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(WaterjarError, match="rule 'median' is unknown"):
        combine(LOGITS, "median")
    with pytest.raises(WaterjarError, match="rule 'median' is unknown"):
        averaged_parts(LOGITS, "median")
    with pytest.raises(WaterjarError, match=r"expected \(..., stream, class\)"):
        combine([1.0, 2.0], "vote")
    with pytest.raises(WaterjarError, match="one of them above 0"):
        combine(LOGITS, "vote", [0, 0, 0])


def test_nothing_is_told_of_nan() -> None:
    assert reproducing_rule(np.full((2, 3, 4), np.nan), np.zeros((2, 4))) is None


def test_rows_without_any_chance_are_no_numbers() -> None:
    assert np.isnan(log_softmax([[-np.inf, -np.inf], [np.inf, 0.0]])).any(-1).all()
