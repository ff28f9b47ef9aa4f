"""Edges of the family: the order of training, percentages, chance, causes that are true, names of losses."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import waterjar
from diagnose.continual.by_hand import record as record_by_hand
from diagnose.continual.test_tasks_covered import record, why
from waterjar.diagnose import continual
from waterjar.diagnose.continual import FAMILY, measure
from waterjar.diagnose.continual.so_far import over_steps
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.run import rows

# b is trained first: of (a, b), .9 on b as learned, .4 at the end; .8 on a
BACKWARDS = [("b", 0, [0.5, 0.5]), ("b", 1, [0.6, 0.9]), ("a", 0, [0.6, 0.9]), ("a", 1, [0.8, 0.4])]
SETS = {"set a": 0, "set b": 1}


def backwards(path: Path, **options: object) -> waterjar.Run:
    return record(path, BACKWARDS, sets=SETS, tasks=("a", "b"), **options)


class TestOrder:
    def test_the_recorded_one_counts(self, tmp_path: Path) -> None:
        found = measure(backwards(tmp_path / "run"))
        assert found["train_task"].values.tolist() == [1, 0] == found["eval_task"].values.tolist()
        assert float(found["backward_transfer"][0]) == pytest.approx(0.4 - 0.9)  # of b; it was .6 - .8 of a
        # P = 2A - 1: b falls from .8 to -.2 while a is trained
        assert float(found["remembering"].sel(train_task=0, eval_task=1)[0]) == pytest.approx(-1.0)
        assert np.isnan(found["remembering"].sel(train_task=1, eval_task=0)[0])
        assert float(found["forgetting"].sel(eval_task=1)[0]) == pytest.approx(0.5)
        assert float(found["forward_transfer_gem"][0]) == pytest.approx(0.6 - 0.5)  # of a, before its training
        # while b is trained it alone counts, then both
        assert float(found["average_anytime_accuracy"][0]) == pytest.approx((0.9 + 0.6) / 2)

    def test_it_is_the_same_run_with_its_tasks_declared_in_that_order(self, tmp_path: Path) -> None:
        found = measure(backwards(tmp_path / "run"))
        steps = [(task, epoch, row[::-1]) for task, epoch, row in BACKWARDS]
        right = measure(record(tmp_path / "right", steps, sets={"set b": 0, "set a": 1}, tasks=("b", "a")))
        for metric in FAMILY.metrics.values():
            np.testing.assert_array_equal(found[metric.name].values, right[metric.name].values, metric.name)
            np.testing.assert_array_equal(found[metric.scalar].values, right[metric.scalar].values, metric.scalar)
        assert right["order_note"].values.tolist() == [""]

    def test_the_difference_is_said(self, tmp_path: Path) -> None:
        said = "trained in the order b, a, declared as a, b: the recorded order counts"
        folder = waterjar.create_study(tmp_path / "study")
        backwards(folder / "run")
        assert measure(waterjar.open_run(folder / "run"))["order_note"].values.tolist() == [said]
        study = waterjar.open_study(folder)
        assert diagnose(study, only=["continual"]).notes() == [("sgd", said)]
        ((_, so_far),) = over_steps(study, "backward_transfer", {})
        assert so_far.values[0, -1] == pytest.approx(-0.5)

    def test_tasks_that_are_not_trained_are_said(self, tmp_path: Path) -> None:
        """ACC and AAA count them as evaluated (see `measure`): declared are three tasks, trained two."""
        steps = [(task, 1, row) for task, row in (("a", [0.9, 0.1, 0.2]), ("c", [0.8, 0.3, 0.7]))]
        sets = {"set a": 0, "set b": 1, "set c": 2}
        found = measure(record(tmp_path / "run", steps, sets=sets, tasks=("a", "b", "c")))
        assert float(found["average_accuracy"][0]) == pytest.approx(np.mean([0.8, 0.3, 0.7]))
        assert found["order_note"].values.tolist() == ["not trained on its own: b; ACC and AAA count b as evaluated"]
        turned = [steps[1], steps[0]]
        both = measure(record(tmp_path / "turned", turned, sets={"set a": 0, "set c": 2, "d": 3}, tasks=tuple("abcd")))
        assert both["order_note"].values.tolist() == [
            "trained in the order c, a, declared as a, b, c, d: the recorded order counts; not trained on its own: "
            "b, d; ACC and AAA count d as evaluated"
        ]

    def test_joint_training_leaves_nobody_out(self, tmp_path: Path) -> None:
        found = measure(record(tmp_path / "run", [("joint", 1, [0.5, 0.5])], sets=SETS, tasks=("a", "b")))
        assert found["order_note"].values.tolist() == [""]


class TestArraysThatAreNone:
    R = np.array([[0.9, 0.1], [0.8, 0.9]])

    @pytest.mark.parametrize("scale", [100.0, -np.inf, np.inf])
    @pytest.mark.parametrize(
        "call",
        [
            continual.average_accuracy, continual.backward_transfer, continual.forgetting, continual.learning_accuracy,
            continual.remembering, continual.zero_shot,
            lambda R: continual.forward_transfer(R, [0.5, 0.5]),
            lambda R: continual.forward_transfer_gem(R, [0.5, 0.5]),
            lambda R: continual.intransigence(R, [0.5, 0.5]), lambda R: continual.forward_transfer([[0.5]], R[:1, 0]),
            lambda R: continual.forward_transfer_gem([[0.5]], R[:1, 0]),
            lambda R: continual.intransigence([[0.5]], R[:1, 0]),
            lambda R: continual.average_anytime_accuracy(R[..., None]), lambda R: continual.min_accuracy(R[..., None]),
            lambda R: continual.worst_case_accuracy(R[..., None]), lambda R: continual.max_dip(R[..., None]),
            lambda R: continual.forgetting_rate(R[..., None]), lambda R: continual.above_chance(R, 0.5),
        ],
    )  # fmt: skip
    def test_percentages_and_infinities_are_refused(self, call: Callable[[np.ndarray], object], scale: float) -> None:
        call(self.R)
        with pytest.raises(WaterjarError, match=r"at position \(0.*Divide percentages by 100"):
            call(self.R * scale)

    def test_below_chance_and_losses_pass_where_they_may(self) -> None:
        assert np.isfinite(continual.remembering(self.R - 2.0).value[1, 0])
        curve = np.array([[[2.0, 6.0, 9.0]]])
        np.testing.assert_allclose(continual.learning_time(curve).value, continual.learning_time(curve / 10).value)
        with pytest.raises(WaterjarError, match="curves has an infinite value"):
            continual.learning_time(curve * np.inf)


class TestPercentages:
    @pytest.mark.parametrize("wrong", [75.5, -0.1, np.inf])
    def test_are_refused_where_they_were_recorded(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: float
    ) -> None:
        monkeypatch.setattr(rows, "check_accuracies", lambda values, name: None)  # as before
        run = record(tmp_path / "run", [("t1", 1, [0.5, 0.5]), ("t2", 1, [wrong, 0.5])])
        with pytest.raises(WaterjarError, match="accuracy of .*an accuracy lies in .*Divide percentages by 100"):
            measure(run)

    def test_rounding_is_none_and_stays(self, tmp_path: Path) -> None:
        run = record(tmp_path / "run", [("t1", 1, [1 + 5e-7, 0.5]), ("t2", 1, [1 + 5e-7, 1.0])])
        assert float(measure(run)["average_accuracy"][0]) == pytest.approx(1 + 2.5e-7, abs=1e-12)


class TestCauses:
    def test_chance_that_is_not_known(self, tmp_path: Path) -> None:
        run = backwards(tmp_path / "run", classes=None)
        found = measure(run)
        for name in ("remembering_mean", "zero_shot_mean", "forgetting_rate_mean", "max_dip_mean"):
            assert why(found, name) == ["chance_unknown"], name
        assert "--set chance=0.5" in str(found["chance_note"].values[0])
        assert float(measure(run, chance=0.5)["remembering_mean"][0]) == pytest.approx(-1.0)

    def test_tasks_and_sets_of_the_same_names_belong_together_unless_told_otherwise(self, tmp_path: Path) -> None:
        rows = [("a", 1, [0.5, 0.5]), ("b", 1, [0.5, 0.5])]
        run = record(tmp_path / "named", rows, sets=["a", "b"], tasks=("a", "b"))
        assert why(measure(run), "average_accuracy") == ["present"]
        run = record(tmp_path / "told", rows, sets={"a": -1, "b": -1}, tasks=("a", "b"))
        assert why(measure(run), "average_accuracy") == ["no_eval_set"]


class TestLearningTime:
    def test_heeds_the_floor(self, tmp_path: Path) -> None:
        # P = 2A - 1 = -.4, .2, .6 at epochs 0, 1, 2; with the floor 0, .2, .6
        run = record(
            tmp_path / "run", [("t1", t, [a]) for t, a in enumerate((0.3, 0.6, 0.8))], sets={"s": 0}, tasks=["t1"]
        )
        plain, floored = (measure(run, floor_at_chance=floor)["learning_time"].values[0, 0] for floor in (False, True))
        assert plain == pytest.approx((1.0 / 2 + 0.4) ** 2 / (1.0 / 2 + 0.16))  # b = 1, .4, 0
        assert floored == pytest.approx((0.6 / 2 + 0.4) ** 2 / (0.36 / 2 + 0.16))  # b = .6, .4, 0

    def test_and_then_needs_chance(self, tmp_path: Path) -> None:
        run = backwards(tmp_path / "run", classes=None)
        assert why(measure(run), "learning_time_mean") == ["present"]
        assert why(measure(run, floor_at_chance=True), "learning_time_mean") == ["chance_unknown"]


class TestNamesOfLosses:
    def test_speak_of_loss(self, tmp_path: Path) -> None:
        run = record_by_hand(tmp_path / "run", loss=True)
        of_loss, of_accuracy = measure(run, metric_type="loss"), measure(run)
        for metric in FAMILY.metrics.values():
            name = of_loss[metric.name].attrs["long_name"]
            assert of_accuracy[metric.name].attrs["long_name"] == metric.long_name
            if metric.on_loss != "undefined":
                assert "loss" in name and "accuracy" not in name, metric.name
                assert of_loss[metric.scalar].attrs["long_name"] == name

    def test_and_so_do_tables(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "study")
        record_by_hand(folder / "run", loss=True)
        settings = {"continual": {"metric_type": "loss"}}
        found = diagnose(waterjar.open_study(folder), only=["continual"], settings=settings)
        assert found.declared("intransigence").long_name.startswith("intransigence: final loss of the network")
