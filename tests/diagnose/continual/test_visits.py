"""Tasks that are trained again: one row per visit, worked out on paper. Two classes: P = 2A - 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import waterjar
from diagnose.continual.test_tasks_covered import why
from recording import without_visits
from waterjar.diagnose.continual import measure
from waterjar.diagnose.continual._visits import before_first, first, followed, last
from waterjar.diagnose.continual.export import cl_metrics
from waterjar.diagnose.continual.so_far import ends_of_tasks, of_own_task, over_steps
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError

NAN = np.nan
# (task, visit, epoch, accuracy on x and y); ends are .9 .5 | .6 .8 | 1. .7 | .5 .95
XYXY = [
    ("x", 0, 0, [0.5, 0.5]), ("x", 0, 2, [0.9, 0.5]),
    ("y", 1, 1, [0.7, 0.6]), ("y", 1, 2, [0.6, 0.8]),
    ("x", 2, 1, [0.8, 0.75]), ("x", 2, 2, [1.0, 0.7]),
    ("y", 3, 1, [0.4, 0.9]), ("y", 3, 2, [0.5, 0.95]),
]  # fmt: skip
XYX = XYXY[:6]
XX = [("x", 0, 0, [0.5]), ("x", 0, 1, [0.8]), ("x", 1, 0, [0.7]), ("x", 1, 1, [0.9])]
EXPERT = {"x": 0.9, "y": 0.8}


def record(path: Path, steps: list[Any], *, expert: bool = False, config: Any = None, **options: Any) -> waterjar.Run:
    tasks = list(dict.fromkeys(step[0] for step in steps if step[0] != "joint"))
    about = {"eval_sets": {f"set {task}": i for i, task in enumerate(tasks)}, "tasks": tasks, "classes": ["a", "b"]}
    with waterjar.Recorder(path, config or {"learner": "sgd"}, provenance=False, **{**about, **options}) as recorder:
        for task, visit, epoch, row in steps:
            fresh = {"accuracy": {name: EXPERT[name[-1]] for name in about["eval_sets"]}} if expert else None
            performance = {"accuracy": row, "loss": [1 - a for a in row]}
            recorder.log(train_task=task, visit=visit, epoch=epoch, performance=performance, expert=fresh)
    return waterjar.open_run(path)


def pairs(result: xr.Dataset, name: str) -> dict[tuple[int, int], float]:
    """(train, eval) -> value, of those that are there; by place."""
    values = result[name].values[0]
    return {(int(v), int(u)): float(values[v, u]) for v, u in np.argwhere(~np.isnan(values))}


class TestFourVisits:
    @pytest.fixture
    def found(self, tmp_path: Path) -> xr.Dataset:
        return measure(record(tmp_path / "run", XYXY, expert=True))

    def test_rows_say_task_and_visit(self, found: xr.Dataset) -> None:
        assert found["train_task"].values.tolist() == [0, 1, 2, 3] == found["eval_task"].values.tolist()
        named = ["x", "y", "x (2nd time)", "y (2nd time)"]
        assert found["train_visit"].values.tolist() == named == found["eval_visit"].values.tolist()
        assert found["order_note"].values.tolist() == ["trained again, one row per visit: x, y, x, y"]
        assert found["n_tasks"].values.tolist() == [2] and found["tasks"].values.tolist() == ["x, y"]

    def test_what_was_learned_is_followed_to_the_next_visit_of_its_task(self, found: xr.Dataset) -> None:
        # P of ends: .8 0 | .2 .6 | 1 .4 | 0 .9
        expected = {(1, 0): (0.2 - 0.8) / 1.0, (2, 1): (0.4 - 0.6) / 1.0, (3, 2): -1.0}
        assert pairs(found, "remembering") == pytest.approx(expected)
        assert float(found["remembering_mean"][0]) == pytest.approx((-0.6 - 0.2 - 1.0) / 3)
        assert found["remembering_n"].values.tolist() == [3]
        # P: x falls .8 .4 .2 at epochs 0 1 2 of visit 1, 1 -.2 0 of visit 3; y goes .6 .5 .4 in visit 2
        assert pairs(found, "forgetting_rate") == pytest.approx({(1, 0): -0.3, (2, 1): -0.1, (3, 2): -0.5})
        assert pairs(found, "max_dip") == pytest.approx({(1, 0): 0.6, (2, 1): 0.2, (3, 2): 1.2})

    def test_zero_shot_is_before_the_first_visit(self, found: xr.Dataset) -> None:
        assert pairs(found, "zero_shot") == pytest.approx({(0, 1): -1.0})  # of y, 0 while x is trained

    def test_one_value_per_visit(self, found: xr.Dataset) -> None:
        assert float(found["learning_accuracy"][0]) == pytest.approx((0.9 + 0.8 + 1.0 + 0.95) / 4)
        own, fresh = np.array([0.8, 0.6, 1.0, 0.9]), np.array([0.8, 0.6, 0.8, 0.6])
        np.testing.assert_allclose(found["forward_transfer"][0], (fresh - own) / (fresh + own), atol=1e-7)
        np.testing.assert_allclose(found["intransigence"][0], [0.0, 0.0, -0.1, -0.15], atol=1e-12)
        # b of visit 2: 1 - P = .8 .4 0 at epochs 0 1 2, the end of visit 1 being its epoch 0
        area, squared = (0.8 + 0.4) / 2 + 0.2, (0.64 + 0.16) / 2 + 0.08
        assert float(found["learning_time"][0, 2]) == pytest.approx(area**2 / squared)
        assert found["learning_time_n"].values.tolist() == [4]

    def test_over_tasks_each_once(self, found: xr.Dataset) -> None:
        assert float(found["average_accuracy"][0]) == pytest.approx((0.5 + 0.95) / 2)
        seen = [0.9, (0.65 + 0.7) / 2, (0.9 + 0.725) / 2, (0.45 + 0.925) / 2]  # x alone, then both
        assert float(found["average_anytime_accuracy"][0]) == pytest.approx(np.mean(seen))
        assert float(found["backward_transfer"][0]) == pytest.approx(0.5 - 1.0)  # of x, from its last visit on
        np.testing.assert_allclose(found["forgetting"][0], [NAN, NAN, 0.5, NAN])
        assert float(found["forward_transfer_gem"][0]) == pytest.approx(0.5 - 0.5)  # of y, before its first visit
        assert float(found["min_accuracy"][0]) == pytest.approx(0.4)  # of x, after its first visit
        assert float(found["worst_case_accuracy"][0]) == pytest.approx(0.95 / 2 + 0.4 / 2)

    def test_the_highest_may_be_of_an_earlier_visit(self, tmp_path: Path) -> None:
        steps = [*XYXY[:5], ("x", 2, 2, [0.85, 0.7]), *XYXY[6:]]
        for reference, expected in (("max", 0.9 - 0.5), ("learned", 0.85 - 0.5), ("max_or_last", 0.9 - 0.5)):
            run = record(tmp_path / reference, steps)
            found = measure(run, forgetting_reference=reference)
            assert float(found["forgetting_mean"][0]) == pytest.approx(expected), reference

    def test_of_a_loss(self, tmp_path: Path) -> None:
        found = measure(record(tmp_path / "run", XYXY), metric_type="loss")
        assert float(found["backward_transfer"][0]) == pytest.approx(-0.5)
        assert set(pairs(found, "remembering")) == {(1, 0), (2, 1), (3, 2)}

    def test_so_far(self, tmp_path: Path, found: xr.Dataset) -> None:
        folder = waterjar.create_study(tmp_path / "study")
        record(folder / "run", XYXY)
        study = waterjar.open_study(folder)
        for name, at_end in (("average_accuracy", 0.725), ("backward_transfer", -0.5), ("forgetting", 0.5)):
            ((_, made),) = over_steps(study, name, {})
            assert made.values[0, -1] == pytest.approx(at_end)
        assert made.train_task == ["x", "x", "y", "y", "x (2nd time)", "x (2nd time)", "y (2nd time)", "y (2nd time)"]
        # in visit 2 the task that counts is y: .8 at the end of its visit, .75 and .7 now; then x, from 1
        np.testing.assert_allclose(made.values[0, 2:], [0.2, 0.3, 0.05, 0.1, 0.6, 0.5], atol=1e-12)
        ((_, own),) = of_own_task(study, {})
        np.testing.assert_allclose(own.values[0], [0.9, 0.8, 1.0, 0.95])
        ((_, ends),) = ends_of_tasks(study, {})
        assert ends.train_tasks == ["x", "y", "x (2nd time)", "y (2nd time)"] and ends.eval_tasks == ["x", "y"]
        np.testing.assert_allclose(ends.values[0], [[0.9, 0.5], [0.6, 0.8], [1.0, 0.7], [0.5, 0.95]])

    def test_the_form_of_the_seed_has_no_place_for_it(self, found: xr.Dataset) -> None:
        with pytest.raises(WaterjarError, match="one row per task: visits are not merged"):
            cl_metrics(found)


class TestThreeVisits:
    def test_the_last_task_is_the_first_again(self, tmp_path: Path) -> None:
        found = measure(record(tmp_path / "run", XYX))
        assert set(pairs(found, "remembering")) == {(1, 0), (2, 1)}
        assert float(found["backward_transfer"][0]) == pytest.approx(0.7 - 0.8)  # of y alone
        np.testing.assert_allclose(found["forgetting"][0], [NAN, 0.1, NAN])
        assert float(found["min_accuracy"][0]) == pytest.approx(0.7)  # of y, in visit 2
        assert float(found["worst_case_accuracy"][0]) == pytest.approx((1.0 + 0.7) / 2)
        assert float(found["average_accuracy"][0]) == pytest.approx((1.0 + 0.7) / 2)

    def test_joint_training_in_between_is_no_row(self, tmp_path: Path) -> None:
        steps = [("x", 0, 1, [0.9, 0.5]), ("joint", 1, 1, [0.8, 0.8]), ("x", 2, 1, [1.0, 0.6]), ("y", 3, 1, [0.7, 0.9])]
        found = measure(record(tmp_path / "run", steps))
        assert found["train_visit"].values.tolist() == ["x", "x (2nd time)", "y"]
        assert found["train_task"].values.tolist() == [0, 2, 1]
        assert pairs(found, "max_dip") == pytest.approx({(2, 1): 0.6})
        assert float(found["backward_transfer"][0]) == pytest.approx(-0.3)

    def test_an_open_run_has_not_the_end_of_its_last_visit(self, tmp_path: Path) -> None:
        recorder = waterjar.Recorder(tmp_path / "run", {}, eval_sets={"a": 0, "b": 1}, tasks=["x", "y"])
        for task, visit, epoch, row in XYX:
            recorder.log(train_task=task, visit=visit, epoch=epoch, performance={"accuracy": row})
        found = measure(waterjar.open_run(tmp_path / "run"))
        assert why(found, "backward_transfer") == ["run_ended"] == why(found, "average_accuracy")
        assert why(found, "learning_time") == ["present", "present", "run_ended"]
        recorder.close()


class TestTheSameTaskAtOnce:
    def test_two_visits_of_one_task(self, tmp_path: Path) -> None:
        found = measure(record(tmp_path / "run", XX))
        assert found["train_visit"].values.tolist() == ["x", "x (2nd time)"]
        assert float(found["learning_accuracy"][0]) == pytest.approx((0.8 + 0.9) / 2)
        assert float(found["average_accuracy"][0]) == pytest.approx(0.9)
        assert float(found["worst_case_accuracy"][0]) == pytest.approx(0.9)
        np.testing.assert_allclose(found["learning_time"][0], [0.5, 0.5])  # of a straight line, (a/2)^2 / (a^2/2)
        for name in ("remembering", "zero_shot", "forgetting_rate", "max_dip", "forgetting"):
            assert set(why(found, name)) == {"one_task"}, name
        assert why(found, "backward_transfer") == ["one_task"] == why(found, "min_accuracy")

    def test_the_first_one_is_followed_no_further(self, tmp_path: Path) -> None:
        steps = [(task, visit, epoch, [row[0], 0.5]) for task, visit, epoch, row in XX]
        found = measure(record(tmp_path / "run", [*steps, ("y", 2, 1, [0.6, 0.9])]))
        assert pairs(found, "max_dip") == pytest.approx({(2, 1): 0.6})  # from .9 to .6, above chance


class TestSchema1:
    def test_visits_follow_from_the_tasks(self, tmp_path: Path) -> None:
        steps = [*XYXY, ("joint", 4, 1, [0.6, 0.6]), ("x", 5, 1, [0.9, 0.8])]
        new = measure(record(tmp_path / "new", steps, expert=True))
        record(tmp_path / "old", steps, expert=True)
        old = waterjar.open_run(without_visits(tmp_path / "old"))
        assert waterjar.verify(old.path).state == "sealed" and "visit" not in old["performance"]
        xr.testing.assert_identical(measure(old).drop_attrs(deep=False), new.drop_attrs(deep=False))

    def test_also_where_another_group_tells_them(self, tmp_path: Path) -> None:
        for name in ("new", "old"):
            about = {"eval_sets": {"a": 0, "b": 1}, "tasks": ["x", "y"], "classes": ["a", "b"]}
            with waterjar.Recorder(tmp_path / name, {}, provenance=False, **about) as recorder:
                recorder.log(train_task="x", epoch=1, performance={"accuracy": [0.8, 0.5]})
                recorder.log(train_task="y", epoch=1, train={"loss": 1.0})
                recorder.log(train_task="x", epoch=2, performance={"accuracy": [0.9, 0.5]})
        without_visits(tmp_path / "old")
        new, old = (measure(waterjar.open_run(tmp_path / name)) for name in ("new", "old"))
        assert new["train_visit"].values.tolist() == ["x", "x (2nd time)"]
        xr.testing.assert_identical(old.drop_attrs(deep=False), new.drop_attrs(deep=False))

    def test_beside_a_run_of_schema_2(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "study")
        for seed, steps in ((1, XYXY), (2, XYXY[:5]), (3, XYXY)):
            record(folder / f"run{seed}", steps, seeds=[seed])
        without_visits(folder / "run1")
        found = measure(waterjar.open_study(folder))
        assert found["train_visit"].values.tolist() == ["x", "y", "x (2nd time)", "y (2nd time)"]
        assert found["backward_transfer"].values[0, [0, 2]] == pytest.approx([-0.5, -0.5])
        assert why(found.isel(seed=[1]), "backward_transfer") == ["run_ended"]


def test_cells_with_other_visits_stand_side_by_side(tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "study")
    record(folder / "again", XYXY, config={"learner": "er"})
    record(folder / "once", XYXY[:4])
    result = diagnose(waterjar.open_study(folder), only=["continual"])
    found = result.results["continual"]
    assert found["train_task"].values.tolist() == [0, 1, 2, 3]
    assert found["train_visit"].values.tolist() == ["x", "y", "x (2nd time)", "y (2nd time)"]
    by_name = found["remembering"].isel(seed=0)
    assert float(by_name.sel(cell="sgd", train_task=1, eval_task=0)) == pytest.approx(-0.6)
    assert float(by_name.sel(cell="er", train_task=3, eval_task=2)) == pytest.approx(-1.0)
    assert result.notes() == [("er", "trained again, one row per visit: x, y, x, y")]
    again = diagnose(waterjar.open_study(folder), only=["continual"]).results["continual"]
    xr.testing.assert_identical(again, found)  # from the cache


@settings(max_examples=60)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_a_visit_is_followed_as_if_it_were_a_task_of_its_own_until_the_next(tasks: list[int]) -> None:
    found = followed(tasks)
    for v in range(len(tasks)):
        for u in range(len(tasks)):
            assert found[v, u] == (u < v and tasks[u] not in tasks[u + 1 : v + 1])
            assert before_first(tasks)[v, u] == (tasks[u] not in tasks[: v + 1] and tasks[u] not in tasks[:u])
    # of a task, at most one visit is followed at a time
    for task in set(tasks):
        assert (found[:, np.array(tasks) == task].sum(1) <= 1).all()
    assert first(tasks).sum() == last(tasks).sum() == len(set(tasks))


@settings(max_examples=40)
@given(st.integers(1, 6))
def test_without_recurrence_visits_are_tasks(count: int) -> None:
    order = np.random.default_rng(count).permutation(count).tolist()
    np.testing.assert_array_equal(followed(order), np.tri(count, k=-1, dtype=bool))
    np.testing.assert_array_equal(before_first(order), np.tri(count, k=-1, dtype=bool).T)
    assert first(order).all() and last(order).all()


@pytest.mark.parametrize("seed", range(4))
def test_pairs_and_visits_are_those_of_the_run_with_visits_named_as_tasks(tmp_path: Path, seed: int) -> None:
    """What was asked of users before: every visit a task of its own, with the same evaluations. Pairs are the same."""
    rng = np.random.default_rng(seed)
    visited = rng.integers(0, 3, 6).tolist()
    steps, renamed = [], []
    for visit, task in enumerate(visited):
        for epoch in range(1, 4):
            row = rng.random(3)
            steps.append((task, visit, epoch, row))
            renamed.append((visit, visit, epoch, row[visited]))
    results = []
    for name, rows, count in (("again", steps, 3), ("named", renamed, 6)):
        about = {"eval_sets": {f"set {i}": i for i in range(count)}, "tasks": count, "classes": ["a", "b"]}
        with waterjar.Recorder(tmp_path / name, {}, provenance=False, **about) as recorder:
            for task, visit, epoch, row in rows:
                recorder.log(train_task=int(task), visit=visit, epoch=epoch, performance={"accuracy": row})
        results.append(measure(waterjar.open_run(tmp_path / name), integrator="auc"))
    again, named = results
    mask = followed(visited)
    for name in ("remembering", "forgetting_rate", "max_dip"):
        np.testing.assert_array_equal(again[name].values[0], np.where(mask, named[name].values[0], NAN), name)
    np.testing.assert_array_equal(again["learning_time"].values, named["learning_time"].values)
    np.testing.assert_array_equal(
        again["zero_shot"].values[0], np.where(before_first(visited), named["zero_shot"].values[0], NAN)
    )
