"""Settings: whatever is wrong with one, a single error names it; numbers of numpy are numbers."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import waterjar
from diagnose.rigidity.einstellung_runs import write_run
from diagnose.rigidity.test_measure import BASELINE, learner
from waterjar import WaterjarError
from waterjar.diagnose import rigidity
from waterjar.diagnose.registry import families

NAN = float("nan")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("settings")
    for seed in (1, 2):
        write_run(folder, "scratch_t2", "sgd", seed, BASELINE)
        write_run(folder, "sequential", "derpp", seed, learner(seed))
    return waterjar.open_study(folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"checkpoint": "bset"}, "did you mean 'best'"),
        ({"weights": [1, 2]}, "one each of AD, PD and SFR_rel"),
        ({"thresholds": []}, "thresholds.*expected accuracies"),
        ({"thresholds": [0.5, 2]}, r"setting 'thresholds' is \[0.5, 2\]: expected accuracies in \(0, 1\], each once"),
        ({"thresholds": [0.5, "x"]}, r"setting 'thresholds' is \[0.5, 'x'\]"),
        ({"thresholds": [0.5, 0.6, 0.5]}, "each once"),
        ({"variable": "macro"}, "did you mean 'macro_accuracy'"),
        ({"eval_sets": {"nromal": "x"}}, "with the roles normal, masked"),
        ({"eval_sets": {"normal": "elsewhere"}}, r"not evaluated on 'elsewhere' \(normal\)"),
        ({"eval_sets": {"normal": 3}}, "setting 'eval_sets' is {'normal': 3}"),
        ({"baseline": "scrtach"}, "baseline 'scrtach' is unknown"),
        ({"confidence": 0.1}, "power=0.8: expected a number between 0.9 and 1"),
    ],
)
def test_wrong_settings_are_errors(study: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        rigidity.measure(study, **settings)


DATE = datetime.date(2020, 1, 1)
NO_NUMBERS = [
    "abc",
    "0.6",
    "5e-1",
    "2020-01-01",
    True,
    np.True_,
    DATE,
    [0.5],
    np.array([0.5]),
    None,
    {},
    NAN,
    1j,
    10**400,
]
WRONG = {
    "threshold": [*NO_NUMBERS, 0, -0.1, 1.01, 60, float("inf")],
    "window": ["3", 0, -1, 1.5, 3.0, True, None, [3], NAN],
    "variable": [[1], 3, None, DATE, np.array(["a", "b"])],
    "checkpoint": [["best"], 3, None, np.array(["best", "last"])],
    "baseline": [3, ["scratch_t2"], True, DATE, np.array(["a", "b"])],
    "eval_sets": [3, "abc", ["normal"], True],
    "thresholds": [5, "abc", None, {0.5: 1}, np.array(0.5), np.array([[0.5]]), [[0.5]], [True], [DATE]],
    "margin": [*NO_NUMBERS, -0.1, 1.5, float("inf")],
    "confidence": [*NO_NUMBERS, 0, 1, 2, 95, -1],
    "power": [*NO_NUMBERS, 0, 1, 0.05, 80],
    "chance": ["abc", -0.1, 1.0, 1, True, ["x"], [0.5, 2], NAN],
    "composite": ["maybe", "yes", 1, 0, None, [True]],
    "weights": [3, "abc", None, [1, 2], [1, 2, 3, 4], [1, 2, "x"], [1, 2, NAN], [1, 2, float("inf")], np.eye(3)],
    "rng_seed": ["abc", -1, 1.5, True, None, [1]],
}


def test_every_setting_is_tried() -> None:
    assert WRONG.keys() == families()["rigidity"].defaults.keys()


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_what_is_of_another_kind_is_one_error(study: Any, name: str, value: Any) -> None:
    with pytest.raises(WaterjarError, match=rf"^rigidity: (setting ')?{name}\b.*"):
        rigidity.measure(study, **{name: value})


@pytest.mark.parametrize(
    ("numpy", "plain"),
    [
        ({"window": np.int64(2)}, {"window": 2}),
        ({"threshold": np.float32(0.6)}, {"threshold": 0.6}),
        ({"threshold": np.array(0.5)}, {"threshold": 0.5}),
        ({"thresholds": np.array([0.3, 0.5])}, {"thresholds": (0.3, 0.5)}),
        ({"thresholds": np.array([0.3, 0.6], np.float32)}, {"thresholds": [0.3, 0.6]}),
        ({"confidence": np.float64(0.9), "power": np.float16(0.5)}, {"confidence": 0.9, "power": 0.5}),
        ({"weights": np.array([1, 2, 3]), "composite": np.True_}, {"weights": [1, 2, 3], "composite": True}),
        ({"rng_seed": np.uint8(4), "margin": np.int32(0)}, {"rng_seed": 4, "margin": 0}),
        ({"eval_sets": {"clean": np.str_("t1_all")}}, {"eval_sets": {"clean": "t1_all"}}),
    ],
)
def test_numbers_of_numpy_are_numbers(study: Any, numpy: dict[str, Any], plain: dict[str, Any]) -> None:
    found = rigidity.measure(study, **numpy)
    xr.testing.assert_identical(found, rigidity.measure(study, **plain))
    kept = json.loads(found.attrs["settings"])
    for name, value in plain.items():
        assert kept[name] == (list(value) if isinstance(value, tuple) else value)


def test_a_path_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match="open_study"):
        rigidity.measure(tmp_path)  # type: ignore[arg-type]


def test_the_array_functions_refuse_too() -> None:
    wrong: Any
    for wrong in ({}, 3, []):
        with pytest.raises(WaterjarError, match="an accuracy for each group"):
            rigidity.worst_group_accuracy(wrong)
    with pytest.raises(WaterjarError, match="budget='ten'"):
        rigidity.rigidity_composite(1, 0.1, 0.1, budget="ten")  # type: ignore[arg-type]
    with pytest.raises(WaterjarError, match="weights=3"):
        rigidity.rigidity_composite(1, 0.1, 0.1, budget=10, weights=3)  # type: ignore[arg-type]
    with pytest.raises(WaterjarError, match="margin='abc'"):
        rigidity.rigidity_pattern(*[rigidity.Bounds(0, 1)] * 3, margin="abc")  # type: ignore[arg-type]
    with pytest.raises(WaterjarError, match="confidence='abc'"):
        rigidity.export(xr.Dataset(), confidence="abc")  # type: ignore[arg-type]
    with pytest.raises(WaterjarError, match="threshold=True"):
        rigidity.adaptation_delay([0.1], threshold=True)
