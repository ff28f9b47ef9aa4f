"""Rules that make one output of several."""

from __future__ import annotations

import numpy as np
import pytest

from waterjar import WaterjarError
from waterjar.run.combining import RULES, averaged_parts, combine, log_softmax, reproducing_rule

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


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scale", [1.0, 20.0, 1000.0])
def test_the_rule_is_found_however_it_is_stored(dtype: str, rule: str, scale: float) -> None:
    streams = scale * np.random.default_rng(1).normal(size=(200, 3, 3))
    assert reproducing_rule(streams.astype(dtype), combine(streams, rule).astype(dtype)) == rule


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [("float16", 1.0), ("float16", 200.0), ("float32", 1.0), ("float32", 1e6), ("float32", 1e30), ("float64", 1e30)],
)
def test_a_collective_that_no_rule_makes_has_none(dtype: str, scale: float) -> None:
    rng = np.random.default_rng(2)
    streams, gate = scale * rng.normal(size=(200, 3, 4)), rng.dirichlet([1, 1, 1], 200)
    gated = np.einsum("ns,nsc->nc", gate, streams)
    assert reproducing_rule(streams.astype(dtype), gated.astype(dtype)) is None
    always = np.tile([5.0, 0.0, 0.0, 0.0], (200, 1))
    assert reproducing_rule(streams.astype(dtype), always.astype(dtype)) is None


def test_one_large_logit_makes_no_rule_of_another() -> None:
    """Nor does a class that is masked by a large negative number."""
    rng = np.random.default_rng(3)
    streams = rng.normal(size=(200, 3, 4)).astype(np.float32)
    streams[:, :, 3] = -1e9
    gated = np.einsum("ns,nsc->nc", rng.dirichlet([1, 1, 1], 200), streams)
    assert reproducing_rule(streams, gated.astype(np.float32)) is None
    for rule in RULES:
        assert reproducing_rule(streams, combine(streams, rule).astype(np.float32)) == rule
    half = rng.normal(size=(200, 3, 4)).astype(np.float16)
    half[0, 0, 0] = 200
    assert (
        reproducing_rule(half, np.einsum("ns,nsc->nc", rng.dirichlet([1, 1, 1], 200), half).astype(half.dtype)) is None
    )


def test_answers_must_be_the_same() -> None:
    """Probabilities that hardly differ, and one answer that does."""
    streams = np.zeros((4, 2, 2))
    streams[:, :, 0] = 1e-3
    other = combine(streams, "mean_logit")
    other[0] = other[0, ::-1]
    assert reproducing_rule(streams, other) is None
