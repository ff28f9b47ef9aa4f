"""What must hold of any collective."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waterjar.diagnose.collective import (
    ambiguity,
    class_information,
    disagreement,
    input_information,
    load_imbalance,
    routing_entropy,
    routing_overlap,
    shapley_interactions,
    shapley_values,
)
from waterjar.diagnose.collective.answers import Answers
from waterjar.diagnose.collective.coalitions import cached_game
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import families
from waterjar.run.combining import RULES, combine, reproducing_rule

SEEDS = st.integers(0, 10**6)
FEW = settings(max_examples=25, deadline=None)


def drawn(seed: int, streams: int = 4, n: int = 40, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    return rng.normal(size=(n, streams, classes)) * 2 + np.eye(classes)[labels][:, None], labels


@FEW
@given(SEEDS, st.permutations(range(4)), st.sampled_from(RULES), st.booleans())
def test_the_order_of_streams_changes_nothing(seed: int, order: list[int], rule: str, validated: bool) -> None:
    logits, labels = drawn(seed)
    more, wanted = drawn(seed + 1)
    names = ["a", "b", "c", "d"]
    results = []
    for own in (list(range(4)), order):
        test = Answers(labels, logits[:, own], collective=combine(logits[:, own], rule))
        other = Answers(wanted, more[:, own], collective=combine(more[:, own], rule)) if validated else None
        outputs = StreamOutputs([names[i] for i in own], test, other, rule=rule)
        found: dict[str, object] = {}
        for metric in families()["collective"].metrics.values():
            if metric.input is not StreamOutputs or metric.name == "deep_ensemble_equivalent":
                continue
            defaults = {"resamples": 40, "confidence": 0.95, "resampling_seed": 0, "probe_ridge": 0.01}
            made = metric.compute(outputs, **{name: defaults[name] for name in metric.takes})
            result, beside = made if isinstance(made, tuple) else (made, {})
            for name, one in {metric.name: result, **beside}.items():
                dims = metric.dims if name == metric.name else metric.beside[name].dims
                value = np.asarray(one.value, np.float64)
                back = np.argsort(own)
                for axis, dim in enumerate(dims):
                    value = np.take(value, back, axis) if dim in ("stream", "other_stream") else value
                if name == "best_stream":
                    value = np.array([own[int(value)]])
                found[name] = value
        results.append(found)
    for name, value in results[0].items():
        np.testing.assert_allclose(value, results[1][name], rtol=1e-9, atol=1e-12, err_msg=name)


@FEW
@given(SEEDS, st.permutations(range(4)), st.sampled_from(["mean_probability", "mean_logit"]))
def test_shares_go_with_their_streams(seed: int, order: list[int], rule: str) -> None:
    logits, labels = drawn(seed)
    for kind in ("accuracy", "log_likelihood"):
        one = cached_game(logits, labels, rule).shapley(kind)[0]
        other = cached_game(logits[:, order], labels, rule).shapley(kind)[0]
        np.testing.assert_allclose(one[order].mean(1), other.mean(1), atol=1e-9)


@FEW
@given(SEEDS, st.integers(1, 6))
def test_shares_of_any_game(seed: int, n: int) -> None:
    """They sum to all, are those of the sum of two games, and nothing for a player who adds nothing."""
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(2, 2**n))
    shares = shapley_values(one, n)
    assert shares.sum() == pytest.approx(one[-1] - one[0])
    np.testing.assert_allclose(shapley_values(one + other, n), shares + shapley_values(other, n), atol=1e-9)
    idle = np.concatenate([one, one])  # the last player changes nothing
    assert shapley_values(idle, n + 1)[-1] == pytest.approx(0.0)
    pairs = shapley_interactions(idle, n + 1)
    np.testing.assert_allclose(pairs[-1, :-1], 0.0, atol=1e-9)


@FEW
@given(SEEDS, st.integers(2, 6))
def test_bounds_of_routing(seed: int, choices: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(choices, 0.3), size=50)
    labels = rng.integers(3, size=50)
    entropy, most = float(routing_entropy(weights)), np.log(choices)
    assert -1e-12 <= entropy <= most + 1e-12
    of_class, of_input = class_information(weights, labels), input_information(weights)
    assert -1e-12 <= of_class <= of_input + 1e-12 <= most - entropy + 1e-9  # a class says no more than the input
    assert 0 <= float(load_imbalance(weights.mean(0))) <= np.sqrt(choices - 1) + 1e-12
    overlap = routing_overlap(rng.integers(-1, choices, size=(20, 3, 2, 2)))
    assert (overlap >= 0).all() and (overlap <= 1).all() and (overlap == overlap.T).all()


@FEW
@given(SEEDS)
def test_bounds_of_diversity(seed: int) -> None:
    logits, _ = drawn(seed)
    apart = disagreement(logits.argmax(-1))
    assert (apart == apart.T).all() and (np.diag(apart) == 0).all() and (apart <= 1).all()
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    assert (ambiguity(shares) >= 0).all() and (ambiguity(shares) <= 2).all()


@FEW
@given(SEEDS, st.sampled_from(RULES), st.sampled_from([np.float64, np.float32, np.float16]))
def test_the_rule_is_told_from_what_it_made(seed: int, rule: str, dtype: type) -> None:
    logits, _ = drawn(seed)
    stored = logits.astype(dtype)
    assert reproducing_rule(stored, combine(stored, rule).astype(dtype)) == rule
    rng = np.random.default_rng(seed)
    assert reproducing_rule(stored, rng.normal(size=(40, 3))) is None
