"""cl_metrics.pkl: what is written, against the formulas by hand, and read back."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from run.formats.binary_runs import record
from waterjar.diagnose import continual
from waterjar.diagnose.continual.export import cl_metrics, read_pickle, write_pickle
from waterjar.errors import WaterjarError

T, L, R = 3, 2, 4


@pytest.fixture
def run(tmp_path: Path) -> waterjar.Run:
    return record(tmp_path / "run", tasks=T, logged=L, repeats=R)


def test_keys_shapes_and_values(run: waterjar.Run, tmp_path: Path) -> None:
    file = write_pickle(continual.measure(run, bounded=False), tmp_path / "out")
    assert file.name == "cl_metrics.pkl"
    found = pickle.loads(file.read_bytes())  # noqa: S301 - written one line above
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


def test_it_comes_back(run: waterjar.Run, tmp_path: Path) -> None:
    result = continual.measure(run)
    found = read_pickle(write_pickle(result, tmp_path))
    for name in ("remembering", "forward_transfer"):
        np.testing.assert_array_equal(found[name].values, result[name].transpose(*found[name].dims).values)
        assert found[name].attrs["direction"] == result[name].attrs["direction"]
    assert found.attrs == cl_metrics(result)["stats"]


def test_one_repeat_no_expert_one_task(tmp_path: Path) -> None:
    found = cl_metrics(continual.measure(record(tmp_path / "one", tasks=1, repeats=1, expert=False)))
    assert found["remembering"].shape == (1, 1, 1) and np.isnan(found["transfer"]).all()
    assert all(np.isnan(value) for value in found["stats"].values())


def test_a_study_is_refused(run: waterjar.Run) -> None:
    with pytest.raises(WaterjarError, match="measure\\(run\\)"):
        cl_metrics(continual.measure(run).swap_dims(repeat="seed"))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"stats": 3}, "has no dictionary 'stats'"),
        ({"transfer": np.ones((3, 2))}, "transfer has shape \\(3, 2\\), remembering \\(2, 2, 2\\)"),
        ({"transfer": None}, "'transfer' is not an array of numbers"),
        ({"remembering": np.ones((2, 2))}, "'remembering' is not an array of numbers with 3 dimensions"),
    ],
)
def test_damaged_files(tmp_path: Path, changed: dict[str, Any], why: str) -> None:
    good = {"transfer": np.ones((2, 2)), "remembering": np.ones((2, 2, 2)), "stats": {"rem_mean": np.float64(0.5)}}
    file = tmp_path / "x.pkl"
    file.write_bytes(pickle.dumps(good))
    assert read_pickle(file).attrs == {"rem_mean": 0.5}
    file.write_bytes(pickle.dumps({**good, **changed}))
    with pytest.raises(WaterjarError, match=f"x.pkl.*{why}"):
        read_pickle(file)
