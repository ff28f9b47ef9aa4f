"""What stands in manifold_metrics.pkl."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from run.formats.binary_runs import record
from waterjar.diagnose import geometry
from waterjar.diagnose.geometry.export import APPROXIMATE, NAMES, manifold_metrics
from waterjar.errors import WaterjarError

T, L, R = 2, 2, 2


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    run = record(tmp_path_factory.mktemp("geometry") / "run", tasks=T, logged=L, repeats=R, samples=4, units=24)
    return geometry.measure(run, n_t=10, simulate_every=10, n_trials=10)


def test_keys_shapes_and_values(result: xr.Dataset) -> None:
    found = manifold_metrics(result)
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


def test_joint_training_and_studies_are_refused(result: xr.Dataset) -> None:
    with pytest.raises(WaterjarError, match="joint training"):
        manifold_metrics(result.assign_coords(train_task_index=("snapshot", [-1] * 5)))
    with pytest.raises(WaterjarError, match="measure\\(run\\)"):
        manifold_metrics(result.swap_dims(repeat="seed"))
    with pytest.raises(WaterjarError, match="did you mean 'penultimate'"):
        manifold_metrics(result, layer="penult")


def test_a_task_that_is_trained_again_is_refused(result: xr.Dataset) -> None:
    tasks, visits = ("snapshot", [0, 0, 0, 0, 0]), ("snapshot", [0, 0, 0, 1, 1])
    with pytest.raises(WaterjarError, match="one row per task: visits are not merged"):
        manifold_metrics(result.assign_coords(train_task_index=tasks, visit=visits))
    tasks = ("snapshot", [0, 0, 1, 0, 0])
    with pytest.raises(WaterjarError, match="one row per task: visits are not merged"):  # measured before visits
        manifold_metrics(result.assign_coords(train_task_index=tasks).drop_vars("visit"))
