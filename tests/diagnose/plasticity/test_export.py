"""plastic_analysis_{dataset}.pkl: what is in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import waterjar
from run.formats.binary_runs import record
from waterjar.diagnose import plasticity
from waterjar.diagnose.plasticity.export import NAMES, file_name, history
from waterjar.errors import WaterjarError

T, L, R = 3, 2, 2


@pytest.fixture
def run(tmp_path: Path) -> waterjar.Run:
    return record(tmp_path / "run", tasks=T, logged=L, repeats=R, layers=("early", "late"), zero_each_task=True)


def test_keys_shapes_and_values(run: waterjar.Run) -> None:
    result = plasticity.measure(run)
    assert file_name("glyphs") == "plastic_analysis_glyphs.pkl"
    found = history(result, layer="early")
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
