"""Accuracy by train and eval task: the matrix is the one that was recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import waterjar
from waterjar.errors import WaterjarError
from waterjar.view import figures

R = np.array([[0.9, 0.2, 0.1], [0.6, 0.8, 0.15], [0.5, 0.55, 0.7]])  # (train, eval)


def record(path: Path, seed: int, matrix: np.ndarray, *, learner: str = "sgd") -> None:
    tasks = [f"t{i}" for i in range(matrix.shape[1])]
    with waterjar.Recorder(
        path, {"learner": learner}, seeds=[seed], eval_sets={f"{t}_all": i for i, t in enumerate(tasks)}, tasks=tasks
    ) as recorder:
        for i, row in enumerate(matrix):
            for epoch in range(3):  # only the last of a task counts
                recorder.log(train_task=tasks[i], epoch=epoch, performance={"accuracy": row * (epoch + 1) / 3})


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Study:
    folder = tmp_path_factory.mktemp("tasks") / "study"
    for seed, shift in ((1, -0.01), (2, 0.01)):
        record(folder / f"sgd-{seed}", seed, R + shift)
    with waterjar.Recorder(
        folder / "joint", {"learner": "all at once"}, seeds=[1], eval_sets={f"t{i}_all": i for i in range(3)},
        tasks=["t0", "t1", "t2"],
    ) as recorder:  # fmt: skip
        recorder.log(train_task="joint", epoch=0, performance={"accuracy": [0.0, 0.0, 0.0]})
        recorder.log(train_task="joint", epoch=1, performance={"accuracy": [0.3, float("nan"), 0.5]})
    return waterjar.open_study(folder)


def test_the_matrix_is_the_one_recorded(study: waterjar.Study) -> None:
    table = figures.data("task_matrix", study, band="range")
    sgd = table[table.cell == "sgd"]
    square = sgd.pivot(index="train_task", columns="eval_task", values="mean").to_numpy()
    np.testing.assert_allclose(square, R)
    np.testing.assert_allclose(sgd["high"] - sgd["low"], 0.02)
    assert set(sgd["n"]) == {2} and set(sgd["eval_set"]) == {"t0_all", "t1_all", "t2_all"}
    joint = table[table.cell == "all at once"]
    assert set(joint["train_task"]) == {"joint"}
    np.testing.assert_allclose(joint["mean"], [0.3, np.nan, 0.5])
    assert joint["reason"].tolist() == ["", "1 of 1 not_a_number", ""]


def test_rows_are_evaluated_columns_are_trained(study: waterjar.Study) -> None:
    figure = figures.draw("task_matrix", study)
    panels = {ax.get_title(loc="left"): ax for ax in figure.axes if ax.get_title(loc="left")}
    shown = panels["sgd"].images[0].get_array()
    np.testing.assert_allclose(np.asarray(shown), R.T)
    assert panels["sgd"].images[0].get_clim() == (0.0, 1.0)
    assert panels["sgd"].get_xlabel() == "after training on" and panels["sgd"].get_ylabel() == "accuracy on"
    assert [t.get_text() for t in panels["sgd"].get_xticklabels()] == ["t0", "t1", "t2"]
    texts = [text.get_text().split("\n")[0] for text in panels["sgd"].texts]
    assert texts == [f"{value:.2f}" for value in R.T.ravel()]
    assert sum(patch.get_gid() == "hatched" for patch in panels["all at once"].patches) == 1
    assert [text.get_text() for text in panels["all at once"].texts] == ["0.30", "0.50"]


def test_many_tasks_stay_readable(tmp_path: Path) -> None:
    record(tmp_path / "s" / "a", 1, np.linspace(0, 1, 400).reshape(20, 20))
    figure = figures.draw("task_matrix", waterjar.open_study(tmp_path / "s"))
    assert not figure.axes[0].texts
    assert len(figure.axes[0].get_xticks()) <= 12
    np.testing.assert_allclose(np.asarray(figure.axes[0].images[0].get_array())[:, 0], np.linspace(0, 1, 400)[:20])


def test_nothing_evaluated(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "s" / "a", {"learner": "x"}) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0})
    with pytest.raises(WaterjarError, match="no run has recorded performance"):
        figures.draw("task_matrix", waterjar.open_study(tmp_path / "s"))
    with pytest.raises(WaterjarError, match="not int"):
        figures.draw("task_matrix", 3)  # type: ignore[arg-type]


def test_a_column_for_every_visit(tmp_path: Path) -> None:
    again = np.array([[0.9, 0.2], [0.6, 0.8], [0.95, 0.7], [0.7, 0.85]])
    with waterjar.Recorder(tmp_path / "run", {}, eval_sets={"a": 0, "b": 1}, tasks=["x", "y"]) as recorder:
        for task, row in zip("xyxy", again, strict=True):
            recorder.log(train_task=task, epoch=1, performance={"accuracy": row})
    run = waterjar.open_run(tmp_path / "run")
    table = figures.data("task_matrix", run)
    assert table["train_task"].tolist()[::2] == ["x", "y", "x (2nd time)", "y (2nd time)"]
    panel = figures.draw("task_matrix", run).axes[0]
    np.testing.assert_allclose(np.asarray(panel.images[0].get_array()), again.T)
    assert [label.get_text() for label in panel.get_xticklabels()] == [
        "x",
        "y",
        "x (2nd time)",
        "y (2nd time)",
    ]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["x", "y"]


@pytest.mark.parametrize("tasks", [["t1", "t2"], ["t1", "t2", "the task with the very long name indeed"]])
def test_long_names_cost_the_squares_no_room(tmp_path: Path, tasks: list[str]) -> None:
    """Twelve learners: every title is another one and whole, every square at least 0.4 inches wide."""
    for i in range(12):
        with waterjar.Recorder(
            tmp_path / "s" / str(i), {"learner": f"backbone=resnet18, method=number {i} of many, lr=0.01, restarts"},
            seeds=[1], eval_sets={task: j for j, task in enumerate(tasks)}, tasks=tasks, summary=False,
        ) as recorder:  # fmt: skip
            for task in tasks:
                recorder.log(train_task=task, epoch=0, performance={"accuracy": [0.5] * len(tasks)})
    figure = figures.draw("task_matrix", waterjar.open_study(tmp_path / "s"))
    figure.draw_without_rendering()
    panels = [ax for ax in figure.axes if ax.get_title(loc="left")]
    titles = [ax.get_title(loc="left").replace("\n", " ") for ax in panels]
    assert len(set(titles)) == 12 and all(f"number {i} of many" in "".join(titles) for i in range(12))
    for ax, right in zip(panels, [*panels[1:], None], strict=True):
        assert ax.get_window_extent().width / figure.dpi / len(tasks) >= 0.4
        title = ax._left_title.get_window_extent()
        assert title.x1 <= figure.bbox.width
        if right is not None and right.get_window_extent().x0 > ax.get_window_extent().x1:
            assert title.x1 <= right._left_title.get_window_extent().x0
