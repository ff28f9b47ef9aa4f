"""Over which tasks a number is: those of the run, trained or not; and what happens where they differ."""

import numpy as np
import pytest

import waterjar
from diagnose.continual.by_hand import EPOCHS, A
from waterjar.diagnose.continual import FAMILY, measure
from waterjar.diagnose.labelled import reasons_of
from waterjar.run.schema import REASONS

OVER_ALL = {"average_accuracy", "average_anytime_accuracy"}
OF_TWO = {
    "backward_transfer", "forgetting", "forgetting_rate", "forward_transfer_gem", "max_dip", "min_accuracy",
    "remembering", "zero_shot",
}  # fmt: skip
SETS = {"first": 0, "second": 1}


def why(result, name):
    return [REASONS[int(code)] for code in np.ravel(reasons_of(result, name).values)]


def record(path, steps, *, sets=SETS, tasks=("t1", "t2"), learner="sgd", **options):
    """Record steps (train_task, epoch, [accuracy per eval set])."""
    options = {"eval_sets": sets, "tasks": list(tasks), "classes": ["a", "b"], "provenance": False, **options}
    with waterjar.Recorder(path, {"learner": learner}, **options) as recorder:
        for task, epoch, row in steps:
            recorder.log(train_task=task, epoch=epoch, performance={"accuracy": row})
    return waterjar.open_run(path)


def record_open(path, tasks=2):
    return waterjar.Recorder(path, {}, eval_sets=SETS, tasks=tasks, classes=["a", "b"])


SCRATCH = [("t2", 0, [0.1, 0.5]), ("t2", 1, [0.2, 0.6]), ("t2", 2, [0.1, 0.9])]
TURNS = [("t1", 0, [0.5, 0.5]), ("t1", 1, [0.9, 0.5]), ("t2", 0, [0.9, 0.5]), ("t2", 1, [0.7, 0.8])]
JOINT = [("joint", 0, [0.5, 0.5]), ("joint", 1, [0.6, 0.8]), ("joint", 2, [0.7, 0.9])]


class TestNeverTrained:
    def test_a_task_that_was_never_trained_counts_as_evaluated(self, tmp_path):
        found = measure(record(tmp_path / "run", SCRATCH))
        assert float(found["average_accuracy"][0]) == pytest.approx((0.1 + 0.9) / 2)
        assert float(found["average_anytime_accuracy"][0]) == pytest.approx((0.4 + 0.5) / 2)
        assert found["tasks"].values.tolist() == ["t1, t2"] and found["n_tasks"].values.tolist() == [2]
        assert found.attrs["eval_sets"] == "first, second"

    def test_also_one_that_would_come_later(self, tmp_path):
        found = measure(record(tmp_path / "run", [("t1", 0, [0.5, 0.4]), ("t1", 1, [0.8, 0.3])]))
        assert float(found["average_accuracy"][0]) == pytest.approx(0.55)
        assert float(found["average_anytime_accuracy"][0]) == pytest.approx(0.55)
        assert why(found, "learning_accuracy") == ["undefined"]

    def test_what_asks_for_the_training_of_all_tasks_is_undefined(self, tmp_path):
        found = measure(record(tmp_path / "run", SCRATCH))
        for metric in FAMILY.metrics.values():
            gone = "one_task" if metric.name in OF_TWO else "undefined"
            assert why(found, metric.scalar) == ["present" if metric.name in OVER_ALL else gone]
        # b = .4, .3, 0 at epochs 0, 1, 2: the task that was trained keeps its own
        assert found["learning_time"].sel(eval_task=1).values == pytest.approx(0.5**2 / (0.08 + 0.09))
        assert found["learning_time_n"].values.tolist() == [1]
        assert measure(record(tmp_path / "turns", TURNS))["learning_time_n"].values.tolist() == [2]

    def test_pairs_of_the_tasks_that_were_trained_stay(self, tmp_path):
        sets = {**SETS, "third": 2}
        steps = [(task, epoch, [*row, 0.5]) for task, epoch, row in TURNS]
        found = measure(record(tmp_path / "run", steps, sets=sets, tasks=("t1", "t2", "t3")))
        assert float(found["average_accuracy"][0]) == pytest.approx((0.7 + 0.8 + 0.5) / 3)
        # while t1 is trained t1 and t3 count, then all
        assert float(found["average_anytime_accuracy"][0]) == pytest.approx((0.7 + 2 / 3) / 2)
        assert float(found["remembering"].sel(train_task=1, eval_task=0)[0]) == pytest.approx((0.4 - 0.8) / 1.2)
        assert why(found, "remembering_mean") == ["undefined"] == why(found, "backward_transfer")
        assert found["remembering_n"].values.tolist() == [1]

    def test_not_evaluated_is_missing_with_the_reason(self, tmp_path):
        unseen = waterjar.missing("not_recorded")
        steps = [(task, epoch, {"first": unseen, "second": row[1]}) for task, epoch, row in SCRATCH]
        found = measure(record(tmp_path / "run", steps))
        assert why(found, "average_accuracy") == ["not_recorded"] == why(found, "average_anytime_accuracy")

    def test_a_task_without_eval_set_takes_no_part(self, tmp_path):
        found = measure(record(tmp_path / "run", [(*step[:2], step[2][1:]) for step in SCRATCH], sets={"second": 1}))
        assert float(found["average_accuracy"][0]) == pytest.approx(0.9)
        assert float(found["learning_accuracy"][0]) == pytest.approx(0.9)
        assert found["tasks"].values.tolist() == ["t2"]

    def test_nor_one_whose_eval_set_is_not_among_those_named(self, tmp_path):
        found = measure(record(tmp_path / "run", SCRATCH), eval_sets="second")
        assert float(found["average_accuracy"][0]) == pytest.approx(0.9)
        assert found["n_tasks"].values.tolist() == [1]


class TestJoint:
    def test_has_averages_and_nothing_of_single_tasks(self, tmp_path):
        found = measure(record(tmp_path / "run", JOINT))
        assert float(found["average_accuracy"][0]) == pytest.approx(0.8)
        assert float(found["average_anytime_accuracy"][0]) == pytest.approx((0.7 + 0.8) / 2)
        for metric in FAMILY.metrics.values():
            if metric.name not in OVER_ALL:
                assert set(why(found, metric.name)) == {"undefined"} == set(why(found, metric.scalar))
        assert found["chance_note"].values.tolist() == [""]

    def test_after_tasks_in_turn_it_is_the_last_phase(self, tmp_path):
        found = measure(record(tmp_path / "run", TURNS + JOINT[1:]))
        assert float(found["average_accuracy"][0]) == pytest.approx(0.8)
        assert float(found["backward_transfer"][0]) == pytest.approx(-0.2)

    def test_cells_of_every_kind_average_over_the_same_tasks(self, tmp_path):
        folder = waterjar.create_study(tmp_path / "study")
        for name, steps in {"scratch": SCRATCH, "turns": TURNS, "joint": JOINT}.items():
            record(folder / name, steps, learner=name)
        found = measure(waterjar.open_study(folder)).isel(seed=0)
        averages = {name: float(found["average_accuracy"].sel(cell=name)) for name in found["cell"].values}
        assert averages == pytest.approx({"scratch": 0.5, "turns": 0.75, "joint": 0.8})
        assert set(found["tasks"].values) == {"t1, t2"}
        there = {name: ~np.isnan(float(found["learning_accuracy"].sel(cell=name))) for name in averages}
        assert there == {"scratch": False, "turns": True, "joint": False}


class TestEpochZero:
    def test_is_the_last_evaluation_before_where_a_task_has_none(self, tmp_path):
        """Both tasks are learned in one epoch: 1/2 epoch of learning time, half of the first epoch lost of three."""
        a = [("t1", t, [float(t > 0), 0.0]) for t in range(4)]
        b = [("t2", t, [0.5, 1.0]) for t in (1, 2, 3)]
        found = measure(record(tmp_path / "run", a + b), chance=0.0, integrator="auc")
        np.testing.assert_allclose(found["learning_time"], [[0.5, 0.5]])
        # auc of t1 is 5/6 in its own time; then it falls from 1 to 1/2 in the first of three epochs: (3/4 + 1) / 3
        expected = (1.75 / 3 - 5 / 6) / (1.75 / 3 + 5 / 6)
        assert float(found["remembering"].sel(train_task=1, eval_task=0)[0]) == pytest.approx(expected)
        told = record(tmp_path / "told", [*a, ("t2", 0, [1.0, 0.0]), *b])
        for name, values in measure(told, chance=0.0, integrator="auc").data_vars.items():
            np.testing.assert_array_equal(values, found[name], err_msg=name)

    def test_is_no_end_of_a_task_that_was_not_evaluated(self, tmp_path):
        unseen = waterjar.missing("not_recorded")
        run = record(tmp_path / "run", [("t1", 1, [0.9, 0.5]), ("t2", 1, {"first": unseen, "second": 0.8})])
        for integrator in ("final", "auc"):
            found = measure(run, integrator=integrator)
            assert why(found, "remembering_mean") == ["not_recorded"] == why(found, "backward_transfer")

    def test_the_expert_has_no_task_before(self, tmp_path):
        """Neither begins at 0: expert and network are compared over the epochs that both have."""
        options = {"eval_sets": SETS, "tasks": 2, "classes": ["a", "b"]}
        with waterjar.Recorder(tmp_path / "run", {}, **options) as recorder:
            for task in (0, 1):
                for t in (1, 2):
                    row = {"accuracy": [0.5 + 0.1 * t, 0.5 + 0.1 * t]}
                    recorder.log(train_task=task, epoch=t, performance=row, expert=row)
        found = measure(waterjar.open_run(tmp_path / "run"), integrator="auc")
        np.testing.assert_allclose(found["forward_transfer"], [[0.0, 0.0]], atol=1e-12)


class TestUnfinished:
    """Runs that are shorter than others of their cell, or still open."""

    def record(self, path, until, *, seeds, close=True):
        sets = {f"set {j}": j for j in range(3)}
        options = {"eval_sets": sets, "tasks": 3, "classes": ["a", "b"], "seeds": seeds}
        recorder = waterjar.Recorder(path, {"learner": "sgd"}, **options)
        steps = [(i, t) for i in range(3) for t in range(3) if EPOCHS[i, t] >= 0]
        for i, t in steps[:until]:
            recorder.log(train_task=i, epoch=EPOCHS[i, t], performance={"accuracy": A[i, :, t]})
        if close:
            recorder.close()
        return recorder

    def expect_stopped_in_task_1(self, short):
        for metric in FAMILY.metrics.values():
            if metric.name not in ("forward_transfer", "intransigence"):  # of which there are no experts
                assert why(short, metric.scalar) == ["run_ended"], metric.name
        assert float(short["learning_time"].sel(eval_task=0)) == pytest.approx(4 / 3)
        assert why(short["learning_time"].to_dataset().merge(short[["learning_time_reason"]]), "learning_time")[1:] == [
            "run_ended"
        ] * (short.sizes["eval_task"] - 1)
        assert np.isnan(short["remembering"].sel(train_task=1, eval_task=0))

    @pytest.mark.parametrize("integrator", ["final", "mean"])
    def test_shorter_than_the_longest_of_its_cell(self, tmp_path, integrator):
        folder = waterjar.create_study(tmp_path / "study")
        self.record(folder / "whole", 8, seeds=[1])
        self.record(folder / "short", 5, seeds=[2])  # the second of three evaluations of task 1
        found = measure(waterjar.open_study(folder), integrator=integrator).isel(cell=0)
        self.expect_stopped_in_task_1(found.sel(seed=2))
        alone = measure(waterjar.open_run(folder / "whole"), integrator=integrator)
        for metric in FAMILY.metrics.values():
            np.testing.assert_array_equal(found[metric.scalar].sel(seed=1), alone[metric.scalar][0])

    def test_by_one_evaluation_of_the_last_task(self, tmp_path):
        folder = waterjar.create_study(tmp_path / "study")
        self.record(folder / "whole", 8, seeds=[1])
        self.record(folder / "short", 7, seeds=[2])
        short = measure(waterjar.open_study(folder)).isel(cell=0).sel(seed=2)
        for name in ("average_accuracy", "average_anytime_accuracy", "backward_transfer", "learning_accuracy"):
            assert why(short, name) == ["run_ended"]
        # tasks 0 and 1 are complete
        assert float(short["remembering"].sel(train_task=1, eval_task=0)) == pytest.approx(-1 / 3)
        assert float(short["learning_time"].sel(eval_task=1)) == pytest.approx(25 / 14)
        assert float(short["forward_transfer_gem"]) == pytest.approx((0.6 - 0.5 + 0.7 - 0.5) / 2)

    @pytest.mark.parametrize("until", [5, 6])  # with and without the last evaluation of task 1: more may come
    def test_still_open(self, tmp_path, until):
        recorder = self.record(tmp_path / "run", until, seeds=[0], close=False)
        self.expect_stopped_in_task_1(measure(waterjar.open_run(tmp_path / "run")).isel(repeat=0))
        recorder.close()
        closed = measure(waterjar.open_run(tmp_path / "run"))
        assert why(closed, "average_accuracy") == ["present"]  # that was all of it: task 2 counts as evaluated
        assert why(closed, "learning_accuracy") == ["undefined"]
        assert float(closed["average_accuracy"][0]) == pytest.approx(A[1, :, until - 4].mean())

    def test_still_open_when_all_is_there(self, tmp_path):
        recorder = self.record(tmp_path / "run", 8, seeds=[0], close=False)
        found = measure(waterjar.open_run(tmp_path / "run"))
        assert why(found, "average_accuracy") == ["run_ended"]
        assert float(found["remembering"].sel(train_task=1, eval_task=0)[0]) == pytest.approx(-1 / 3)
        recorder.close()
        assert why(measure(waterjar.open_run(tmp_path / "run")), "average_accuracy") == ["present"]

    def test_interrupted(self, tmp_path):
        with pytest.raises(KeyboardInterrupt), record_open(tmp_path / "run") as r:
            r.log(train_task=0, epoch=1, performance={"accuracy": [0.9, 0.5]})
            r.log(train_task=1, epoch=1, performance={"accuracy": [0.9, 0.5]})
            raise KeyboardInterrupt
        found = measure(waterjar.open_run(tmp_path / "run"))
        assert why(found, "average_accuracy") == ["run_ended"] == why(found, "backward_transfer")

    def test_open_joint_run(self, tmp_path):
        recorder = record_open(tmp_path / "run")
        recorder.log(train_task="joint", epoch=1, performance={"accuracy": [0.9, 0.5]})
        found = measure(waterjar.open_run(tmp_path / "run"))
        assert why(found, "average_accuracy") == ["run_ended"] == why(found, "average_anytime_accuracy")
        assert why(found, "backward_transfer") == ["undefined"]
        recorder.close()

    def test_seeds_with_and_without_expert(self, tmp_path):
        folder = waterjar.create_study(tmp_path / "study")
        options = {"eval_sets": SETS, "tasks": ["t1", "t2"], "classes": ["a", "b"]}
        for seed, until in ((1, 4), (2, 3)):
            with waterjar.Recorder(folder / f"run-{seed}", {"learner": "sgd"}, seeds=[seed], **options) as recorder:
                for task, epoch, row in TURNS[:until]:
                    fresh = {"accuracy": [0.9, 0.9]}
                    recorder.log(train_task=task, epoch=epoch, performance={"accuracy": row}, expert=fresh)
        record(folder / "run-3", TURNS, seeds=[3])
        found = measure(waterjar.open_study(folder)).isel(cell=0)
        np.testing.assert_allclose(found["intransigence"], [[0.0, 0.1], [0.0, np.nan], [np.nan, np.nan]], atol=1e-12)
        assert why(found, "intransigence_mean") == ["present", "run_ended", "not_recorded"]

    def test_an_expert_of_one_task_only(self, tmp_path):
        with record_open(tmp_path / "run", tasks=["t1", "t2"]) as recorder:
            for task, epoch, row in TURNS:
                fresh = {"accuracy": [0.9, 0.9]} if task == "t2" else None
                recorder.log(train_task=task, epoch=epoch, performance={"accuracy": row}, expert=fresh)
        assert why(measure(waterjar.open_run(tmp_path / "run")), "intransigence") == ["not_recorded", "present"]
