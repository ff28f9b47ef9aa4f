"""Every setting of every family counts: with another value some number of the result is another one.

Each stands in the table below with another value, and with what must be set beside it, in both, for it to act on. What
the small study of `waterjar.testing` cannot show is recorded here (`RECORDED`). A setting that is in no table fails
`test_every_setting_is_in_a_table`: one that changes nothing anywhere is dead, and goes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import waterjar
from waterjar.diagnose.registry import families
from waterjar.diagnose.study import diagnose
from waterjar.testing import small_study


class Other(NamedTuple):
    """Another value of a setting."""

    value: Any
    beside: dict[str, Any] = {}  # noqa: RUF012 - never written to
    """Settings that have these values in both."""
    study: str = "small"
    """Which of `RECORDED`."""


ACCURACIES = ("accuracy", "macro_accuracy")
ROLES = ("shortcut_normal", "shortcut_masked", "validation")
FEW = {"n_t": 5, "layers": ["penultimate"], "eval_sets": ["t2_all"]}
"""Geometry of one layer and set, by few draws: the rest is the same at a hundred times the time."""
SIMULATED = {**FEW, "simulate_every": 1.0, "n_trials": 4}
OTHERS: dict[str, dict[str, Other]] = {
    "collective": {
        "test": Other(["t1_all"]),
        "validation": Other("t1_all", {"test": ["t2_all"]}),
        "probe_on": Other("t1_all", {"test": ["t2_all"]}),
        "rule": Other("vote"),
        "probe_ridge": Other(100.0),
        "resamples": Other(50),
        "confidence": Other(0.5),
        "resampling_seed": Other(1),
        "shapley_samples": Other(3, study="nine streams"),
        "baseline": Other("sgd"),
    },
    "continual": {
        "metric_type": Other("loss"),
        "variable": Other("macro_accuracy", study="three tasks"),
        "integrator": Other("auc"),
        "eval_sets": Other(["t1_all", "t2_shortcut_masked"]),
        "chance": Other(0.1),
        "floor_at_chance": Other(True, {"chance": 0.5}),
        "bounded": Other(False, {"chance": 0.5}, "three tasks"),
        "eps": Other(0.5, {"chance": 0.5}, "three tasks"),
        "forgetting_reference": Other("learned", study="three tasks"),
    },
    "drift": {
        "eval_sets": Other(["t1_all"]),
        "matrix": Other(2),
        "ridge": Other(100.0),
        "readout": Other("body"),
    },
    "examples": {
        "eval_sets": Other(["t1_all"]),
        "since": Other("all"),
        "learned": Other("for_good"),
        "aum_over": Other("all"),
        "mcnemar": Other("chi2"),
        "baseline": Other("sgd"),
        "confidence": Other(0.5),
    },
    "geometry": {
        "n_t": Other(6, FEW),
        "seed": Other(1, FEW),
        "manifolds": Other("task_class", {**FEW, "eval_sets": ["t1_all", "t2_all"]}),
        "eval_sets": Other(["t1_all"], FEW),
        "layers": Other(["early"], FEW),
        "subsamples": Other(2, FEW),
        "dichotomies": Other("balanced", FEW),
        "inactive": Other("active_only", FEW),
        "center": Other(True, FEW),
        "draws": Other("common", FEW),
        "simulate_every": Other(1.0, {**FEW, "n_trials": 4}),
        "n_trials": Other(5, SIMULATED),
        "bias": Other(True, SIMULATED),
    },
    "plasticity": {
        "tau": Other(0.9),
        "energy": Other(0.5),
        "eval_sets": Other(["t1_all"]),
        "buffers": Other(["body"]),
    },
    "robustness": {
        "model": Other("best_stream"),
        "control": Other("best_stream"),
        "ladder": Other("cifar_c"),
        "severity": Other("all"),
        "attack": Other("fgsm"),
        "epsilon": Other("8/255"),
    },
    "rigidity": {
        "threshold": Other(0.75),
        "window": Other(1),
        "variable": Other("accuracy", study="ten seeds"),
        "checkpoint": Other("last", study="ten seeds"),
        "baseline": Other("sgd"),
        "eval_sets": Other({"normal": "t2_all"}),
        "thresholds": Other([0.5, 0.6]),
        "margin": Other(0.5),
        "confidence": Other(0.5),
        "power": Other(0.5),
        "chance": Other(0.1),
        "composite": Other(True),
        "weights": Other([0.1, 0.1, 0.8], {"composite": True}),
        "rng_seed": Other(5, study="ten seeds"),
    },
}
EXCEPTIONS: dict[str, str] = {}
"""`family.setting` -> why no number hangs on it."""


def _noisy(folder: Path, runs: Sequence[dict[str, Any]], tasks: Sequence[str], sets: dict[str, int]) -> None:
    """Accuracies that rise and fall at random, others by each name, below chance here and there."""
    rng = np.random.default_rng(0)
    for i, config in enumerate(runs):
        about = {"seeds": [config["seed"]], "eval_sets": sets, "tasks": tasks, "classes": ["a", "b", "c"]}
        with waterjar.Recorder(folder / f"run{i}", config, **about) as recorder:
            for task in tasks if config["scenario"] == "sequential" else tasks[-1:]:
                for epoch in range(6):
                    both = {name: dict(zip(sets, rng.random(len(sets)), strict=True)) for name in ACCURACIES}
                    recorder.log(train_task=task, epoch=epoch, performance=both)


def _three_tasks(folder: Path) -> None:
    """In the third, an accuracy may fall from a best that is not the one that was learned."""
    runs = [{"scenario": "sequential", "method": "sgd", "seed": seed} for seed in range(6)]
    _noisy(folder, runs, ["a", "b", "c"], {"a": 0, "b": 1, "c": 2})


def _ten_seeds(folder: Path) -> None:
    """From ten on the mean of AD is bootstrapped; the best evaluation is not the last one."""
    waterjar.create_study(folder, {"analysis": {"baseline": "scratch_t2"}})
    cells = {"scratch_t2": "scratch_t2", "sequential": "sgd"}
    runs = [{"scenario": one, "method": name, "seed": seed} for one, name in cells.items() for seed in range(10)]
    _noisy(folder, runs, ["t1", "t2"], {f"t2_{kind}": 1 for kind in ROLES})


def _nine_streams(folder: Path) -> None:
    """From nine on Shapley values are made of sampled orders of the streams."""
    rng = np.random.default_rng(0)
    streams = {f"s{i}": rng.normal(size=(12, 3)) for i in range(9)}
    waterjar.from_logits(folder / "run", streams, collective="mean_probability", labels=rng.integers(3, size=12))


RECORDED: dict[str, Callable[[Path], Any]] = {
    "small": functools.partial(small_study, seeds=(1, 2)),
    "three tasks": _three_tasks,
    "ten seeds": _ten_seeds,
    "nine streams": _nine_streams,
}
Measured = Callable[[str, str, dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Study, family and settings -> all that the result holds."""
    folders: dict[str, Path] = {}
    known: dict[str, dict[str, Any]] = {}

    def of(study: str, family: str, settings: dict[str, Any]) -> dict[str, Any]:
        key = json.dumps([study, family, settings])
        if key not in known:
            known[key] = measure(study, family, settings)
        return known[key]

    def measure(study: str, family: str, settings: dict[str, Any]) -> dict[str, Any]:
        if study not in folders:
            folders[study] = tmp_path_factory.mktemp(study)
            RECORDED[study](folders[study])
        found = diagnose(waterjar.open_study(folders[study]), only=[family], settings={family: settings})
        return {str(name): one.values for name, one in found.results[family].variables.items()}

    return of


def differ(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Variables that are not the same, or that only one of them has."""
    found = sorted(one.keys() ^ other.keys())
    for name in one.keys() & other.keys():
        a, b = np.asarray(one[name]), np.asarray(other[name])
        if not np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f"):
            found.append(name)
    return found


def test_every_setting_is_in_a_table() -> None:
    there = {f"{name}.{key}" for name, family in families().items() for key in family.defaults}
    tried = {f"{name}.{key}" for name, settings in OTHERS.items() for key in settings}
    assert there - tried - EXCEPTIONS.keys() == set(), "a setting that nobody tries: does it change anything?"
    assert tried | EXCEPTIONS.keys() <= there and not tried & EXCEPTIONS.keys()


@pytest.mark.parametrize(("family", "setting"), [(name, key) for name, own in OTHERS.items() for key in own])
def test_another_value_gives_other_numbers(family: str, setting: str, measured: Measured) -> None:
    value, beside, study = OTHERS[family][setting]
    usual, found = (measured(study, family, settings) for settings in (beside, {**beside, setting: value}))
    assert differ(usual, found), f"{family}.{setting} = {value!r} changes no number"


@pytest.mark.parametrize("family", [name for name in OTHERS if OTHERS[name]])
def test_the_same_settings_give_the_same_numbers(family: str, measured: Measured, tmp_path: Path) -> None:
    """Without that, other numbers would mean nothing."""
    settings = FEW if family == "geometry" else {}
    study = small_study(tmp_path, seeds=(1, 2))
    again = diagnose(study, only=[family], settings={family: settings}).results[family]
    found = {str(name): one.values for name, one in again.variables.items()}
    assert set(differ(measured("small", family, settings), found)) <= {"cell_id"}
