"""plastic_analysis_{dataset}.pkl: what is written, and read back."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from run.formats.binary_runs import record
from waterjar.diagnose import plasticity
from waterjar.diagnose.plasticity.export import NAMES, history, read_pickle, write_pickle
from waterjar.errors import WaterjarError

T, L, R = 3, 2, 2


@pytest.fixture
def run(tmp_path: Path) -> waterjar.Run:
    return record(tmp_path / "run", tasks=T, logged=L, repeats=R, layers=("early", "late"), zero_each_task=True)


def test_keys_shapes_and_values(run: waterjar.Run, tmp_path: Path) -> None:
    result = plasticity.measure(run)
    file = write_pickle(result, tmp_path / "out", "glyphs", layer="early")
    assert file.name == "plastic_analysis_glyphs.pkl"
    found = pickle.loads(file.read_bytes())  # noqa: S301 - written one line above
    assert list(found) == ["history", "task_boundaries"]
    assert list(found["history"]) == list(NAMES)
    for key, name in NAMES.items():
        values = found["history"][key]
        assert values.shape == (T * L, R) and values.dtype == np.float64
        own = result[name].sel(layer="early") if "layer" in result[name].dims else result[name]
        trained = [1, 2, 4, 5, 7, 8]  # of each task, without its epoch 0
        np.testing.assert_array_equal(values, own.transpose("repeat", "snapshot").values[:, trained].T)
    assert found["task_boundaries"] == [10, 20, 30]
    assert all(type(epoch) is int for epoch in found["task_boundaries"])
    assert b"numpy._core" not in file.read_bytes()
    assert sorted(p.name for p in file.parent.iterdir()) == [file.name]


def test_it_comes_back(run: waterjar.Run, tmp_path: Path) -> None:
    result = plasticity.measure(run)
    found = read_pickle(write_pickle(result, tmp_path, "x", layer="late"))
    trained = result.sel(layer="late").isel(snapshot=np.flatnonzero(result["epoch"].values > 0))
    for name in NAMES.values():
        np.testing.assert_array_equal(found[name].values, trained[name].transpose("repeat", "snapshot").values)
        assert found[name].attrs["direction"] == result[name].attrs["direction"]
    for name in ("total_epoch", "task_end", "train_task_index"):
        np.testing.assert_array_equal(found[name].values, trained[name].values)


def test_one_layer_must_be_named(run: waterjar.Run, tmp_path: Path) -> None:
    result = plasticity.measure(run)
    with pytest.raises(WaterjarError, match="one of early, late"):
        history(result)
    with pytest.raises(WaterjarError, match="did you mean 'late'"):
        history(result, layer="lat")
    with pytest.raises(WaterjarError, match="measure\\(run\\)"):
        history(result.swap_dims(repeat="seed"))
    one = history(plasticity.measure(record(tmp_path / "one", weights=False)))["history"]
    assert np.isnan(one["Weight Magnitude"]).all() and np.isfinite(one["Feature Norm"]).all()
    none = history(plasticity.measure(record(tmp_path / "none", features=False)))["history"]
    assert np.isnan(none["Stable Rank"]).all() and none["Stable Rank"].shape == (6, 2)
    half = history(plasticity.measure(record(tmp_path / "half", frequency=0.25)))
    assert half["task_boundaries"] == [0.5, 1, 1.5]


GOOD: dict[str, Any] = {"history": {key: np.ones((4, 2)) for key in NAMES}, "task_boundaries": [10, 20]}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"history": [1]}, "has no dictionary 'history'"),
        ({"history": {"Stable Rank": np.ones((4, 2))}}, "has no 'Dormant Neurons \\(Ratio\\)'"),
        ({"history": {**GOOD["history"], "Stable Rank": np.ones((3, 2))}}, "arrays of different shapes"),
        ({"history": {**GOOD["history"], "Stable Rank": np.ones(4)}}, "'Stable Rank' is not an array"),
        ({"history": {**GOOD["history"], "Stable Rank": [[1], [1, 2]]}}, "'Stable Rank' is not an array of numbers"),
        ({"task_boundaries": [10, 20, 30]}, "4 steps and the task_boundaries"),
        ({"task_boundaries": [20, 10]}, "4 steps and the task_boundaries"),
        ({"task_boundaries": [0, 10]}, "4 steps and the task_boundaries"),
        ({"task_boundaries": np.array([])}, "4 steps and the task_boundaries"),
        ({"task_boundaries": "x"}, "'task_boundaries' is not an array"),
    ],
)  # fmt: skip
def test_damaged_files(tmp_path: Path, changed: dict[str, Any], why: str) -> None:
    file = tmp_path / "x.pkl"
    file.write_bytes(pickle.dumps(GOOD))
    assert read_pickle(file).sizes == {"repeat": 2, "snapshot": 4}
    file.write_bytes(pickle.dumps({**GOOD, **changed}))
    with pytest.raises(WaterjarError, match=f"x.pkl.*{why}"):
        read_pickle(file)


def test_hostile_unreadable_and_unwritable_files(run: waterjar.Run, tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return os.system, ("true",)

    (tmp_path / "x.pkl").write_bytes(pickle.dumps({"history": Hostile()}))
    with pytest.raises(WaterjarError, match=r"x.pkl asks for posix.system"):
        read_pickle(tmp_path / "x.pkl")
    with pytest.raises(WaterjarError, match=r"could not read .*nowhere.pkl"):
        read_pickle(tmp_path / "nowhere.pkl")
    (tmp_path / "plastic_analysis_y.pkl").mkdir()
    with pytest.raises(WaterjarError, match=r"could not write .*plastic_analysis_y.pkl"):
        write_pickle(plasticity.measure(run), tmp_path, "y", layer="late")
    with pytest.raises(WaterjarError, match="could not write"):
        write_pickle(plasticity.measure(run), tmp_path / "x.pkl", "y", layer="late")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plastic_analysis_y.pkl", "run", "x.pkl"]
