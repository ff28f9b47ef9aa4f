"""Ten mistakes of somebody who records a loop for the first time: the right result, or one true sentence."""

from __future__ import annotations

import contextlib
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar as wj
from waterjar.diagnose.feeds import feeds, summary
from waterjar.run.schema import MEANINGS

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


def part(tmp_path: Path, name: str, seed: int, *, stop: bool = False, again: bool = False) -> None:
    """A run of replay that ends, or is stopped, too early in its second task; `again` evaluates before that."""
    said: dict[str, Any] = {"tasks": TASKS, "eval_sets": TASKS, "classes": CLASSES, "summary": False}
    where = tmp_path / "study" / name
    with contextlib.suppress(KeyboardInterrupt), wj.Recorder(where, {"method": "replay"}, seeds=[seed], **said) as run:
        for at, epoch in ((0, 0), (0, 1), (0, 2), (0, 3), *([(1, 0)] * again), (1, 1), (1, 2)):
            now = accuracies("replay", at, epoch, seed)
            run.log(epoch=epoch, train_task=TASKS[at], performance={"accuracy": now})
        if stop:
            raise KeyboardInterrupt


def test_without_a_mistake(record: Record, tmp_path: Path) -> None:
    both(record)
    found = study(tmp_path).measure()
    assert seeds_of(found, "forgetting", "naive") == pytest.approx([0.7] * 3)
    assert seeds_of(found, "average_accuracy", "naive") == pytest.approx([1.3 / 3 - 0.01 * seed for seed in range(3)])
    assert {"continual", "plasticity", "geometry", "drift"} <= set(found)
    said = page(tmp_path)
    assert "replay forgets less than naive" in said and "share their seeds" in said
    assert not [title for title in ("Not compared", "end early", "not finite") if title in said]


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


@pytest.mark.parametrize("swapped", [{"a": "b", "b": "a", "c": "c"}, {"a": 1, "b": 0, "c": 2}])
def test_names_that_are_swapped(record: Record, swapped: dict[str, Any]) -> None:
    with pytest.raises(
        wj.WaterjarError, match=r"\['a'\] belongs to task 'b', but bears the name of task 'a': expected .*test_b"
    ):
        record("naive", 0, eval_sets=swapped)


def test_names_that_agree_or_belong_to_none_are_no_mistake(tmp_path: Path) -> None:
    sets: dict[str, int | str] = {"a": 0, "b": -1, "test_b": "b"}
    with wj.Recorder(tmp_path / "run", {}, tasks=["a", "b"], eval_sets=sets, summary=False) as recorder:
        recorder.log(train_task="a", epoch=1, performance={"accuracy": [0.5, 0.1, 0.1]})
    assert wj.open_run(tmp_path / "run").attributes["eval_sets"] == {"a": 0, "b": -1, "test_b": 1}


def test_swapped_names_that_were_annotated_are_told(tmp_path: Path) -> None:
    sets = {"a": -1, "b": -1}
    with wj.Recorder(tmp_path / "study" / "run", {}, tasks=["a", "b"], eval_sets=sets, summary=False) as recorder:
        for task in ("a", "b"):
            recorder.log(train_task=task, epoch=1, performance={"accuracy": [0.5, 0.1]})
    study(tmp_path).annotate(eval_task={"a": "b", "b": "a"})
    told = [note for _, note in study(tmp_path).measure(only=["continual"]).notes("continual") if "names" in note]
    assert told == ["eval sets bear the names of other tasks: 'b' is that of a, 'a' is that of b"]


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
    assert found.passed_over["geometry"] == "no run has recorded probe_samples"
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


def test_seeds_that_are_not_shared(record: Record, tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        record("naive", seed)
        record("replay", seed + 3)
    told = study(tmp_path).compare("forgetting", baseline="naive")
    reason = told.set_index("cell").loc["replay", "reason"]
    assert reason.startswith("no pairs: replay has the seeds 3, 4, 5, and naive has 0, 1, 2. Train both with the same")
    assert "waterjar compare --unpaired" in reason and "needed" not in reason
    apart = wj.compare(study(tmp_path), "average_accuracy", "naive", paired=False)
    assert apart.attrs["test"] == "welch" and apart.set_index("cell").loc["replay", "p"] < 0.001
    said = page(tmp_path)
    assert "share their seeds" not in said and "replay shares no seed with the baseline" in said
    assert "**Not compared:** no pairs: replay has the seeds 3, 4, 5" in said and "over 0 tests" not in said


def test_seeds_that_are_shared_in_part(record: Record, tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        record("naive", seed)
        record("replay", seed + 1)
    said = page(tmp_path)
    assert "compared pair by pair, over the seeds that both have" in said and "Not compared" not in said


def test_a_seed_that_ends_early(record: Record, tmp_path: Path) -> None:
    both(record)
    shutil.rmtree(tmp_path / "study" / "replay-1")
    part(tmp_path, "replay-1", 1)
    said = page(tmp_path)
    assert "replay forgets less than naive" in said
    assert (
        "Seed 1 of replay ends at epoch 2 of b, its longest run at epoch 3 of c: ACC ↑, LA ↑, forgetting ↓ and 12 more "
        "have no value there, and means leave it out." in said
    )


def test_a_seed_that_was_evaluated_at_other_epochs(record: Record, tmp_path: Path) -> None:
    both(record)
    shutil.rmtree(tmp_path / "study" / "replay-1")
    part(tmp_path, "replay-1", 1, again=True)
    lead = page(tmp_path).partition("## How to read this")[0]
    assert "replay is left out: replay-1 disagrees with replay-0, a run of the same cell, about epoch" in lead
    assert list(wj.summary(study(tmp_path), "performance/accuracy[a]").columns) == ["naive"]
    assert "effective_rank" in wj.summary(study(tmp_path), "plasticity").index.str.cat(sep=" ")


def test_a_lone_run_that_is_not_sealed(tmp_path: Path) -> None:
    part(tmp_path, "alone", 1, stop=True)
    rows = study(tmp_path).measure(only=["continual"]).table(["forgetting"])
    assert set(rows["reason"]) == {"run_ended"} and "or it is not sealed yet" in MEANINGS["run_ended"]
    said = page(tmp_path)
    assert "replay is not sealed: it has so far come to epoch 2 of b, and has not been trained on c." in said


def test_a_lone_run_that_ends_early(tmp_path: Path) -> None:
    part(tmp_path, "alone", 1)
    assert "replay ends at epoch 2 of b, and has not been trained on c. What takes the" in page(tmp_path)


def test_more_samples_than_units_are_told_when_the_run_is_closed(record: Record, tmp_path: Path) -> None:
    record("naive", 0)
    (line,) = [one for one in summary(study(tmp_path).run("naive-0")).splitlines() if "geometry:" in one]
    assert "up to 24 samples in a layer of few units, fc1 (5)" in line
    assert "dimension, radius and alignments may be missing" in line and "(inside_cone, not_unique)" in line
    assert "a wider layer; if no unit is dormant, fewer samples (--set geometry.subsamples=2" in line
    found, fewer = (
        study(tmp_path).measure(only=["geometry"], settings=how) for how in ({}, {"geometry": {"subsamples": 2}})
    )
    assert set(found.table(["radius"])["reason"]) == {"inside_cone"}
    assert set(fewer.table(["radius"])["reason"]) == {"present"}


def test_fewer_samples_are_not_advised_where_they_do_not_help(tmp_path: Path) -> None:
    """With hardly more samples than units it is dormant units that count, and those stay."""
    rng, shape = np.random.default_rng(0), (1, 1, 24, 10)
    with wj.Recorder(tmp_path / "study" / "r", {}, eval_sets=["a"], tasks=["a"], classes=CLASSES, summary=False) as run:
        run.once("probe_samples", label=np.arange(24)[None, None] % len(CLASSES))
        features = np.maximum(rng.normal(size=shape), 0) * (np.arange(10) < 3)  # three units live
        run.log(epoch=0, performance={"accuracy": {"a": 0.5}}, snapshot={"features": {"fc1": features}})
    (line,) = [one for one in summary(study(tmp_path).run("r")).splitlines() if "geometry:" in one]
    assert line.endswith("(inside_cone, not_unique) -> a wider layer")
    fewer = study(tmp_path).measure(only=["geometry"], settings={"geometry": {"subsamples": 10 // len(CLASSES)}})
    assert set(fewer.table(["radius"])["reason"]) <= {"inside_cone", "not_unique"}


def test_tasks_that_are_counted_from_one_are_refused_at_the_first_step(tmp_path: Path) -> None:
    with wj.Recorder(tmp_path / "run", {}, tasks=["a", "b", "c"]) as recorder:
        with pytest.raises(wj.WaterjarError, match=r"start at 0, which is 'a', and this is 'b'.*say train_task='b'"):
            recorder.log(epoch=0, train_task=1, train={"loss": 1})
        recorder.log(epoch=0, train_task="b", train={"loss": 1})
        recorder.log(epoch=1, train_task=2, train={"loss": 1})


def test_labels_beyond_the_classes(tmp_path: Path) -> None:
    options = {"eval_sets": ["a", "b"], "classes": ["yes", "no"]}
    with wj.Recorder(tmp_path / "run", {}, **options) as recorder:  # type: ignore[arg-type]
        for wrong in (5, -2):
            with pytest.raises(wj.WaterjarError, match=rf"label {wrong}, and the run 2 classes \(yes, no\)"):
                recorder.once("probe_samples", label={"a": [0, 1], "b": [1, wrong]})
        recorder.once("probe_samples", label={"a": [0, 1], "b": [1, -1]}, task_class=[[[4, 5]]])
        recorder.log(epoch=0, train={"loss": 1})


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
    assert "short ends at epoch 2 of b, and has not been trained on c." in page(tmp_path)
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
    for method in KEPT:
        assert f"The training loss of {method} is not a finite number since epoch 1 of c (seeds 0, 1 and 2)." in said


def test_a_loss_that_is_not_finite_for_a_while(record: Record, tmp_path: Path) -> None:
    def explode(told: dict[str, Any], at: int, epoch: int) -> None:
        told["performance"]["loss"] = dict.fromkeys(TASKS, math.inf if (at, epoch) == (1, 2) else 1.0)
        if epoch == 0:
            told["train"]["loss"] = math.nan  # nothing was trained yet

    record("naive", 0, change=explode)
    said = page(tmp_path)
    assert "The loss of naive is not a finite number in 1 of its 10 steps, first at epoch 2 of b (seed 0)." in said
    assert "training loss of naive is" not in said


def test_what_untrained_features_tell_is_not_what_training_left(record: Record, tmp_path: Path) -> None:
    """Features are drawn anew at every step: nothing of them was learned, and none is said to be left."""
    both(record)
    told = page(tmp_path)
    assert "does not show that anything that was learned is left" in told or "No learner is shown to lose more" in told
    assert "can still be read" not in told


def test_one_task(record: Record, tmp_path: Path) -> None:
    def one(told: dict[str, Any], at: int, epoch: int) -> None:
        told["performance"] = {"accuracy": {"a": told["performance"]["accuracy"]["a"]}}

    both(record, tasks=["a"], eval_sets=["a"], change=one)
    found = study(tmp_path).measure()
    rows = found.table(["forgetting"])
    assert rows["value"].isna().all() and set(rows["reason"]) == {"one_task"}
    assert seeds_of(found, "average_accuracy", "naive") == pytest.approx([0.9, 0.89, 0.88])
    assert "What was found" in page(tmp_path)
    assert set(found.table(["remembering", "backward_transfer", "probe_forgetting"])["reason"]) == {"one_task"}
