"""What was not recorded is missing for that reason, and not because the definition had no value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from waterjar.diagnose import plasticity
from waterjar.diagnose.snapshots import RunArrays
from waterjar.run.schema import REASONS

SNAPSHOTS = {
    "weights": {"weights": {"w": np.ones((3, 3))}},
    "features": {"features": {"h": np.random.default_rng(0).normal(size=(1, 1, 20, 6))}},
}
OTHERS = {
    "weights": ("active_units_final", "effective_rank_final", "dormant_units_final"),
    "features": ("weight_magnitude_final", "weight_change_init_final"),
}


@pytest.mark.parametrize("kept", SNAPSHOTS)
def test_weights_alone_and_features_alone(kept: str, tmp_path: Path) -> None:
    given: dict[str, Any] = SNAPSHOTS[kept]
    with waterjar.Recorder(tmp_path / "run", {"learner": "a"}, eval_sets={"x": 0}) as recorder:
        for epoch in range(2):
            recorder.log(epoch=epoch, performance={"accuracy": {"x": 0.5}}, snapshot=given)
    found = plasticity.measure(waterjar.open_run(tmp_path / "run"))
    for name in OTHERS[kept]:
        assert {REASONS[code] for code in found[f"{name}_reason"].values.ravel()} == {"not_recorded"}


@pytest.mark.parametrize("damage", [{"layer_stop": 10}, {"layer_shape": "3x4"}, {"layer_start": -1}])
def test_a_table_of_weights_that_does_not_fit_them(
    damage: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with waterjar.Recorder(tmp_path / "run", {"learner": "a"}) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0}, snapshot=SNAPSHOTS["weights"])
    ((column, value),) = damage.items()
    whole = RunArrays.whole
    monkeypatch.setattr(
        RunArrays, "whole", lambda of, key: np.array([value]) if key == f"weights/{column}" else whole(of, key)
    )
    with pytest.raises(waterjar.WaterjarError, match="the table of its weights does not fit them"):
        plasticity.measure(waterjar.open_run(tmp_path / "run"))
