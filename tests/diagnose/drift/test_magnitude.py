"""Comparisons do not depend on scale, however extreme; what cannot be compared is refused in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from waterjar.diagnose import drift, plasticity
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((20, 6)), RNG.standard_normal((20, 5))
WIDE = RNG.standard_normal((12, 30))
LABELS = np.arange(20) % 3
READOUT = RNG.standard_normal((3, 6))
MEASURES: dict[str, Callable[[float], Result]] = {
    "cka": lambda s: drift.linear_cka(A * s, B * s),
    "cka of one": lambda s: drift.linear_cka(A * s, B),
    "cka, biased": lambda s: drift.linear_cka(A * s, B * s, debiased=False),
    "cka, wide": lambda s: drift.linear_cka(WIDE * s, WIDE**2),
    "procrustes": lambda s: drift.procrustes_distance(A * s, B * s),
    "procrustes, wide": lambda s: drift.procrustes_distance(WIDE * s, WIDE**2 * s),
    "participation": lambda s: drift.participation_ratio(A * s),
    "nc1": lambda s: drift.within_class_variability(A * s, LABELS),
    "nc2": lambda s: drift.equinorm(A * s, LABELS),
    "angles": lambda s: drift.equiangularity(A * s, LABELS),
    "largest angle": lambda s: drift.maximal_angle(A * s, LABELS),
    "nc3": lambda s: drift.self_duality(A * s, LABELS, READOUT),
    "nc3 of weights": lambda s: drift.self_duality(A, LABELS, READOUT * s),
    "nc4": lambda s: drift.nearest_mean_mismatch(A * s, LABELS, READOUT, np.zeros(3)),
    "nc4 and bias": lambda s: drift.nearest_mean_mismatch(A * s, LABELS, READOUT, np.array([0.5, 0.0, -1.0]) * s),
    "probe": lambda s: drift.linear_probe_accuracy(A * s, LABELS),
    "probe, wide": lambda s: drift.linear_probe_accuracy(WIDE * s, np.arange(12) % 2),
}


@pytest.mark.parametrize("scale", [1e-300, 1e-155, 1e-100, 1e-78, 1e78, 1e155, 1e160, 1e300, 2.0**1020])
@pytest.mark.parametrize("name", MEASURES)
def test_any_scale(name: str, scale: float) -> None:
    assert float(MEASURES[name](scale)) == pytest.approx(float(MEASURES[name](1.0)), rel=1e-9)


def test_scores_that_overflow() -> None:
    most = np.full((3, 6), np.finfo(np.float64).max)
    assert drift.nearest_mean_mismatch(np.abs(A) + 1.0, LABELS, most, np.zeros(3)).reason == "not_a_number"


def test_a_large_constant_beside_a_small_difference() -> None:
    features = np.c_[np.full(20, 1e150), A * 1e-120]
    assert float(drift.participation_ratio(features)) == pytest.approx(float(drift.participation_ratio(A)))


@pytest.mark.parametrize("labels", [LABELS.astype(str), LABELS.astype(float)])
def test_labels_that_are_no_rows(labels: np.ndarray) -> None:
    with pytest.raises(WaterjarError, match="whole numbers, rows of the readout"):
        drift.self_duality(A, labels, READOUT)
    with pytest.raises(WaterjarError, match="whole numbers, rows of the readout"):
        drift.nearest_mean_mismatch(A, labels, READOUT, np.zeros(3))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (LABELS.astype(object), "dtype object"),
        (np.where(LABELS == 0, np.nan, LABELS), "labels are NaN"),
        (LABELS[:5], "labels have shape"),
    ],
)
def test_labels_that_are_none(labels: np.ndarray, words: str) -> None:
    with pytest.raises(WaterjarError, match=words):
        drift.within_class_variability(A, labels)
    with pytest.raises(WaterjarError, match=words):
        drift.linear_probe_accuracy(A, labels)


@pytest.mark.parametrize("weights", [READOUT[:, :4], READOUT[0], READOUT.astype(str), READOUT[None]])
def test_weights_of_another_width(weights: np.ndarray) -> None:
    for labels in (LABELS, np.zeros(20, int)):  # also where the answer would be undefined
        with pytest.raises(WaterjarError, match="6 units as the features have"):
            drift.self_duality(A, labels, weights)
        with pytest.raises(WaterjarError, match="6 units as the features have"):
            drift.nearest_mean_mismatch(A, labels, weights, np.zeros(3))
    with pytest.raises(WaterjarError, match="bias has shape"):
        drift.nearest_mean_mismatch(A, LABELS, READOUT, np.zeros(2))


def test_true_and_false_are_rows_one_and_zero() -> None:
    two = LABELS > 0
    expected = drift.self_duality(A, two.astype(int), READOUT)
    assert float(drift.self_duality(A, two, READOUT)) == float(expected)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Run:
    path: Path = tmp_path_factory.mktemp("settings") / "run"
    with waterjar.Recorder(path, {}, seeds=[1], eval_sets={"a": 0, "b": 0}, tasks=1) as recorder:
        recorder.once("probe_samples", label=np.tile(np.arange(6) % 2, (1, 2, 1)))
        for epoch in range(3):
            shot = {"features": {"one": RNG.standard_normal((1, 2, 6, 4))}}
            recorder.log(epoch=epoch, train_task=0, performance={"accuracy": np.ones((2, 1))}, snapshot=shot)
    return waterjar.open_run(path)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        (drift, {"matrix": -1}),
        (drift, {"matrix": 1.5}),
        (drift, {"matrix": True}),
        (drift, {"matrix": "many"}),
        (drift, {"ridge": 0}),
        (drift, {"ridge": math.nan}),
        (drift, {"ridge": "little"}),
        (drift, {"ridge": math.inf}),
        (drift, {"readout": 3}),
        (drift, {"eval_sets": []}),
        (drift, {"eval_sets": ["b", "b"]}),
        (drift, {"eval_sets": ["c"]}),
        (plasticity, {"eval_sets": []}),
        (plasticity, {"eval_sets": ["a", "a"]}),
        (plasticity, {"eval_sets": 1}),
        (plasticity, {"tau": "x"}),
        (plasticity, {"tau": math.nan}),
        (plasticity, {"energy": 1}),
        (plasticity, {"buffers": "running_mean"}),
    ],
)
def test_settings_that_cannot_be_meant(run: waterjar.Run, family: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(WaterjarError, match=next(iter(settings))):
        family.measure(run, **settings)


@pytest.mark.parametrize("matrix", [0, 1, 2, np.int64(3), 100])
def test_any_count_of_snapshots(run: waterjar.Run, matrix: int) -> None:
    found = drift.measure(run, matrix=matrix)
    assert found.sizes.get("moment", 0) == min(matrix, 3)
