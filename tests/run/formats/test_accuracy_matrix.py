from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import waterjar
from waterjar import WaterjarError, from_accuracy_matrix

R = [[0.9, 0.5, np.nan], [0.6, 0.8, 0.5], [0.3, 0.7, 0.95]]


def test_a_matrix_becomes_a_run(tmp_path: Path) -> None:
    run = from_accuracy_matrix(R, tmp_path / "run", initial=[0.5, 0.4, 0.3], expert=[0.91, 0.92, 0.93])
    data = run["performance"].squeeze("repeat")
    np.testing.assert_array_equal(data.accuracy.values, [[0.5, 0.4, 0.3], *R])
    assert data.train_task_index.values.tolist() == [0, 0, 1, 2]
    assert data.epoch.values.tolist() == [0, 1, 1, 1]
    assert data.total_epoch.values.tolist() == [0, 1, 2, 3]
    assert data.eval_task.values.tolist() == [0, 1, 2]
    assert data.accuracy_reason.values[1].tolist() == [0, 0, 1]
    np.testing.assert_array_equal(run["expert"].accuracy.values.ravel(), [0.91, 0.92, 0.93])
    assert waterjar.verify(run.path).state == "sealed"


def test_repeats_percent_and_names(tmp_path: Path) -> None:
    matrix = np.array([[[90, 50], [60, 80]], [[91, 51], [61, 81]]])
    run = from_accuracy_matrix(matrix, tmp_path / "run", percent=True, seeds=[7, 8], tasks=["x", "y"], config={"a": 1})
    data = run["performance"]
    assert data.seed.values.tolist() == [7, 8]
    np.testing.assert_array_equal(data.accuracy.sel(eval_set="y").values, [[0.5, 0.51], [0.8, 0.81]])
    assert run.config == {"a": 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"matrix": [[90.0, 50.0], [60.0, 80.0]]}, r"matrix\[0, 0\] = 90.0 is not between 0 and 1: pass percent=True"),
        ({"matrix": [[0.5, -0.1], [0.6, 0.8]]}, r"matrix\[0, 1\] = -0.1 is not between 0 and 1"),
        ({"matrix": [0.5, 0.4]}, "matrix has 1 dimensions; expected 2, or 3 with repeat first"),
        ({"matrix": [[0.5], [0.4]]}, "every trained task evaluated"),
        ({"tasks": ["x"]}, "2 names, one per column"),
        ({"seeds": [1, 2]}, "1 seeds, one per repeat"),
        ({"expert": [0.5]}, r"expert has shape \(1, 1\); expected \(repeat=1, eval_task=2\)"),
        ({"initial": [0.5, 7]}, r"initial\[1\] = 7.0 is not between"),
        ({"matrix": "x"}, "matrix has dtype"),
        ({"tasks": 5}, "tasks=5: expected a list of names"),
        ({"tasks": [[], []]}, r"tasks=\[\[\], \[\]\]: expected different, non-empty names"),
        ({"seeds": 0.5}, "seeds=0.5: expected a list of whole numbers"),
        ({"seeds": [[1]]}, r"seeds: \[1\] is not a whole number"),
        ({"percent": np.zeros(2)}, "percent=array.*: expected True or False"),
        ({"matrix": np.broadcast_to(np.float32(1), (1, 2**47))}, "matrix does not fit into memory"),
    ],
)
def test_bad_matrices(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        from_accuracy_matrix(options.pop("matrix", [[0.9, 0.5], [0.6, 0.8]]), tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()
