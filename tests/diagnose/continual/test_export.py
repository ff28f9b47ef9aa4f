"""cl_metrics.pkl: what is in it, against the formulas by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import waterjar
from run.formats.binary_runs import record
from waterjar.diagnose import continual
from waterjar.diagnose.continual.export import FILE, cl_metrics
from waterjar.errors import WaterjarError

T, L, R = 3, 2, 4


@pytest.fixture
def run(tmp_path: Path) -> waterjar.Run:
    return record(tmp_path / "run", tasks=T, logged=L, repeats=R)


def test_keys_shapes_and_values(run: waterjar.Run) -> None:
    assert FILE == "cl_metrics.pkl"
    found = cl_metrics(continual.measure(run, bounded=False))
    assert list(found) == ["transfer", "remembering", "stats"]
    assert found["transfer"].shape == (T, R) and found["remembering"].shape == (T, T, R)
    assert list(found["stats"]) == ["rem_mean", "rem_std", "trans_mean", "trans_std"]
    # The seed's formulas, by hand: M[train, eval, repeat] at the end of each task, 2 A - 1
    accuracy = 2 * run.load("performance").accuracy.values[[L, 2 * L, 3 * L]] - 1
    expert = run.load("expert").accuracy
    rem = np.full((T, T, R), np.nan)
    for i in range(T):
        for j in range(i + 1, T):
            rem[i, j] = (accuracy[j, i] - accuracy[i, i]) / (accuracy[j, i] + accuracy[i, i])
    np.testing.assert_allclose(found["remembering"], rem, rtol=1e-12)
    fresh = np.stack([2 * expert.values[(t + 1) * L - 1, t] - 1 for t in range(T)])
    own = np.stack([accuracy[t, t] for t in range(T)])
    np.testing.assert_allclose(found["transfer"], (fresh - own) / (fresh + own), rtol=1e-6)
    per_repeat = np.nanmean(rem, axis=(0, 1))
    np.testing.assert_allclose(found["stats"]["rem_mean"], per_repeat.mean())
    np.testing.assert_allclose(found["stats"]["rem_std"], per_repeat.std(ddof=1))
    np.testing.assert_allclose(found["stats"]["trans_std"], found["transfer"].mean(0).std(ddof=1))
    assert all(type(value) is float for value in found["stats"].values())


def test_one_repeat_no_expert_one_task(tmp_path: Path) -> None:
    found = cl_metrics(continual.measure(record(tmp_path / "one", tasks=1, repeats=1, expert=False)))
    assert found["remembering"].shape == (1, 1, 1) and np.isnan(found["transfer"]).all()
    assert all(np.isnan(value) for value in found["stats"].values())


def test_a_study_is_refused(run: waterjar.Run) -> None:
    with pytest.raises(WaterjarError, match="measure\\(run\\)"):
        cl_metrics(continual.measure(run).swap_dims(repeat="seed"))
