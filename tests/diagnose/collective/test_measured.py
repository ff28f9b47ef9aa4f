"""The family as a whole: directions, what stands beside, what is kept, and a study with its control."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from diagnose.collective.by_hand import random_streams, sure_of
from waterjar.diagnose import collective
from waterjar.diagnose.collective import Affinities, Course, Routing, StreamOutputs
from waterjar.diagnose.collective.answers import Answers
from waterjar.diagnose.collective.inputs import Control
from waterjar.diagnose.registry import families
from waterjar.diagnose.result import UNDEFINED, Result
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.testing.contract import _check_direction

LABELS = np.arange(60) % 3
DIRECTED = sorted(name for name, one in families()["collective"].metrics.items() if one.direction != "none")


def outputs(good: float) -> StreamOutputs:
    """A collective that is right in a share of the samples, with streams that are in half of that."""
    known, half = (np.arange(60) < share * 60 for share in (good, good / 2))
    whole = sure_of(np.where(known, LABELS, (LABELS + 1) % 3), 3, 2.0)
    streams = np.stack([sure_of(np.where(half, LABELS, (LABELS + i) % 3), 3, 2.0) for i in (1, 2)], 1)
    weak = np.stack([sure_of(np.where(np.arange(60) < 12, LABELS, (LABELS + 1) % 3), 3, 2.0)] * 2, 1)
    test = Answers(LABELS, streams if good < 1 else weak, weak, whole, np.random.default_rng(0).normal(size=(60, 2, 4)))
    return StreamOutputs(["a", "b"], test, parameters=1e6, control=Control(np.array([9.0, 1.0, 0.01])))


def inputs(metric: str) -> tuple[Any, Any]:
    """A better and a worse input of a metric."""
    if metric == "load_imbalance":
        weights, even = np.ones((4, 1, 1, 1)), np.arange(4).reshape(4, 1, 1, 1)
        return Routing(["a"], weights, even, None, 4), Routing(["a"], weights, 0 * even, None, 4)
    if metric == "dead_anchors":
        return Affinities(["a"], np.ones((1, 1, 3))), Affinities(["a"], np.array([[[1.0, 1.0, 0.0]]]))
    if metric == "emergence_plateau":
        epochs, none = np.arange(5.0), Result.of(np.full(5, np.nan), 1)
        flat, steep = Result.of([1.0, 2, 3, 3, 3]), Result.of([1.0, 1, 1, 1, 3])
        return Course(epochs, flat, none), Course(epochs, steep, none)
    if metric == "oracle_accuracy":
        return outputs(0.9), outputs(0.2)
    return outputs(1.0), outputs(0.6)


@pytest.mark.parametrize("name", DIRECTED)
def test_directions(name: str) -> None:
    family = families()["collective"]
    better, worse = inputs(name)
    _check_direction(family.metrics[name], family.settings({"resamples": 10}), better, worse)


@pytest.fixture
def study(tmp_path: Path) -> waterjar.Study:
    """An ensemble as the control, and a collective of three streams that is better than their mean."""
    waterjar.create_study(tmp_path / "study")
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=150)
    for seed in (1, 2, 3):
        for method, count in (("ensemble", 4), ("collective", 3)):
            streams = {
                f"s{i}": np.stack([rng.normal(size=(150, 4)) + level * np.eye(4)[labels] for level in (0.0, 1.2)])
                for i in range(count)
            }
            whole = np.mean(list(streams.values()), axis=0) * 2 if method == "collective" else "mean_probability"
            waterjar.from_logits(
                tmp_path / "study" / f"{method}-{seed}", streams, collective=whole, labels=labels, epochs=[0, 3],
                config={"method": method, "seed": seed}, parameters=count * 1000,
                fingerprints={name: rng.normal(size=(2, 8)) for name in streams},
            )  # fmt: skip
    return waterjar.open_study(tmp_path / "study")


def test_a_study_beside_its_control(study: waterjar.Study) -> None:
    found = collective.measure(study, baseline="ensemble", resamples=50)
    assert found["collective_baseline"].values.tolist() == ["ensemble", "ensemble"]
    assert found.sizes["stream"] == 4 and found.sizes["seed"] == 3  # one stream more in one of the cells
    equivalent = found["deep_ensemble_equivalent_final"].sel(cell=["collective"])
    assert np.isfinite(equivalent.values).any()
    rise = found["emergence_ratio_final"].values - found["emergence_ratio_initial"].values
    np.testing.assert_allclose(rise, found["emergence_rise"].values)
    assert all(" over 3 seeds" in text for text in found["collective_course"].values.tolist())
    alone = collective.measure(study, baseline=None, resamples=50)
    assert np.isnan(alone["deep_ensemble_equivalent_final"].values).all()
    np.testing.assert_array_equal(alone["nll"].values, found["nll"].values)


def test_what_is_kept_is_what_was_measured(study: waterjar.Study) -> None:
    settings = {"collective": {"baseline": "ensemble", "resamples": 50}}
    first = diagnose(study, only=["collective"], settings=settings).results["collective"]
    again = diagnose(waterjar.open_study(study.path), only=["collective"], settings=settings).results["collective"]
    for name in first.data_vars:
        one, other = first[name].values, again[name].values
        np.testing.assert_array_equal(one, other, err_msg=str(name))


def test_the_same_seed_gives_the_same_bits(tmp_path: Path) -> None:
    streams, labels = random_streams(count=9, n=60)
    run = waterjar.from_logits(tmp_path / "run", streams, collective="mean_probability", labels=labels)
    one, same, other = (
        collective.measure(run, resamples=30, shapley_samples=4, resampling_seed=seed) for seed in (1, 1, 2)
    )
    for name in ("emergence_ratio_low", "nll_calibrated", "shapley_accuracy"):
        np.testing.assert_array_equal(one[name].values, same[name].values)
    assert not np.array_equal(one["shapley_accuracy"].values, other["shapley_accuracy"].values, equal_nan=True)


def test_recorded_probabilities_in_halves_are_told_by_their_rule(tmp_path: Path) -> None:
    """What was stored with few digits is still known as the mean of its streams."""
    streams, labels = random_streams()
    half = {name: one.astype(np.float16) for name, one in streams.items()}
    whole = np.log(
        np.mean([np.exp(one - np.log(np.exp(one).sum(1, keepdims=True))) for one in streams.values()], axis=0)
    )
    run = waterjar.from_logits(tmp_path / "run", half, collective=whole.astype(np.float16), labels=labels)
    found = collective.measure(run, resamples=10)
    assert not np.isnan(found["shapley_accuracy"].values[0, 0, 0]).any()


def several(folder: Path, runs: list[tuple[str, int, dict[str, np.ndarray]]], labels: np.ndarray) -> waterjar.Study:
    waterjar.create_study(folder)
    for method, seed, streams in runs:
        waterjar.from_logits(
            folder / f"{method}-{seed}", streams, collective="mean_probability", labels=labels,
            config={"method": method, "seed": seed}, fingerprints={name: one[0] for name, one in streams.items()},
        )  # fmt: skip
    return waterjar.open_study(folder)


def test_streams_in_another_order_are_matched_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=60)
    first, other = ({name: rng.normal(size=(60, 3)) + np.eye(3)[labels] for name in "pqr"} for _ in range(2))
    turned = {name: other[name] for name in "rpq"}
    same = collective.measure(several(tmp_path / "a", [("m", 0, first), ("m", 1, other)], labels), resamples=20)
    found = collective.measure(several(tmp_path / "b", [("m", 0, first), ("m", 1, turned)], labels), resamples=20)
    assert found["stream"].values.tolist() == ["p", "q", "r"]
    for name in ("individual_accuracy", "shapley_accuracy", "interaction", "fingerprint_similarity", "emergence_ratio"):
        np.testing.assert_allclose(found[name].values, same[name].values, atol=1e-12)


def test_a_cell_whose_seeds_differ_costs_only_itself(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=60)
    make = lambda names: {name: rng.normal(size=(60, 3)) + np.eye(3)[labels] for name in names}  # noqa: E731
    runs = [("good", 0, make("pq")), ("good", 1, make("pq")), ("bad", 0, make("pr")), ("bad", 1, make("ps"))]
    found = collective.measure(several(tmp_path / "study", runs, labels), resamples=20)
    by_name = {str(name): found.isel(cell=i) for i, name in enumerate(found["cell"].values)}
    assert np.isfinite(by_name["good"]["emergence_ratio_final"]).all()
    assert str(by_name["good"]["collective_remarks"].item()) == ""
    assert np.isnan(by_name["bad"]["emergence_ratio"]).all()
    assert (by_name["bad"]["emergence_ratio_reason"] == UNDEFINED).all()
    assert "bad-1 has the streams p, s, bad-0, a run of the same cell, p, r" in str(
        by_name["bad"]["collective_remarks"].item()
    )


def test_recorded_coalitions_of_streams_in_another_order(tmp_path: Path) -> None:
    """The bits of their names follow."""
    labels = np.arange(16) % 2
    right = np.stack([labels == 0, labels >= 0, labels >= 0], -1)  # with b alone, with a alone, with both
    waterjar.create_study(tmp_path)
    for seed, names in enumerate((["a", "b"], ["b", "a"])):
        coalitions = (
            ["removed:01", "removed:10", "removed:11"] if seed == 0 else ["removed:10", "removed:01", "removed:11"]
        )
        given = {"stream": names, "coalition": coalitions}
        with waterjar.Recorder(
            tmp_path / f"run-{seed}", {"seed": seed}, seeds=[seed], eval_sets=["test"], labels=given
        ) as recorder:
            recorder.once("probe_samples", label=labels[None, None])
            shot = {"collective_logits": 5.0 * np.eye(2)[labels], "coalition_correct": right,
                    "logits": np.zeros((16, 2, 2))}  # fmt: skip
            recorder.log(epoch=1, snapshot={"streams": {key: one[None, None] for key, one in shot.items()}})
    found = collective.measure(waterjar.open_study(tmp_path), resamples=5)
    shares = found["shapley_accuracy"].sel(absence="removed").squeeze()
    np.testing.assert_allclose(shares.values, [[0.5, 0.0]] * 2)


def test_history_under_the_seeds_keys(tmp_path: Path) -> None:
    streams, labels = random_streams(count=2)
    run = waterjar.from_logits(
        tmp_path / "run", {name: np.stack([one, 2 * one]) for name, one in streams.items()},
        collective="mean_probability", labels=labels, epochs=[0, 1],
    )  # fmt: skip
    found = collective.measure(run, resamples=5)
    told = collective.history(found)
    assert list(told) == ["emergence", "collective_acc", "individual_accs"]
    assert told["collective_acc"] == found["collective_accuracy"].values[0].tolist() and len(told["emergence"]) == 2
    assert [list(one) for one in told["individual_accs"]] == [list(streams)] * 2
    with pytest.raises(WaterjarError, match="repeat=1: expected 0 to 0"):
        collective.history(found, 1)
    with pytest.raises(WaterjarError, match="found lacks emergence_ratio"):
        collective.history(found.drop_vars("emergence_ratio"))
