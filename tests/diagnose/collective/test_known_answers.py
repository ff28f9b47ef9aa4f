"""Collectives built by hand, whose numbers are known without any computation."""

from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import pytest

from diagnose.collective.by_hand import alike, last, measured, parity, random_streams, sure_of, thirds, why
from waterjar.diagnose.collective import (
    anchor_entropy,
    dead_anchors,
    fingerprint_diversity,
    fit_temperature,
    negative_log_likelihood,
    routing_entropy,
    shapley_interactions,
    shapley_values,
)
from waterjar.diagnose.collective.coalitions import Game, cached_game
from waterjar.diagnose.collective.shapley import all_coalitions, shapley_of, shapley_of_walks


def test_three_streams_that_each_know_a_third(tmp_path: Path) -> None:
    streams, labels, whole = thirds()
    found = measured(
        tmp_path, streams, collective=whole, labels=labels, parameters=3_000_000, trainable_parameters=10**6
    )
    assert last(found, "individual_accuracy").tolist() == [1 / 3] * 3
    assert last(found, "emergence_ratio") == pytest.approx(3.0)
    assert last(found, "error_reduction") == 1.0 and last(found, "collective_accuracy") == 1.0
    assert last(found, "ensemble_improvement_rate") == 1.0
    assert last(found, "oracle_accuracy") == 1.0 and last(found, "oracle_gap") == 0.0
    assert last(found, "chance") == pytest.approx(1 / 9) and last(found, "head_at_chance").tolist() == [0, 0, 0]
    # two streams agree where neither knows: on the third that only the other one knows
    assert last(found, "disagreement") == pytest.approx(2 / 3)
    assert last(found, "disagreement_error_ratio") == pytest.approx(1.0)
    assert last(found, "parameter_efficiency") == pytest.approx(1 / 3)
    assert last(found, "parameter_efficiency_trainable") == pytest.approx(1.0)


def test_shares_of_streams_that_each_know_a_third(tmp_path: Path) -> None:
    """With every stream a third is known, whichever others are there: each is worth the same, less what guessing is."""
    streams, labels, _ = thirds()
    found = measured(tmp_path, streams, collective="mean_probability", labels=labels)
    shares, removed = last(found, "shapley_accuracy"), 0
    np.testing.assert_allclose(shares[removed], (1.0 - 1 / 9) / 3)
    np.testing.assert_allclose(last(found, "ablation")[removed], 1 / 3)
    # v = 1/9, 1/3, 2/3, 1 by size: interactions only with what guessing gave
    expected = np.mean([2 / 3 - 2 / 3 + 1 / 9, 1 - 4 / 3 + 1 / 3])
    np.testing.assert_allclose(last(found, "interaction")[removed][0, 1], expected, atol=1e-12)
    assert np.isnan(shares[1:]).all()


def test_parity_that_no_stream_solves_alone(tmp_path: Path) -> None:
    streams, labels, whole = parity()
    found = measured(tmp_path, streams, collective=whole, labels=labels)
    assert last(found, "emergence_ratio") == 2.0 and last(found, "collective_accuracy") == 1.0
    assert last(found, "head_at_chance").tolist() == [1, 1] and last(found, "best_at_chance") == 1
    assert why(found, "shapley_accuracy") == "not_recorded"  # no rule makes a parity of two outputs
    values = np.array([0.5, 0.5, 0.5, 1.0])
    np.testing.assert_allclose(shapley_values(values, 2), [0.25, 0.25])
    assert shapley_interactions(values, 2)[0, 1] == 0.5  # all of it is between them


def test_streams_that_are_all_the_same(tmp_path: Path) -> None:
    streams, labels, whole = alike()
    prints = {name: [1.0, -2.0, 0.5] for name in streams}
    gate = np.random.default_rng(0).dirichlet(np.ones(4), size=(60, 2))
    top = np.argsort(-gate, axis=-1)[..., :2]
    found = measured(
        tmp_path, streams, collective=whole, labels=labels, fingerprints=prints,
        routing=dict.fromkeys(streams, np.take_along_axis(gate, top, -1)), route_index=dict.fromkeys(streams, top),
    )  # fmt: skip
    assert last(found, "emergence_ratio") == 1.0
    assert last(found, "emergence_ratio_low") == last(found, "emergence_ratio_high") == 1.0
    shares = last(found, "shapley_accuracy")[0]
    np.testing.assert_allclose(shares, shares[0])
    assert last(found, "disagreement") == 0.0 and last(found, "ambiguity") == pytest.approx(0.0, abs=1e-12)
    assert last(found, "fingerprint_diversity") == pytest.approx(0.0) and last(found, "routing_overlap") == 1.0
    np.testing.assert_allclose(last(found, "ablation")[0], 0.0)


@pytest.mark.parametrize("rule", ["mean_probability", "mean_logit", "vote"])
def test_shares_are_all_that_there_is(rule: str) -> None:
    streams, labels = random_streams(count=4)
    game = cached_game(np.stack(list(streams.values()), 1), labels, rule)
    for kind in ("accuracy", "log_likelihood"):
        values = game.values[kind]
        if np.isinf(values).any():  # a class without a vote
            continue
        shares, error = game.shapley(kind)
        np.testing.assert_allclose(shares.sum(0), values[-1] - values[0], atol=1e-12)
        np.testing.assert_array_equal(error, 0)


def test_sampled_shares_are_the_exact_ones_within_their_error() -> None:
    """Nine streams, by all 512 coalitions and by 400 orders; and they sum to all that there is, too."""
    streams, labels = random_streams(n=300, count=9, seed=3)
    logits = np.stack(list(streams.values()), 1)
    sampled = cached_game(logits, labels, "mean_probability", orders=400)
    codes = np.arange(2**9)
    from waterjar.run.combining import combine

    present = all_coalitions(9)
    right = np.empty((2**9, 300))
    right[0] = sampled.values["accuracy"][0]
    for code in codes[1:]:
        right[code] = combine(logits[:, present[code]], "mean_probability").argmax(-1) == labels
    exact = shapley_of(present, right).mean(1)
    shares, error = sampled.shapley("accuracy")
    assert (np.abs(shares.mean(1) - exact) < 4 * error).all() and error.max() < 0.01
    assert shares.mean(1).sum() == pytest.approx(right[-1].mean() - right[0].mean())


def test_walks_through_some_coalitions_sum_to_all_that_there_is() -> None:
    """Arcs of circles, whose orders nobody knows: the sum is exact, the error is not known."""
    rng, n = np.random.default_rng(4), 10
    circles = [rng.permutation(n) for _ in range(3)]
    arcs = [np.isin(np.arange(n), np.roll(c, -k)[:size]) for c in circles for k in range(n) for size in range(n + 1)]
    present = np.unique(np.array(arcs), axis=0)
    values = rng.normal(size=(len(present), 4))
    shares, error = Game(present, {"accuracy": values}).shapley("accuracy")
    np.testing.assert_allclose(shares.sum(0), values[-1] - values[0], atol=1e-12)
    assert np.isnan(error).all()
    every = all_coalitions(4)
    played = rng.normal(size=(16, 3))
    np.testing.assert_allclose(shapley_of_walks(every, played), shapley_of(every, played), atol=1e-12)
    assert np.isnan(shapley_of_walks(every[:-1], played[:-1])).all()


def test_entropies_at_their_bounds() -> None:
    even, sharp = np.full((5, 2, 4), 0.25), np.eye(4)[None, :2].repeat(5, 0)
    assert float(routing_entropy(even)) == pytest.approx(log(4)) and float(routing_entropy(sharp)) == 0.0
    assert float(anchor_entropy(np.full(8, 0.5))) == pytest.approx(1.0)
    assert float(dead_anchors([1.0, 1.0, 0.0])) == 1.0
    assert float(fingerprint_diversity(np.eye(5))) == 1.0


def test_random_fingerprints_look_diverse() -> None:
    """What the target of 0.8 says of an untrained network: mean |cos| of 64 components is sqrt(2 / (64 pi))."""
    rng = np.random.default_rng(0)
    found = [float(fingerprint_diversity(rng.normal(size=(5, 64)))) for _ in range(400)]
    assert np.mean(found) == pytest.approx(1 - np.sqrt(2 / (np.pi * 64)), abs=0.005)


def test_specialised_and_collapsed_routers_have_the_same_entropy(tmp_path: Path) -> None:
    """Information and load tell them apart."""
    streams, labels = random_streams(n=80, count=2, classes=2)
    results = {}
    for name, target in (("specialised", labels), ("collapsed", np.zeros(80, int))):
        (tmp_path / name).mkdir()
        results[name] = measured(
            tmp_path / name, streams, collective="mean_logit", labels=labels, routing=np.eye(2)[target]
        )
    one, other = results["specialised"], results["collapsed"]
    assert last(one, "routing_entropy") == last(other, "routing_entropy") == 0.0
    share = labels.mean()
    entropy = -(share * log(share) + (1 - share) * log(1 - share))
    assert last(one, "route_information") == pytest.approx(entropy)
    assert last(one, "route_class_information") == pytest.approx(entropy)
    assert last(one, "route_class_information_shuffled") < 0.05
    assert last(other, "route_information") == last(other, "route_class_information") == 0.0
    assert last(other, "load_imbalance") == 1.0 and last(other, "routing_entropy_of_mean") == 0.0
    assert last(one, "routing_entropy_of_mean") == pytest.approx(entropy)
    np.testing.assert_allclose(last(one, "route_load"), [[1 - share, share]] * 2)


def test_a_deep_ensemble_is_worth_its_own_members(tmp_path: Path) -> None:
    import waterjar
    from waterjar.diagnose import collective

    waterjar.create_study(tmp_path / "study")
    streams, labels = random_streams(n=400, count=4, seed=1)
    for name, own in (("ensemble", streams), ("two", dict(list(streams.items())[:2]))):
        waterjar.from_logits(
            tmp_path / "study" / name, own, collective="mean_probability", labels=labels, config={"method": name}
        )
    found = collective.measure(waterjar.open_study(tmp_path / "study"), baseline="ensemble", resamples=10)
    by_name = dict(zip(found["cell"].values, found["deep_ensemble_equivalent_final"].values[:, 0], strict=True))
    assert by_name["ensemble"] == 4.0 and 1.2 < by_name["two"] < 3.2  # these two, of six pairs


def test_a_likelihood_that_is_sure_of_the_only_class_costs_nothing(tmp_path: Path) -> None:
    """0, and not -0."""
    streams = {name: np.zeros((6, 1)) for name in "ab"}
    found = measured(tmp_path, streams, collective="mean_logit", labels=np.zeros(6, int))
    for name in ("nll", "nll_calibrated", "nll_individual"):
        assert (last(found, name) == 0).all() and not np.signbit(last(found, name)).any()


def test_ambiguity_is_what_the_mean_is_better_by(tmp_path: Path) -> None:
    streams, labels = random_streams()
    found = measured(tmp_path, streams, collective="mean_probability", labels=labels)
    parts = [last(found, name) for name in ("ambiguity_mean_error", "ambiguity", "ambiguity_error_of_mean")]
    assert parts[0] - parts[1] == pytest.approx(parts[2])
    mean = last(found, "nll_individual").mean()
    assert last(found, "ambiguity_nll") == pytest.approx(mean - last(found, "nll"))


def test_probes_read_what_untrained_heads_do_not_say(tmp_path: Path) -> None:
    """Heads at chance make rho large; probes of the same features make it 1."""
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 3
    pooled = {name: np.eye(3)[labels] + 0.05 * rng.normal(size=(120, 3)) for name in "ab"}
    heads = {name: sure_of(np.zeros(120, int), 3) for name in "ab"}
    found = measured(tmp_path, heads, collective=sure_of(labels, 3), labels=labels, pooled=pooled)
    assert last(found, "emergence_ratio") == pytest.approx(3.0) and last(found, "best_at_chance") == 1
    assert last(found, "emergence_ratio_probe") == 1.0 and last(found, "emergence_ratio_concatenated") == 1.0
    assert last(found, "individual_accuracy_probe").tolist() == [1.0, 1.0]
    assert last(found, "best_individual_probe") == 1.0 and last(found, "individual_accuracy_probe_high").tolist() == [
        1,
        1,
    ]
    low, high = last(found, "individual_accuracy_low"), last(found, "individual_accuracy_high")
    assert (low < 1 / 3).all() and (high > 1 / 3).all()


def test_a_head_far_below_a_probe_of_its_own_features_is_flagged(tmp_path: Path) -> None:
    """Heads surely above one constant answer that nobody trained: 40 % of three classes, where features tell all."""
    rng, n = np.random.default_rng(0), 600
    labels = np.arange(n) % 3
    weak, able = (np.where(rng.permutation(n) < share * n, labels, (labels + 1) % 3) for share in (0.4, 0.9))
    pooled = {name: np.eye(3)[labels] + 0.3 * rng.normal(size=(n, 3)) for name in "abc"}
    pooled["c"] = rng.normal(size=(n, 3))  # a probe reads nothing of it
    heads = {"a": sure_of(weak, 3), "b": sure_of(weak, 3), "c": sure_of(weak, 3)}
    found = measured(tmp_path, heads, collective=sure_of(labels, 3), labels=labels, pooled=pooled)
    assert last(found, "head_at_chance").tolist() == [0, 0, 0] and last(found, "best_at_chance") == 0
    assert last(found, "head_below_probe").tolist() == [1, 1, 0] and last(found, "best_below_probe") == 1
    assert last(found, "emergence_ratio") == pytest.approx(2.5) and last(found, "emergence_ratio_probe") < 1.1
    (tmp_path / "able").mkdir()
    heads["a"] = sure_of(able, 3)  # far above half of what its probe is
    found = measured(tmp_path / "able", heads, collective=sure_of(labels, 3), labels=labels, pooled=pooled)
    assert last(found, "head_below_probe").tolist() == [0, 1, 0] and last(found, "best_below_probe") == 0
    (tmp_path / "few").mkdir()
    few = {name: one[:9] for name, one in heads.items()} | {"a": sure_of(weak[:9], 3)}
    features = {name: one[:9] for name, one in pooled.items()}
    found = measured(tmp_path / "few", few, collective=sure_of(labels[:9], 3), labels=labels[:9], pooled=features)
    assert last(found, "head_below_probe").tolist() == [0, 0, 0]  # intervals of nine samples are not apart
    (tmp_path / "bare").mkdir()
    found = measured(tmp_path / "bare", heads, collective=sure_of(labels, 3), labels=labels)
    assert why(found, "head_below_probe") == why(found, "best_below_probe") == "not_recorded"


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_the_temperature_is_that_with_the_lowest_likelihood(scale: float) -> None:
    """Guo et al. 2017, nothing added; logits of any size."""
    rng = np.random.default_rng(3)
    labels = rng.integers(4, size=80)
    logits = rng.normal(size=(80, 4)) + 1.5 * np.eye(4)[labels]
    tried = np.exp(np.linspace(-3, 3, 20001))
    best = tried[np.argmin([negative_log_likelihood(logits / t, labels) for t in tried])]
    assert fit_temperature(scale * logits, labels) == pytest.approx(scale * best, rel=1e-3)


def test_a_temperature_of_answers_that_are_all_right_is_above_zero() -> None:
    labels = np.arange(20) % 2
    found = fit_temperature(sure_of(labels, 2), labels)
    assert 1.0 < found < 8.0  # 21 parts of 22 are as sure as exp(8 / T) : 1
    assert found == pytest.approx(8.0 / np.log(21.5 / 0.5), rel=1e-4)
