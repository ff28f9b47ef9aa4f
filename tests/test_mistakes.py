"""Ten mistakes of somebody who records a loop for the first time: the right result, or one true sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar as wj
from waterjar.diagnose.feeds import feeds

TASKS = ["a", "b", "c"]
CLASSES = [str(i) for i in range(6)]
EPOCHS = 3
KEPT = {"naive": 0.2, "replay": 0.8}
"""Method -> accuracy on a task that is not trained any more; one that is has 0.9, before that 0."""
Record = Callable[..., Path]


def accuracies(method: str, at: int, epoch: int, seed: int, order: Sequence[int] = (0, 1, 2)) -> dict[str, float]:
    """After some epochs on the task that is trained as the `at`-th; seeds differ by a little."""
    learned, kept = (0.9 - 0.01 * seed) * epoch / EPOCHS, KEPT[method] - 0.01 * seed
    return {TASKS[task]: kept if i < at else learned if i == at else 0.0 for i, task in enumerate(order)}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Record a run of a method and a seed; what is said of it replaces what a careful user would have said."""

    def recorded(
        method: str,
        seed: int,
        *,
        order: list[int] | None = None,
        change: Callable[[dict[str, Any], int, int], None] = lambda *_: None,
        tasks: list[str] = TASKS,
        labelled: bool = True,
        **own: Any,
    ) -> Path:
        said = {"eval_sets": TASKS, "classes": CLASSES, **own}
        said = {key: value for key, value in said.items() if value is not None}
        rng = np.random.default_rng(seed)
        path = tmp_path / "study" / f"{method}-{seed}"
        with wj.Recorder(path, {"method": method}, seeds=[seed], tasks=tasks, summary=False, **said) as recorder:
            if labelled:
                recorder.once("probe_samples", label=np.tile(np.arange(8) % 2, (1, len(said["eval_sets"]), 1)))
            for at, task in enumerate(order or range(len(tasks))):
                for epoch in range(at > 0, EPOCHS + 1):
                    told: dict[str, Any] = {
                        "performance": {"accuracy": accuracies(method, at, epoch, seed, order or range(3))},
                        "train": {"loss": 1.0 / (1 + epoch)},
                        "snapshot": {"features": {"fc1": rng.normal(size=(1, len(said["eval_sets"]), 8, 5)).clip(0)}},
                    }
                    change(told, at, epoch)
                    recorder.log(epoch=epoch, train_task=tasks[task], **told)
        return path

    return recorded


def study(tmp_path: Path) -> wj.Study:
    return wj.open_study(tmp_path / "study")


def both(record: Record, **how: Any) -> None:
    for method in KEPT:
        for seed in (0, 1, 2):
            record(method, seed, **how)


def seeds_of(found: wj.diagnose.study.Diagnosis, metric: str, cell: str) -> list[float]:
    rows = found.table([metric])
    return list(rows.loc[rows["cell"] == cell, "value"])


def page(tmp_path: Path) -> str:
    return wj.report(study(tmp_path), tmp_path / "report.md").read_text(encoding="utf-8")


def test_without_a_mistake(record: Record, tmp_path: Path) -> None:
    both(record)
    found = study(tmp_path).measure()
    assert seeds_of(found, "forgetting", "naive") == pytest.approx([0.7] * 3)
    assert seeds_of(found, "average_accuracy", "naive") == pytest.approx([1.3 / 3 - 0.01 * seed for seed in range(3)])
    assert {"continual", "plasticity", "geometry", "drift"} <= set(found)
    assert "replay forgets less than naive" in page(tmp_path)


def test_percent(record: Record, tmp_path: Path) -> None:
    def percent(told: dict[str, Any], at: int, epoch: int) -> None:
        told["performance"] = {"accuracy": {name: 100 * one for name, one in told["performance"]["accuracy"].items()}}

    with pytest.raises(wj.WaterjarError, match="Divide percentages by 100"):
        record("naive", 0, change=percent)


def test_a_counter_of_epochs_that_runs_on(tmp_path: Path) -> None:
    with wj.Recorder(tmp_path / "run", {}, tasks=["a", "b"], eval_sets=["a", "b"], summary=False) as recorder:
        for epoch in (1, 2, 3):
            recorder.log(train_task="a", epoch=epoch, performance={"accuracy": [0.5, 0.0]})
        with pytest.raises(wj.WaterjarError, match="epoch=4 of task 'b' goes on where the task before ended"):
            recorder.log(train_task="b", epoch=4, performance={"accuracy": [0.5, 0.0]})
        recorder.log(train_task="b", epoch=4, total_epoch=7, performance={"accuracy": [0.5, 0.0]})


def test_one_seed_recorded_twice_is_no_second_seed(record: Record, tmp_path: Path) -> None:
    (record("naive", 0)).rename(tmp_path / "study" / "naive-again")
    record("naive", 0)
    with pytest.raises(wj.WaterjarError, match="seed 0 is in naive-0 and in naive-again: a cell has each seed once"):
        study(tmp_path).measure(only=["plasticity"])


def test_a_symbol_is_a_name(record: Record, tmp_path: Path) -> None:
    record("naive", 0)
    assert study(tmp_path).summary(["ACC", "forgetting"]).shape == (2, 1)


def test_no_classes(record: Record, tmp_path: Path) -> None:
    both(record, classes=None)
    found = study(tmp_path).measure()
    assert seeds_of(found, "forgetting", "naive") == pytest.approx([0.7] * 3)
    assert set(found.table(["remembering"])["reason"]) == {"chance_unknown"}
    (note,) = {note for _, note in found.notes("continual")}
    assert "has not recorded its classes" in note and "annotate RUN --chance" in note
    study(tmp_path).annotate(chance=1 / 6)
    assert set(study(tmp_path).measure(only=["remembering"]).table(["remembering"])["reason"]) == {"present"}


def test_a_wrong_mapping(record: Record) -> None:
    with pytest.raises(wj.WaterjarError, match="'bb'.*did you mean 'b'"):
        record("naive", 0, eval_sets={"a": "a", "b": "bb", "c": "c"})


def test_another_order(record: Record, tmp_path: Path) -> None:
    """The tasks were declared as a, b, c, and trained b first: what was recorded counts, and it is said."""
    for method in KEPT:
        for seed in (0, 1, 2):
            record(method, seed, order=[1, 0, 2])
    found = study(tmp_path).measure(only=["continual"])
    assert seeds_of(found, "forgetting", "naive") == pytest.approx([0.7] * 3)
    assert any("b, a, c" in note for _, note in found.notes("continual"))


def test_missing_labels(record: Record, tmp_path: Path) -> None:
    both(record, labelled=False)
    found = study(tmp_path).measure()
    assert "plasticity" in found
    assert "has recorded features and probe_samples" in found.passed_over["geometry"]
    (line,) = [one.lacks[0].line for one in feeds(study(tmp_path).run("naive-0")) if one.family == "geometry"]
    assert 'recorder.once("probe_samples", label=' in line


def test_an_eval_set_that_is_missing_in_an_epoch(record: Record, tmp_path: Path) -> None:
    def forget(told: dict[str, Any], at: int, epoch: int) -> None:
        if (at, epoch) == (2, EPOCHS):
            del told["performance"]["accuracy"]["a"]

    record("naive", 0, change=forget)
    record("naive", 1)
    found = study(tmp_path).measure(only=["continual"])
    assert seeds_of(found, "average_accuracy", "naive") == pytest.approx([1.3 / 3, 1.3 / 3 - 0.01])
    (note,) = {note for _, note in found.notes() if note}
    assert note == "not evaluated at the end of c: a in seed 0 (the last evaluation there counts)"


def test_a_seed_that_one_method_lacks(record: Record, tmp_path: Path) -> None:
    for seed in (0, 1, 2, 3):
        record("naive", seed)
        if seed != 2:
            record("replay", seed)
    told = study(tmp_path).compare("forgetting", baseline="naive")
    line = told[told["cell"] == "replay"].iloc[0]
    assert line["n_compared"] == 3 and line["difference"] == pytest.approx(-0.6)
    assert "3 seeds" in page(tmp_path)


def test_unequal_lengths(record: Record, tmp_path: Path) -> None:
    both(record)
    with wj.Recorder(
        tmp_path / "study" / "short-0", {"method": "short"}, seeds=[0], tasks=TASKS, eval_sets=TASKS, classes=CLASSES,
        summary=False,
    ) as recorder:  # fmt: skip
        for at, task in enumerate(TASKS[:2]):
            for epoch in (1, 2):
                recorder.log(epoch=epoch, train_task=task, performance={"accuracy": accuracies("naive", at, epoch, 0)})
    found = study(tmp_path).measure(only=["continual"])
    assert any(cell == "short" and "c" in note for cell, note in found.notes("continual"))
    assert seeds_of(found, "forgetting", "naive") == pytest.approx([0.7] * 3)


def test_a_loss_of_nan(record: Record, tmp_path: Path) -> None:
    def explode(told: dict[str, Any], at: int, epoch: int) -> None:
        if at == 2:
            told["train"]["loss"] = math.nan

    both(record, change=explode)
    loss = study(tmp_path).load("train")["naive"]
    assert np.isnan(loss["loss"].values[-1]).all()
    said = page(tmp_path)
    assert "not a number" in said.replace("\\_", " ") and "replay forgets less than naive" in said


def test_what_untrained_features_tell_is_not_what_training_left(record: Record, tmp_path: Path) -> None:
    """Features are drawn anew at every step: nothing of them was learned, and none is said to be left."""
    both(record)
    told = page(tmp_path)
    assert "training may have left nothing" in told or "No learner is shown to lose more" in told
    assert "can still be read" not in told


def test_one_task(record: Record, tmp_path: Path) -> None:
    def one(told: dict[str, Any], at: int, epoch: int) -> None:
        told["performance"] = {"accuracy": {"a": told["performance"]["accuracy"]["a"]}}

    both(record, tasks=["a"], eval_sets=["a"], change=one)
    found = study(tmp_path).measure()
    rows = found.table(["forgetting"])
    assert rows["value"].isna().all() and set(rows["reason"]) == {"undefined"}
    assert seeds_of(found, "average_accuracy", "naive") == pytest.approx([0.9, 0.89, 0.88])
    assert "What was found" in page(tmp_path)
