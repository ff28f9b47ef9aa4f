"""manifold_metrics.pkl: what is written, and read back."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from run.formats.binary_runs import record
from waterjar.diagnose import geometry
from waterjar.diagnose.geometry.export import APPROXIMATE, NAMES, manifold_metrics, read_pickle, write_pickle
from waterjar.errors import WaterjarError

T, L, R = 2, 2, 2


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    run = record(tmp_path_factory.mktemp("geometry") / "run", tasks=T, logged=L, repeats=R, samples=4, units=24)
    return geometry.measure(run, n_t=10, simulate_every=10, n_trials=10)


def test_keys_shapes_and_values(result: xr.Dataset, tmp_path: Path) -> None:
    file = write_pickle(result, tmp_path)
    assert file.name == "manifold_metrics.pkl"
    found = pickle.loads(file.read_bytes())  # noqa: S301 - written one line above
    assert list(found) == ["task_000", "task_001"]
    for t, part in enumerate(found.values()):
        assert list(part) == [
            "Capacity", "Radius", "Dimension", "Center_Alignment", "Axis_Alignment", "Center_Axis_Alignment",
            "Simulated_Capacity", "Capacity_Relative_Error", "Capacity_Approx",
        ]  # fmt: skip
        for key, name in {**NAMES, **APPROXIMATE}.items():
            assert part[key].shape == (L, R)
            np.testing.assert_array_equal(part[key].T, result[name].values[:, 1 + t * L : 1 + (t + 1) * L, 0])
        simulated, exact = part["Simulated_Capacity"], part["Capacity"]
        assert np.isnan(simulated[0]).all() and np.isfinite(simulated[1]).all()  # every ten epochs
        np.testing.assert_allclose(part["Capacity_Relative_Error"][1], abs(simulated[1] - exact[1]) / exact[1])
        np.testing.assert_allclose(part["Capacity_Approx"], (1 + part["Radius"] ** -2) / part["Dimension"])


def test_it_comes_back(result: xr.Dataset, tmp_path: Path) -> None:
    found = read_pickle(write_pickle(result, tmp_path))
    for name in {**NAMES, **APPROXIMATE}.values():
        np.testing.assert_array_equal(found[name].values, result[name].values[:, 1:, 0])
    assert found["train_task_index"].values.tolist() == [0, 0, 1, 1]
    assert found["task_end"].values.tolist() == [False, True, False, True]
    assert found["capacity"].attrs["direction"] == "higher"


def test_joint_training_and_studies_are_refused(result: xr.Dataset) -> None:
    with pytest.raises(WaterjarError, match="joint training"):
        manifold_metrics(result.assign_coords(train_task_index=("snapshot", [-1] * 5)))
    with pytest.raises(WaterjarError, match="measure\\(run\\)"):
        manifold_metrics(result.swap_dims(repeat="seed"))
    with pytest.raises(WaterjarError, match="did you mean 'penultimate'"):
        manifold_metrics(result, layer="penult")


PART = {key: np.ones((3, 2)) for key in NAMES}


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        ({}, "has the keys"),
        ({"task_001": PART}, "has the keys \\['task_001'\\]"),
        ({"task_000": PART, "other": PART}, "has the keys \\['other'\\]"),
        ({"task_000": 3}, "has no dictionary 'task_000'"),
        ({"task_000": {"Capacity": np.ones((3, 2))}}, "task_000 has no 'Radius'"),
        ({"task_000": PART, "task_001": {key: np.ones((3, 4)) for key in NAMES}}, "repeats; as many"),
    ],
)
def test_damaged_files(tmp_path: Path, stored: dict[str, Any], why: str) -> None:
    file = tmp_path / "x.pkl"
    file.write_bytes(pickle.dumps({"task_000": PART, "task_001": PART}))  # as the scripts write it, without ours
    assert read_pickle(file).sizes == {"repeat": 2, "snapshot": 6} and "capacity_approx" not in read_pickle(file)
    file.write_bytes(pickle.dumps(stored))
    with pytest.raises(WaterjarError, match=f"x.pkl.*{why}"):
        read_pickle(file)
