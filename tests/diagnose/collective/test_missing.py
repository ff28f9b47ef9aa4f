"""Every number that is not there says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from diagnose.collective.by_hand import last, measured, random_streams, sure_of, why
from waterjar import WaterjarError
from waterjar.diagnose import collective
from waterjar.diagnose.collective import (
    Affinities,
    Course,
    Fingerprints,
    Routing,
    StreamOutputs,
    anchor_entropy,
    dead_anchors,
    emergence_ratio,
    error_reduction,
    fingerprint_diversity,
    load_imbalance,
    routing_entropy,
    shapley_values,
)
from waterjar.diagnose.collective.answers import Answers
from waterjar.diagnose.collective.control import ensemble_curve
from waterjar.diagnose.collective.probing import probed, ridge_probe
from waterjar.diagnose.collective.shapley import all_coalitions, interactions_of, shapley_of
from waterjar.diagnose.registry import families
from waterjar.diagnose.result import Result

RNG = np.random.default_rng(0)
SETTINGS = {"resamples": 10, "confidence": 0.95, "resampling_seed": 0, "probe_ridge": 0.01}


def compute(name: str, given: Any) -> tuple[Result, dict[str, Result]]:
    metric = families()["collective"].metrics[name]
    made = metric.compute(given, **{key: SETTINGS[key] for key in metric.takes})
    return made if isinstance(made, tuple) else (made, {})


def routing(weights: Any, targets: Any, n_targets: int = 3) -> Routing:
    labels = np.arange(len(weights)) % 2
    return Routing(["a", "b"], np.asarray(weights, float), targets, labels, n_targets)


WEIGHTS, TARGETS = RNG.dirichlet(np.ones(2), size=(6, 2, 1)), RNG.integers(3, size=(6, 2, 1, 2))
ROUTED = ("routing_entropy", "route_information", "load_imbalance", "routing_overlap")


@pytest.mark.parametrize("name", ROUTED)
def test_routing_that_says_nothing(name: str) -> None:
    empty, broken = routing(WEIGHTS[:0], TARGETS[:0]), routing(WEIGHTS * np.nan, TARGETS)
    assert compute(name, empty)[0].reason == "empty_set" and compute(name, broken)[0].reason == "not_a_number"
    if name != "routing_entropy":
        assert compute(name, routing(WEIGHTS, None))[0].reason == "not_recorded"


def test_weights_that_are_no_weights() -> None:
    for weights in (0 * WEIGHTS, -WEIGHTS):
        for name in ("routing_entropy", "route_information", "load_imbalance"):
            assert compute(name, routing(weights, TARGETS))[0].reason == "not_a_number"
        assert routing_entropy(weights).reason == "not_a_number"
    found, beside = compute("routing_entropy", routing(np.ones((6, 2, 1, 1)), TARGETS[..., :1]))
    assert float(found) == 0.0 and beside["routing_entropy_normalised"].reason == "undefined"
    nowhere, beside = compute("routing_entropy", routing(WEIGHTS, np.full_like(TARGETS, -1)))
    assert not nowhere.is_missing and beside["routing_entropy_of_mean"].reason == "undefined"
    assert compute("load_imbalance", routing(WEIGHTS, np.full_like(TARGETS, -1)))[0].reason == "undefined"
    assert compute("routing_entropy", routing(WEIGHTS, None))[1]["routing_entropy_of_mean"].reason == "not_recorded"
    assert load_imbalance([np.nan]).reason == "not_a_number"


def test_one_stream_of_nan_routes_nowhere() -> None:
    weights = WEIGHTS.copy()
    weights[:, 1] = np.nan
    found, beside = compute("routing_entropy", routing(weights, TARGETS))
    assert float(found) == pytest.approx(float(routing_entropy(WEIGHTS[:, 0])))
    assert np.isnan(beside["routing_entropy_by_stream"].value).tolist() == [False, True]
    assert np.isnan(compute("load_imbalance", routing(weights, TARGETS))[1]["route_load"].value[1]).all()
    assert compute("routing_overlap", routing(weights, TARGETS))[0].reason == "undefined"  # one stream has no pair


def test_anchors() -> None:
    assert anchor_entropy([np.nan]).reason == dead_anchors([np.nan]).reason == "not_a_number"
    assert (
        anchor_entropy([1.0]).reason == anchor_entropy([0.0, 0.0]).reason == dead_anchors([0.0]).reason == "undefined"
    )
    for name in ("anchor_entropy", "dead_anchors"):
        assert compute(name, Affinities(["a"], np.empty((0, 1, 3))))[0].reason == "empty_set"
        assert compute(name, Affinities(["a"], np.full((2, 1, 3), np.nan)))[0].reason == "not_a_number"
    found, beside = compute("anchor_utilisation", Affinities(["a", "b"], np.array([[[0.5, 1.0], [np.nan, 1.0]]])))
    assert found.value.tolist()[0] == [0.5, 1.0] and beside["anchor_utilisation_by_anchor"].value.tolist() == [0.5, 1.0]
    nothing, beside = compute("anchor_utilisation", Affinities(["a"], np.full((2, 1, 3), np.nan)))
    assert np.isnan(nothing.value).all() and (beside["anchor_utilisation_by_anchor"].reason == 2).all()


def test_affinities_by_the_input_and_fixed(tmp_path: Path) -> None:
    streams, labels = random_streams(count=2)
    fixed, by_input = RNG.random((2, 5)), RNG.random((2, 200, 5))
    for name, given in (("fixed", fixed), ("by_input", by_input)):
        (tmp_path / name).mkdir()
        own = dict(zip(streams, given, strict=True))
        found = measured(tmp_path / name, streams, collective="vote", labels=labels, affinities=own)
        expected = given if name == "fixed" else given.mean(1)
        np.testing.assert_allclose(last(found, "anchor_utilisation"), expected)
        assert last(found, "dead_anchors") == 0.0 and 0.9 < last(found, "anchor_entropy") <= 1.0


def test_fingerprints() -> None:
    assert fingerprint_diversity([[1.0, 0.0]]).reason == "undefined"
    assert fingerprint_diversity([[1.0, 0.0], [0.0, 0.0]]).reason == "undefined"
    assert (
        compute("fingerprint_diversity", Fingerprints(["a", "b"], np.full((2, 3), np.nan)))[0].reason == "not_a_number"
    )


def test_ratios_of_nan() -> None:
    assert emergence_ratio([np.nan], [[1.0]]).reason == error_reduction([np.nan], [[0.0]]).reason == "not_a_number"


def outputs(**given: Any) -> StreamOutputs:
    labels = np.arange(12) % 3
    logits = np.stack([sure_of(labels, 3), sure_of(labels * 0, 3)], 1)
    about = {"labels": labels, "logits": logits, "isolated": logits, "collective": logits[:, 0], **given}
    return StreamOutputs(["a", "b"], Answers(**about))


def test_probes() -> None:
    labels = np.arange(12) % 3
    constant, broken = np.ones((12, 2, 2)), np.full((12, 2, 2), np.nan)
    assert probed(outputs(), ridge=0.01).reason == "not_recorded"  # type: ignore[union-attr]
    assert probed(outputs(labels=None), ridge=0.01).reason == "not_recorded"  # type: ignore[union-attr]
    assert probed(outputs(pooled=constant), ridge=0.01).reason == "undefined"  # type: ignore[union-attr]
    assert probed(outputs(pooled=broken), ridge=0.01).reason == "not_a_number"  # type: ignore[union-attr]
    half = RNG.normal(size=(12, 2, 2))
    half[:, 1] = np.nan
    right, best = probed(outputs(pooled=half), ridge=0.01)  # type: ignore[misc]
    assert np.isnan(right).all(0).tolist() == [False, True] and best is None
    x = RNG.normal(size=(12, 40))  # wider than it has samples
    assert (ridge_probe(x, labels, x, ridge=1e-6) == labels).all()
    assert ridge_probe(x, labels * 0, x).reason == "undefined"  # type: ignore[union-attr]
    assert ridge_probe(np.ones((12, 2)), labels, x[:, :2]).reason == "undefined"  # type: ignore[union-attr]
    assert ridge_probe(x * np.nan, labels, x).reason == "not_a_number"  # type: ignore[union-attr]


def test_the_best_probe_is_chosen_on_validation_data(tmp_path: Path) -> None:
    labels = np.arange(30) % 3
    good, noise = np.eye(3)[labels] + 0.01 * RNG.normal(size=(30, 3)), RNG.normal(size=(30, 3))
    sets = ("train", "val", "test")
    pooled = {"a": dict.fromkeys(sets, good), "b": {"train": noise, "val": noise[::-1], "test": noise}}
    heads = {name: dict.fromkeys(sets, sure_of(labels, 3)) for name in "ab"}
    found = measured(tmp_path, heads, collective="vote", labels=dict.fromkeys(sets, labels), pooled=pooled)
    assert last(found, "best_individual_probe") == 1.0 == last(found, "emergence_ratio_probe")


def test_a_course_needs_two_snapshots() -> None:
    one = Result.of([1.0])
    assert compute("emergence_rise", Course(np.zeros(1), one, one))[0].reason == "not_recorded"
    two, gone = Result.of([1.0, np.inf]), Result.of([1.0, np.nan], [0, 2])
    assert compute("emergence_rise", Course(np.arange(2.0), two, two))[0].reason == "undefined"
    assert compute("emergence_rise", Course(np.arange(2.0), gone, gone))[0].reason == "not_a_number"
    assert compute("emergence_plateau", Course(np.arange(2.0), one, one))[0].reason == "not_recorded"


def test_coalitions_that_do_not_cover_a_size() -> None:
    present = all_coalitions(3)[[0, 1, 7]]
    assert np.isnan(shapley_of(present, np.zeros(3))).tolist() == [True, True, True]
    assert np.isnan(interactions_of(present, np.zeros(3))).all()
    with pytest.raises(WaterjarError, match="values of 3 coalitions; expected 4"):
        shapley_values([0, 1, 2], 2)


def test_the_curve_of_an_ensemble_falls() -> None:
    streams, labels = random_streams(n=500, count=6)
    logits = np.stack(list(streams.values()), 1)
    curve = ensemble_curve(logits[:250], labels[:250], (logits[250:], labels[250:]))
    assert (np.diff(curve) < 0).all()  # 20 pairs and more of which 8 are looked at
    np.testing.assert_array_equal(curve, ensemble_curve(logits[:250], labels[:250], (logits[250:], labels[250:])))


def test_a_control_that_says_nothing(tmp_path: Path) -> None:
    import waterjar
    from waterjar.diagnose import collective

    streams, labels = random_streams(n=40, count=2)
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "other": ({"streams": {name: one[:30] for name, one in streams.items()}, "labels": labels[:30]}, "undefined"),
        "broken": (
            {"streams": {name: one * np.nan for name, one in streams.items()}, "labels": labels},
            "not_a_number",
        ),
        "unlabelled": ({"streams": streams}, "undefined"),
    }
    for name, (control, reason) in cases.items():
        folder = tmp_path / name
        waterjar.create_study(folder)
        waterjar.from_logits(folder / "own", streams, collective="vote", labels=labels, config={"method": "own"})
        waterjar.from_logits(folder / "control", config={"method": "control"}, **control)
        found = collective.measure(waterjar.open_study(folder), baseline="control", resamples=5)
        own = found.sel(cell=["own"])
        assert why(own, "deep_ensemble_equivalent_final") == reason


def test_odd_numbers_of_the_rest() -> None:
    one = StreamOutputs(
        ["a"], Answers(np.zeros(1, int), np.zeros((1, 1, 2)), collective=np.zeros((1, 2))), parameters=0.0
    )
    assert compute("nll_calibrated", one)[0].reason == "undefined"  # no sample is left to fit a temperature on
    assert compute("parameter_efficiency", one)[0].reason == "undefined"
    infinite = StreamOutputs(["a"], Answers(np.zeros(2, int), collective=np.full((2, 2), np.inf)))
    assert compute("ece", infinite)[0].reason == "not_a_number"
    empty = StreamOutputs(["a"], Answers(np.zeros(0, int), np.zeros((0, 1, 2)), collective=np.zeros((0, 2))))
    for name in ("emergence_ratio", "nll", "disagreement", "ece"):
        assert compute(name, empty)[0].reason == "empty_set"


def test_one_snapshot_without_an_epoch_is_not_the_start(tmp_path: Path) -> None:
    """What nobody called untrained has no value before training."""
    streams, labels = random_streams()
    found = measured(tmp_path, streams, collective="mean_logit", labels=labels)
    assert not np.isnan(found["disagreement_final"].values).any()
    assert np.isnan(found["disagreement_initial"].values).all() and why(found, "disagreement_initial") == "not_recorded"


def test_places_of_routes_are_counted(tmp_path: Path) -> None:
    """A number that is no count is refused, not made an axis of."""
    with waterjar.Recorder(tmp_path / "run", {}, eval_sets=["test"], labels={"stream": ["a"]}) as recorder:
        routes = {"route_weight": np.ones((1, 1, 4, 1, 1, 2)), "route_index": np.full((1, 1, 4, 1, 1, 2), 10**9)}
        recorder.log(epoch=1, snapshot={"streams": routes})
    with pytest.raises(WaterjarError, match="route_index goes up to 1000000000: .* fewer than 65536"):
        collective.measure(waterjar.open_run(tmp_path / "run"))
