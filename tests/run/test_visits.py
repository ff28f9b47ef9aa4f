"""Visits of every step, recorded or counted, and runs of both kinds in one cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import waterjar
from recording import without_visits
from waterjar import WaterjarError
from waterjar.run.visits import count_visits, stretches, visits_by_step


def record(path: Path, seed: int = 0, visits: str = "xyxjx", evaluated: str = "xj") -> Path:
    """One step a visit; performance is recorded of some tasks alone, the training loss of all."""
    tasks = {"x": "x", "y": "y", "j": "joint"}
    with waterjar.Recorder(path, {"learner": "sgd"}, seeds=[seed], eval_sets=["a"], tasks=["x", "y"]) as recorder:
        for visit, task in enumerate(visits):
            row = {"accuracy": 0.5} if task in evaluated else None
            recorder.log(train_task=tasks[task], visit=visit, epoch=1, performance=row, train={"loss": 1.0})
    return path


@pytest.mark.parametrize("schema", [1, 2])
def test_of_all_steps(tmp_path: Path, schema: int) -> None:
    path = record(tmp_path / "run")
    run = waterjar.open_run(without_visits(path) if schema == 1 else path)
    assert visits_by_step(run) == {0: (0, 0), 1: (1, 1), 2: (2, 0), 3: (3, -1), 4: (4, 0)}


def test_of_a_run_without_steps(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {}):
        pass
    assert visits_by_step(waterjar.open_run(tmp_path / "run")) == {}


def test_runs_with_and_without_visits_join(tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "study")
    without_visits(record(folder / "old", 1))
    record(folder / "new", 2, "xyx")
    (found,) = waterjar.open_study(folder).load("performance").values()
    assert found["visit"].values.tolist() == [0, 2, 3, 4]
    assert found["accuracy"].shape == (4, 1, 2)


def test_a_cell_of_schema_1_alone_is_loaded_as_it_was(tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "study")
    without_visits(record(folder / "old", 1))
    (found,) = waterjar.open_study(folder).load("performance").values()
    assert "visit" not in found.variables


def test_runs_that_disagree_about_visits_do_not_join(tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "study")
    for name, seed, visits in (("one", 1, [0, 0]), ("two", 2, [0, 1])):
        with waterjar.Recorder(folder / name, {"learner": "sgd"}, seeds=[seed], eval_sets=["a"]) as recorder:
            for epoch, visit in enumerate(visits):
                at = {"epoch": epoch, "total_epoch": epoch, "effective_epoch": epoch}
                recorder.log(visit=visit, performance={"accuracy": 0.5}, **at)
    with pytest.raises(WaterjarError, match="disagrees with .* about visit"):
        waterjar.open_study(folder).load("performance")


@given(st.lists(st.integers(-1, 2), max_size=12))
def test_counting_is_cutting(tasks: list[int]) -> None:
    rows = stretches(tasks)
    assert [row for part in rows for row in part] == list(range(len(tasks)))
    counted = count_visits(tasks)
    assert counted.tolist() == [visit for visit, part in enumerate(rows) for _ in part]
    for part in rows:
        assert len({tasks[row] for row in part}) == 1
    np.testing.assert_array_equal(np.concatenate(stretches(tasks, counted) or [[]]), np.arange(len(tasks)))
    assert len(stretches(tasks, counted)) == len(rows)
